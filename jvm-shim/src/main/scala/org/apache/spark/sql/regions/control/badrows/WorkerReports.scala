package org.apache.spark.sql.regions.control.badrows

import java.io.{File, RandomAccessFile}
import java.nio.{ByteBuffer, ByteOrder, MappedByteBuffer}
import java.nio.channels.FileChannel

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.regions.wire.Frames

/**
 * @param row which of the operator's rows in this task, from 1
 * @param column which of the operator's results
 */
private[badrows] final case class WorkerReport(row: Long, column: Int, bad: BadRow)

/**
 * What a Python worker tells of rows that failed: a file on the executor's disk that it writes to before it sends what
 * came of the batch. Its first eight bytes, which say how long it is, are mapped into memory, so that a look at them with each
 * row costs next to nothing.
 */
private[badrows] final class WorkerReports(file: File) {
  private val opened = new RandomAccessFile(file, "rw")
  opened.setLength(8)
  private val length: MappedByteBuffer = opened.getChannel.map(FileChannel.MapMode.READ_WRITE, 0, 8)
  length.order(ByteOrder.LITTLE_ENDIAN)
  length.putLong(0, 8)
  private var read = 8L

  /** Whether there are some that were not asked for yet. */
  def waiting: Boolean = length.getLong(0) != read

  /** Those that were not asked for yet. */
  def fresh(): Seq[WorkerReport] =
    if (!waiting) Nil
    else {
      val end = length.getLong(0)
      val bytes = new Array[Byte]((end - read).toInt)
      opened.seek(read)
      opened.readFully(bytes)
      read = end
      val buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
      Iterator.continually(buffer).takeWhile(_.hasRemaining).map { rest =>
        val text = new Array[Byte](rest.getInt())
        rest.get(text)
        WorkerReports.parsed(text)
      }.toSeq
    }

  def close(): Unit = {
    opened.close()
    file.delete()
  }
}

private[badrows] object WorkerReports {

  def of(context: TaskContext, operator: Long): WorkerReports = {
    val folder = SparkEnv.get.blockManager.diskBlockManager.localDirs.head
    val file = new File(folder, s"spark-regions-bad-rows-${context.taskAttemptId()}-$operator")
    val reports = new WorkerReports(file)
    context.addTaskCompletionListener[Unit](_ => reports.close())
    reports
  }

  private def parsed(text: Array[Byte]): WorkerReport = {
    val told = Frames.json.readTree(text)
    val values = told.get("values").fields().asScala.map(entry => entry.getKey -> entry.getValue.asText).toSeq
    WorkerReport(
      told.get("row").asLong,
      told.get("column").asInt,
      BadRow(told.get("function").asText, told.get("error").asText,
        "", told.get("trace").asText, arguments = values)
    )
  }
}
