package org.apache.spark.sql.regions.exec

import java.io.{IOException, OutputStream}
import java.net.URI

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileStatus, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.Progressable

/** A Hadoop file system over local files whose disk is full after a few bytes of every file. */
final class FullFileSystem extends RawLocalFileSystem {
  override def initialize(uri: URI, conf: Configuration): Unit = {
    super.initialize(uri, conf)
    setConf(conf)
  }
  override def getUri: URI = URI.create("full:///")
  override def getScheme: String = "full"

  // The local statuses look modes up by a file: URI.
  private def plain(s: FileStatus): FileStatus =
    new FileStatus(s.getLen, s.isDirectory, 1, s.getBlockSize, s.getModificationTime, s.getPath)
  override def getFileStatus(f: Path): FileStatus = plain(super.getFileStatus(f))
  override def listStatus(f: Path): Array[FileStatus] = super.listStatus(f).map(plain)

  private def limited(out: FSDataOutputStream): FSDataOutputStream = new FSDataOutputStream(
    new OutputStream {
      private var left = FullFileSystem.room
      override def write(b: Int): Unit = write(Array(b.toByte), 0, 1)
      override def write(bytes: Array[Byte], from: Int, length: Int): Unit = {
        left -= length
        if (left < 0) throw FullFileSystem.problem()
        out.write(bytes, from, length)
      }
      override def close(): Unit = out.close()
    },
    null
  )

  override def create(
      f: Path,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream =
    limited(super.create(f, overwrite, bufferSize, replication, blockSize, progress))

  override def create(
      f: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream =
    limited(super.create(f, permission, overwrite, bufferSize, replication, blockSize, progress))
}

object FullFileSystem {
  @volatile private var room: Long = Long.MaxValue
  @volatile private var problem: () => Throwable = _

  /** Each file has room for so many bytes; then writing it throws. */
  def withRoom(bytes: Long, then: => Throwable = new IOException("No space left on device"))(body: => Unit): Unit = {
    problem = () => then
    room = bytes
    try body
    finally room = Long.MaxValue
  }
}
