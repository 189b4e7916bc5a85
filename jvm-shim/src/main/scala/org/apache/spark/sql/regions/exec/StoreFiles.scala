package org.apache.spark.sql.regions.exec

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException => LocalExists, Files, LinkOption, NoSuchFileException}
import java.nio.file.{Path => LocalPath, Paths, StandardOpenOption}
import java.nio.file.attribute.{BasicFileAttributes, PosixFilePermissions}
import java.util.UUID

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{BlockLocation, FileAlreadyExistsException, FileSystem, Path}
import org.apache.hadoop.fs.permission.FsPermission

/** One directory entry as a reader sees it. */
private[exec] final case class Found(
    name: String,
    length: Long,
    modified: Long,
    plainFile: Boolean,
    blocks: Array[BlockLocation] = Array.empty)

/** The few file operations of the store, owner-only where the file system knows owners. */
private[regions] object StoreFiles {
  val manifestName = "_manifest.json"
  private val ownerDirectory = new FsPermission("700")
  private val ownerFile = new FsPermission("600")

  def system(path: Path, conf: Configuration): FileSystem = path.getFileSystem(conf)

  /** Creates the directory and its missing parents for the owner alone. Existing parents keep their mode. */
  def makeDirectory(fs: FileSystem, path: Path): Unit = {
    val parent = path.getParent
    if (parent != null && !fs.exists(parent)) makeDirectory(fs, parent)
    if (!fs.exists(path)) {
      if (!fs.mkdirs(path, ownerDirectory)) throw new java.io.IOException(s"cannot create $path")
      restrict(fs, path, ownerDirectory)
    }
  }

  def restrictFile(fs: FileSystem, path: Path): Unit = restrict(fs, path, ownerFile)

  // Explicit, because mkdirs and create subtract a umask; object stores have no modes.
  private def restrict(fs: FileSystem, path: Path, permission: FsPermission): Unit =
    try fs.setPermission(path, permission)
    catch { case _: UnsupportedOperationException => }

  /** Everything in the directory by one listing. Hadoop's own checksum files are left out. */
  def list(fs: FileSystem, directory: Path): Map[String, Found] = local(fs, directory) match {
    case Some(path) => listLocal(path)
    case None =>
      val found = mutable.HashMap.empty[String, Found]
      val statuses = fs.listLocatedStatus(directory)
      while (statuses.hasNext) {
        val status = statuses.next()
        val plain = status.isFile && !status.isSymlink
        found += status.getPath.getName ->
          Found(status.getPath.getName, status.getLen, status.getModificationTime, plain, status.getBlockLocations)
      }
      found.toMap
  }

  // Hadoop's local file system follows symbolic links silently.
  private def listLocal(directory: LocalPath): Map[String, Found] = {
    if (Files.isSymbolicLink(directory)) throw new java.io.IOException(s"$directory is a symbolic link")
    val stream =
      try Files.newDirectoryStream(directory)
      catch { case e: NoSuchFileException => throw new FileNotFoundException(e.getMessage) }
    try {
      stream.iterator().asScala.flatMap { path =>
        val name = path.getFileName.toString
        if (name.endsWith(".crc")) None
        else {
          val attributes = Files.readAttributes(path, classOf[BasicFileAttributes], LinkOption.NOFOLLOW_LINKS)
          Some(name -> Found(name, attributes.size, attributes.lastModifiedTime.toMillis, attributes.isRegularFile))
        }
      }.toMap
    } finally stream.close()
  }

  def read(fs: FileSystem, path: Path, length: Int): Array[Byte] = {
    val in = fs.open(path)
    try {
      val bytes = new Array[Byte](length)
      in.readFully(0, bytes)
      bytes
    } finally in.close()
  }

  /**
   * Writes the manifest so that it either is there whole or not at all, and fails if there is one.
   *
   * Local: written beside, synced, then hard-linked to its name, because rename replaces an existing target silently.
   * Where links are not supported: created exclusively and written in place. HDFS and object stores: exclusive create;
   * an object appears whole at close, an HDFS file may be seen half, but nobody looks before `committed` is told.
   *
   * @return false if another manifest exists
   */
  def createManifest(fs: FileSystem, directory: Path, text: String): Boolean = local(fs, directory) match {
    case Some(path) => createLocal(path, text.getBytes(UTF_8))
    case None =>
      val target = new Path(directory, manifestName)
      try {
        val out = fs.create(target, false)
        try out.write(text.getBytes(UTF_8))
        finally out.close()
        restrictFile(fs, target)
        true
      } catch { case _: FileAlreadyExistsException => false }
  }

  private def createLocal(directory: LocalPath, bytes: Array[Byte]): Boolean = {
    val target = directory.resolve(manifestName)
    val beside = directory.resolve(s".manifest-${UUID.randomUUID()}")
    try {
      writeSynced(beside, bytes)
      try {
        Files.createLink(target, beside)
        true
      } catch {
        case _: LocalExists => false
        case _: UnsupportedOperationException | _: java.nio.file.FileSystemException =>
          try {
            writeSynced(target, bytes)
            true
          } catch { case _: LocalExists => false }
      }
    } finally Files.deleteIfExists(beside)
  }

  private def writeSynced(path: LocalPath, bytes: Array[Byte]): Unit = {
    Files.createFile(path)
    try Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"))
    catch { case _: UnsupportedOperationException => }
    val channel = java.nio.channels.FileChannel.open(path, StandardOpenOption.WRITE)
    try {
      val buffer = java.nio.ByteBuffer.wrap(bytes)
      while (buffer.hasRemaining) channel.write(buffer)
      channel.force(true)
    } finally channel.close()
  }

  private def local(fs: FileSystem, path: Path): Option[LocalPath] =
    if (fs.getUri.getScheme == "file") Some(Paths.get(path.toUri.getPath)) else None
}
