package org.apache.spark.sql.regions.platforms

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream, IOException, InputStream}
import java.net.{InetAddress, InetSocketAddress, Socket}
import java.nio.channels.{Channels, ReadableByteChannel}
import java.util.concurrent.{CompletableFuture, ExecutionException, Executors, TimeUnit, TimeoutException}

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.ipc.ReadChannel
import org.apache.arrow.vector.ipc.message.MessageSerializer
import org.apache.arrow.vector.types.pojo.{ArrowType, Field, Schema}

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowConverters
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.wire.{Frames, HelloAnswer, ProtocolException, RanStatement, RunStatement}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils

/**
 * What a statement gave.
 *
 * @param batches Arrow record batches, each as bytes
 * @param schema of them, as Spark's types
 * @param bytes of the batches
 * @param seconds from the request to the last row, the start of the process included; `startSeconds` of them for that
 */
private[regions] final case class EngineRows(
    batches: IndexedSeq[Array[Byte]],
    schema: StructType,
    rows: Long,
    bytes: Long,
    seconds: Double,
    startSeconds: Double)

private[regions] object EngineRows {

  /** Rows that are good until the next one is asked for. All have to be, where no task ends to free their memory. */
  def decode(batches: Iterator[Array[Byte]], schema: StructType): Iterator[InternalRow] =
    if (batches.isEmpty) Iterator.empty
    else ArrowConverters.fromBatchIterator(batches, schema, zone, false, false, TaskContext.get())

  /** Instants are microseconds since 1970 under whatever name of a zone. */
  private val zone = "UTC"

  /** What is not Spark's own form of the types; ArrowColumnVector reads by the form that it is told. */
  def misfit(found: Schema, schema: StructType): Option[String] = {
    val wanted = ArrowUtils.toArrowSchema(schema, zone, false).getFields.asScala.toSeq
    val given = found.getFields.asScala.toSeq
    if (given.size != wanted.size) Some(s"${given.size} columns, expected ${wanted.size}")
    else
      given.zip(wanted).find { case (one, other) => !same(one, other) }
        .map { case (one, other) => s"${one.getName}: ${one.getType}, expected ${other.getType}" }
  }

  private def same(given: Field, wanted: Field): Boolean =
    given.getDictionary == null && given.getChildren.isEmpty && wanted.getChildren.isEmpty &&
      ((given.getType, wanted.getType) match {
        case (one: ArrowType.Timestamp, other: ArrowType.Timestamp) =>
          one.getUnit == other.getUnit && (one.getTimezone == null) == (other.getTimezone == null)
        case (one, other) => one == other
      })
}

/** Asks the engine's process for the rows of statements, each on a connection of its own, the end of which ends the statement. */
private[regions] final class EngineClient(sc: SparkContext, process: EngineProcess) {
  import EngineClient._

  def refusal: Option[Refusal] = process.refusal
  def isUp: Boolean = process.isUp
  def prepare(): Unit = process.prepare()
  def close(): Unit = process.close()

  /**
   * The rows of a statement, or why there are none.
   *
   * @throws InterruptedException the thread was interrupted, or the query's jobs were cancelled: it is not to go on without the rows
   */
  def run(statement: RunStatement, schema: StructType): Either[Refusal, EngineRows] =
    process.up().flatMap { case (engine, startSeconds) =>
      val began = System.nanoTime()
      val socket = new Socket()
      val waiting = new WaitingJob(sc, s"${EngineProcess.kind.name}: ${statement.id}")
      val answer = CompletableFuture.supplyAsync[Either[Refusal, EngineRows]](
        () => converse(socket, engine, statement, schema), threads)
      try {
        val end = began + (statement.deadlineSeconds * 1e9).toLong
        val found = awaited(answer, waiting, began, end).getOrElse {
          // It knows of the deadline itself, and has not kept it.
          process.kill(engine)
          Left(Refusal("DEADLINE", s"no answer within ${statement.deadlineSeconds} s"))
        }
        found.map(rows =>
          rows.copy(seconds = (System.nanoTime() - began) / 1e9 + startSeconds, startSeconds = startSeconds))
      } catch {
        case error: ExecutionException => Left(reason(error.getCause, engine))
      } finally {
        socket.close()
        waiting.end()
      }
    }

  private def awaited(
      answer: CompletableFuture[Either[Refusal, EngineRows]],
      waiting: WaitingJob,
      began: Long,
      end: Long): Option[Either[Refusal, EngineRows]] = {
    var found: Option[Either[Refusal, EngineRows]] = None
    while (found.isEmpty && System.nanoTime() < end + graceNanos) {
      try found = Some(answer.get(pollMillis, TimeUnit.MILLISECONDS))
      catch {
        case _: TimeoutException =>
          // No NonFatal: Spark keeps those with the plan, and raises them again when it is to run once more.
          waiting.cancelled.foreach(why => throw new InterruptedException(why))
          if (System.nanoTime() - began > waiting.afterNanos) waiting.begin()
      }
    }
    found
  }

  private def converse(
      socket: Socket,
      engine: RunningEngine,
      statement: RunStatement,
      schema: StructType): Either[Refusal, EngineRows] = {
    socket.setTcpNoDelay(true)
    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress, engine.port), connectMillis)
    val in = new DataInputStream(new BufferedInputStream(socket.getInputStream, bufferBytes))
    val out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream, bufferBytes))
    Frames.write(out, Frames.encode(engine.hello))
    Frames.write(out, Frames.encode(statement))
    out.flush()
    for {
      _ <- Frames.answer[HelloAnswer](Frames.read(in)._1).left.map(error => Refusal(error.code, error.detail))
      ran <- Frames.answer[RanStatement](Frames.read(in)._1).left.map(error => Refusal(error.code, error.detail))
      _ <- ran.error.map(why => Refusal(why.code, why.detail)).toLeft(())
      rows <- received(in, schema, ran.rows)
    } yield rows
  }

  /** The stream whole: an end of the connection between two batches looks like the stream's own. */
  private def received(in: InputStream, schema: StructType, rows: Long): Either[Refusal, EngineRows] = {
    val channel = Channels.newChannel(in)
    EngineRows.misfit(MessageSerializer.deserializeSchema(new ReadChannel(channel)), schema) match {
      case Some(what) => Left(Refusal("RESULT_SCHEMA", what))
      case None =>
        val batches = this.batches(channel)
        val bytes = batches.map(_.length.toLong).sum
        val found = batches.map(EngineClient.rows).sum
        if (found == rows) Right(EngineRows(batches, schema, rows, bytes, 0, 0))
        else throw new ProtocolException(s"$found rows, expected $rows")
    }
  }

  private def batches(channel: ReadableByteChannel): IndexedSeq[Array[Byte]] =
    ArrowConverters.getBatchesFromStream(channel).toVector

  private def reason(error: Throwable, engine: RunningEngine): Refusal = error match {
    case garbage: ProtocolException => EngineProcess.kind.refusal("PROTOCOL", garbage.getMessage)
    case broken: IOException =>
      val words = if (engine.process.endsWithin(endMillis)) engine.process.lastWords else broken.toString
      EngineProcess.kind.refusal("DOWN", words)
    case other => EngineProcess.kind.refusal("ERROR", other.toString)
  }
}

private object EngineClient {

  /** A thread waits where it cannot be interrupted: in the read of a socket, which ends when that is closed. */
  private val threads = Executors.newCachedThreadPool { (task: Runnable) =>
    val thread = new Thread(task, "spark-regions-engine")
    thread.setDaemon(true)
    thread
  }

  private val pollMillis = 50L
  private val connectMillis = 2000

  /** A process that has just died is still there for a moment. */
  private val endMillis = 500L
  private val bufferBytes = 1 << 16

  /** The process ends a statement at its deadline; after so much more it is taken for dead. */
  private val graceNanos = 5L * 1000 * 1000 * 1000

  /** Of a record batch, by its header. */
  private def rows(batch: Array[Byte]): Long = {
    val message = MessageSerializer.readMessage(
      new ReadChannel(Channels.newChannel(new java.io.ByteArrayInputStream(batch))))
    val header = new org.apache.arrow.flatbuf.RecordBatch()
    message.getMessage.header(header).asInstanceOf[org.apache.arrow.flatbuf.RecordBatch].length()
  }
}
