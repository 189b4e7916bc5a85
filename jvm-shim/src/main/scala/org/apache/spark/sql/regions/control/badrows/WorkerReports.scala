package org.apache.spark.sql.regions.control.badrows

import java.io.{ByteArrayOutputStream, File, RandomAccessFile}
import java.nio.{ByteBuffer, ByteOrder, MappedByteBuffer}
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8

import scala.io.Source
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

  /** Those that were not asked for yet. */
  def fresh(): Seq[WorkerReport] = {
    val end = length.getLong(0)
    if (end == read) Nil
    else {
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

/** A pickled Python function, wrapped by what runs in workers beside it; written by hand, since the driver may have no Python. */
private[badrows] object WorkerCommand {
  private lazy val source: Array[Byte] = {
    val stream = getClass.getResourceAsStream("/org/apache/spark/sql/regions/control/badrows/bad_rows_worker.py")
    try Source.fromInputStream(stream, UTF_8.name).mkString.getBytes(UTF_8)
    finally stream.close()
  }

  /** `exec(source, scope); scope["wrap"](command, settings)`, as opcodes of pickle's protocol 3. */
  def wrapped(command: Array[Byte], settings: Map[String, Any]): Array[Byte] = {
    val out = new ByteArrayOutputStream(source.length + command.length + 1000)
    def op(codes: Int*): Unit = codes.foreach(out.write)
    def global(module: String, name: String): Unit = out.write(s"c$module\n$name\n".getBytes(UTF_8))
    def sized(code: Char, bytes: Array[Byte]): Unit = {
      op(code)
      out.write(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes.length).array)
      out.write(bytes)
    }
    def text(bytes: Array[Byte]): Unit = sized('X', bytes)
    val (protocol, tuple2) = (0x80, 0x86)
    op(protocol, 3)
    // The scope, kept as number 0. Its name keeps the file from taking itself for a program.
    op('}', 'q', 0)
    text("__name__".getBytes(UTF_8))
    text("spark_regions_bad_rows".getBytes(UTF_8))
    op('s', '0')
    global("builtins", "exec")
    text(source)
    op('h', 0, tuple2, 'R', '0')
    global("operator", "getitem")
    op('h', 0)
    text("wrap".getBytes(UTF_8))
    op(tuple2, 'R')
    sized('B', command)
    text(Frames.json.writeValueAsBytes(settings))
    op(tuple2, 'R', '.')
    out.toByteArray
  }
}
