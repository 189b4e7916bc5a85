package org.apache.spark.sql.regions.bridge

import java.io.{BufferedReader, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{CompletableFuture, TimeUnit, TimeoutException}

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.wire.{Frames, Greeting, Started}

/** A planner that could not be brought up. */
final class PlannerStartException(val refusal: Refusal) extends Exception(s"${refusal.code}: ${refusal.detail}")

/**
 * The operating system's side of the planner: one process, its stdin kept open for life (end-of-file tells it that the
 * driver is gone), one line read from its stdout, its stderr forwarded to the log.
 */
final class PlannerProcess(process: Process, errors: StderrLog) extends Logging {
  private val stdin = process.getOutputStream

  def pid: Long = process.pid()
  def isAlive: Boolean = process.isAlive
  def endsWithin(millis: Long): Boolean = process.waitFor(millis, TimeUnit.MILLISECONDS)
  def kill(): Unit = process.destroyForcibly()

  /** How the process ended, with the end of what it said. */
  def lastWords: String = {
    errors.join()
    val code = if (process.isAlive) "" else s"exit code ${process.exitValue()}"
    (code +: errors.tail).filter(_.nonEmpty).mkString("; ")
  }

  def send(greeting: Greeting): Unit = {
    stdin.write(Frames.encode(greeting) :+ '\n'.toByte)
    stdin.flush()
  }

  /** The line with the port; a planner that says anything else, nothing, or ends has not started. */
  def readPort(timeoutMillis: Long): Started = {
    val line = new CompletableFuture[Option[String]]()
    val reader = new Thread(
      () => {
        try {
          val out = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
          line.complete(Option(out.readLine()))
          // Nothing more is expected, but a full pipe would block the planner.
          while (out.readLine() != null) {}
        } catch { case error: IOException => line.completeExceptionally(error) }
      },
      "spark-regions-planner-stdout"
    )
    reader.setDaemon(true)
    reader.start()
    val said =
      try line.get(timeoutMillis, TimeUnit.MILLISECONDS)
      catch {
        case _: TimeoutException => throw notStartable(s"no port after $timeoutMillis ms")
        case error: java.util.concurrent.ExecutionException => throw notStartable(error.getCause.toString)
      }
    said match {
      case None =>
        process.waitFor(1, TimeUnit.SECONDS)
        throw notStartable(lastWords)
      case Some(text) =>
        val started =
          try Frames.json.readTree(text) match {
              case null => Started()
              case line => Started.codec.read(line, "")
            }
          catch { case _: IOException => Started() }
        if (started.error.nonEmpty) throw new PlannerStartException(Refusal(started.error, started.detail))
        if (started.port == 0) throw notStartable(s"expected a line with a port, found '${text.take(200)}'")
        started
    }
  }

  private def notStartable(detail: String): PlannerStartException = PlannerProcess.notStartable(detail)

  /** End-of-file on stdin asks the planner to end; after `graceMillis` it is not asked any more. */
  def stop(graceMillis: Long): Unit = {
    try stdin.close()
    catch { case _: IOException => }
    if (!process.waitFor(graceMillis, TimeUnit.MILLISECONDS)) {
      logWarning(s"Planner process $pid did not end within $graceMillis ms, killing it")
      process.destroyForcibly()
    }
  }
}

object PlannerProcess {
  def start(command: Seq[String], environment: Map[String, String] = Map.empty): PlannerProcess = {
    val builder = new ProcessBuilder(command.asJava)
    builder.environment().putAll(environment.asJava)
    val process =
      try builder.start()
      catch { case error: IOException => throw notStartable(error.getMessage) }
    new PlannerProcess(process, new StderrLog(process))
  }

  def notStartable(detail: String): PlannerStartException = new PlannerStartException(
    Refusal(
      "PLANNER_NOT_STARTABLE",
      s"$detail. Hint: install spark_regions into the driver's Python (3.11 or newer), or name one that has it in " +
        "spark.regions.planner.python"
    ))
}

/** Forwards the planner's stderr, at most `perMinute` lines a minute, and remembers the last ones. */
final class StderrLog(process: Process, perMinute: Int = 200, kept: Int = 8) extends Logging {
  private var last = Vector.empty[String]
  private val levelled = "(?i).*\\b(warning|error|critical|traceback|exception)\\b.*".r

  private val thread = new Thread(() => forward(), "spark-regions-planner-stderr")
  thread.setDaemon(true)
  thread.start()

  def tail: Seq[String] = synchronized(last)
  def join(): Unit = thread.join(500)

  private def forward(): Unit = {
    val lines = new BufferedReader(new InputStreamReader(process.getErrorStream, UTF_8))
    var minute = 0L
    var inMinute = 0
    try {
      var line = lines.readLine()
      while (line != null) {
        val text = line.take(2000)
        synchronized { last = (last :+ text).takeRight(kept) }
        val now = System.nanoTime() / 60000000000L
        if (now != minute) { minute = now; inMinute = 0 }
        inMinute += 1
        if (inMinute <= perMinute) log(text)
        else if (inMinute == perMinute + 1)
          logWarning(s"planner: more than $perMinute lines a minute, dropping the rest")
        line = lines.readLine()
      }
    } catch { case _: IOException => }
  }

  private def log(text: String): Unit =
    if (levelled.matches(text)) logWarning(s"planner: $text") else logInfo(s"planner: $text")
}
