package org.apache.spark.sql.regions.rules

import java.io.{EOFException, IOException}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.US_ASCII
import java.security.MessageDigest
import java.util.Arrays

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{EtagSource, FSDataInputStream, FileStatus, FileSystem, Path}
import org.apache.hadoop.util.functional.FutureIO
import org.apache.orc.OrcProto
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.util.ThreadUtils

/**
 * What is known of the content of files beside length and time: the tag that an object store lists them with; in addition, if
 * `spark.regions.sources.verify` is `footer`, what can be read of them.
 *
 * Nothing is remembered from one call to the next. A memory would have to be kept by path, length and time, and files that change
 * without these are what is looked for.
 *
 * @param footers whether to look into files that the listing has no tag of
 * @param ending how long the footer at the end of a file is; None for formats without one, which are read whole
 */
private[rules] final class FileContents(
    conf: Configuration,
    footers: Boolean,
    ending: Option[FileContents.Ending]) {
  import FileContents._

  def apply(files: Seq[FileStatus]): Map[Path, String] = {
    val (tagged, others) = files.map(file => file -> tag(file)).partition(_._2.nonEmpty)
    val untagged = others.map(_._1)
    tagged.map { case (file, tag) => file.getPath -> tag }.toMap ++
      (if (footers) looked(untagged) else untagged.map(_.getPath -> ""))
  }

  private def tag(file: FileStatus): String = file match {
    case source: EtagSource if source.getEtag != null && source.getEtag.nonEmpty => s"etag:${source.getEtag}"
    case _ => ""
  }

  private def looked(files: Seq[FileStatus]): Seq[(Path, String)] = {
    // By the thread of the query, whose user it is.
    val systems = files.map(file => file -> file.getPath.getFileSystem(conf))
    val summed = each(systems)(checksum)
    val unread = systems.zip(summed).collect { case (file, None) => file }
    val bytes = unread.map(_._1.getLen).sum
    if (ending.isEmpty && bytes > mostBytes) Refused("TOO_LARGE_TO_VERIFY", s"$bytes bytes")
    files.map(_.getPath).zip(summed).collect { case (path, Some(sum)) => path -> sum } ++
      unread.map(_._1.getPath).zip(each(unread)(read))
  }

  private def each[T](files: Seq[(FileStatus, FileSystem)])(look: (FileStatus, FileSystem) => T): Seq[T] = {
    def guarded(file: (FileStatus, FileSystem)): T =
      try look(file._1, file._2)
      catch {
        case refused: Refused => throw refused
        case NonFatal(e) => Refused("UNVERIFIABLE_INPUT", s"${file._1.getPath}: $e")
      }
    if (files.size < 2) files.map(guarded)
    else {
      // Not thrown by the threads, which would wrap it.
      ThreadUtils.parmap(files, "regions-verify", threads)(file =>
        try Right(guarded(file))
        catch { case refused: Refused => Left(refused) }).map(_.fold(refused => throw refused, identity))
    }
  }

  /** What a file system keeps of the whole content, as HDFS does. */
  private def checksum(file: FileStatus, fs: FileSystem): Option[String] =
    try Option(fs.getFileChecksum(file.getPath)).map { sum =>
        s"checksum:${sum.getAlgorithmName}:${Digest.hex(sum.getBytes, sum.getBytes.length)}"
      }
    catch { case _: UnsupportedOperationException => None }

  private def read(file: FileStatus, fs: FileSystem): String = {
    val in = FutureIO.awaitFuture(fs.openFile(file.getPath).withFileStatus(file).build())
    try ending.fold("whole:" + whole(in, file.getLen))(tail(file, in, _))
    finally in.close()
  }

  /** The footer, and what stands before it as far as one read reaches: of a small file all. */
  private def tail(file: FileStatus, in: FSDataInputStream, ending: Ending): String = {
    def last(count: Long): Array[Byte] = {
      val bytes = new Array[Byte](count.toInt)
      in.readFully(file.getLen - count, bytes)
      bytes
    }
    val first = last(math.min(file.getLen, oneRead))
    val length = ending(first)
    if (length > mostBytes) Refused("TOO_LARGE_TO_VERIFY", s"a footer of $length bytes in ${file.getPath}")
    if (length > file.getLen) throw new IOException(s"a footer of $length bytes")
    "tail:" + Digest.ofBytes(if (length <= first.length) first else last(length))
  }

}

private[rules] object FileContents {

  /** From the last bytes of a file to the length of what ends there. */
  type Ending = Array[Byte] => Long

  /** What an object store sends about as fast as a single byte. */
  private val oneRead = 64 << 10

  /** Read by the driver each time that a relation is signed, committed from or loaded for: in all, or of one footer. */
  private val mostBytes = 64L << 20

  private val threads = 8

  /**
   * Equal for files that hold the same rows only if these stand in the same order: a digest of all bytes. A Parquet file's footer
   * lists each column's encodings as a set, in another order in each process, and counts by what a reader goes by.
   */
  def ordered(conf: Configuration, file: Path, length: Long): String = {
    val in = file.getFileSystem(conf).open(file)
    try {
      val last = new Array[Byte](math.min(length, 12).toInt)
      in.readFully(length - last.length, last)
      if (!endsAsParquet(last)) whole(in, length)
      else Digest("parquet", whole(in, length - parquet(last)), blocks(conf, file))
    } finally in.close()
  }

  private def blocks(conf: Configuration, file: Path): String = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf))
    try {
      val footer = reader.getFooter
      val blocks = footer.getBlocks.asScala.map { block =>
        val columns = block.getColumns.asScala.map(c =>
          Seq(c.getPath, c.getCodec, c.getStartingPos, c.getTotalSize, c.getValueCount,
            c.getEncodings.asScala.toSeq.sorted))
        (block.getRowCount, columns)
      }
      s"${footer.getFileMetaData.getSchema} $blocks"
    } finally reader.close()
  }

  private def endsAsParquet(last: Array[Byte]): Boolean =
    last.length == 12 && Set("PAR1", "PARE")(new String(last, 8, 4, US_ASCII))

  private def whole(in: FSDataInputStream, length: Long): String = {
    val digest = MessageDigest.getInstance("SHA-256")
    val buffer = new Array[Byte](oneRead)
    var left = length
    while (left > 0) {
      val count = in.read(buffer, 0, math.min(left, buffer.length).toInt)
      if (count < 0) throw new EOFException(s"$left bytes missing")
      digest.update(buffer, 0, count)
      left -= count
    }
    Digest.hex(digest.digest(), 16)
  }

  /** Footer, its length in four bytes, and a mark. */
  val parquet: Ending = last => {
    if (!endsAsParquet(last.takeRight(12))) throw new IOException("no footer of Parquet")
    Integer.toUnsignedLong(ByteBuffer.wrap(last).order(ByteOrder.LITTLE_ENDIAN).getInt(last.length - 8)) + 8
  }

  /** Statistics of stripes, footer, postscript, and the length of that in one byte. */
  val orc: Ending = last => {
    val length = last.last & 0xff
    if (length + 1 > last.length) throw new IOException("no footer of ORC")
    val script =
      OrcProto.PostScript.parseFrom(Arrays.copyOfRange(last, last.length - 1 - length, last.length - 1))
    if (script.getMagic != "ORC") throw new IOException("no footer of ORC")
    script.getMetadataLength + script.getStripeStatisticsLength + script.getFooterLength + length + 1
  }
}
