package org.apache.spark.sql.regions.rules

import java.net.URI
import java.nio.file.{Files, Paths}
import java.security.MessageDigest

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{EtagSource, FileChecksum, FileStatus, Path, RawLocalFileSystem}

/** A Hadoop file system over local files that knows more of them than their times: a tag in the listing, or a checksum. */
final class TaggedFileSystem extends RawLocalFileSystem {
  override def initialize(uri: URI, conf: Configuration): Unit = {
    super.initialize(uri, conf)
    setConf(conf)
  }
  override def getUri: URI = URI.create("tagged:///")
  override def getScheme: String = "tagged"

  private def digest(path: Path): Array[Byte] =
    MessageDigest.getInstance("MD5").digest(Files.readAllBytes(Paths.get(path.toUri.getPath)))

  // The local statuses look modes up by a file: URI.
  private def told(s: FileStatus): FileStatus =
    if (s.isDirectory || !TaggedFileSystem.tags) {
      new FileStatus(s.getLen, s.isDirectory, 1, s.getBlockSize, s.getModificationTime, s.getPath)
    } else new TaggedStatus(s, Digest.hex(digest(s.getPath), 16))
  override def getFileStatus(f: Path): FileStatus = told(super.getFileStatus(f))
  override def listStatus(f: Path): Array[FileStatus] = super.listStatus(f).map(told)

  override def getFileChecksum(path: Path): FileChecksum = new FileChecksum {
    override def getAlgorithmName: String = "MD5"
    override def getLength: Int = 16
    override def getBytes: Array[Byte] = digest(path)
    override def readFields(in: java.io.DataInput): Unit = throw new UnsupportedOperationException
    override def write(out: java.io.DataOutput): Unit = throw new UnsupportedOperationException
  }
}

object TaggedFileSystem {
  @volatile var tags = true
}

final class TaggedStatus(s: FileStatus, tag: String)
    extends FileStatus(s.getLen, false, 1, s.getBlockSize, s.getModificationTime, s.getPath)
    with EtagSource {
  override def getEtag: String = tag
}
