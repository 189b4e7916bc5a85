package org.apache.spark.sql.regions.bridge

import java.io.{BufferedReader, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.SecureRandom
import java.util.concurrent.{CompletableFuture, TimeUnit, TimeoutException}

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.wire.{Frames, Greeting, Started}

/** A process that could not be brought up. */
final class ProcessStartException(val refusal: Refusal) extends Exception(s"${refusal.code}: ${refusal.detail}")

/**
 * What a process is started for.
 *
 * @param name for people
 * @param codes what its refusals' codes begin with
 * @param hint what to do where it does not start
 */
final case class ProcessKind(name: String, codes: String, hint: String) {
  def refusal(code: String, detail: String): Refusal = Refusal(s"${codes}_$code", detail)

  def notStartable(detail: String): ProcessStartException =
    new ProcessStartException(refusal("NOT_STARTABLE", s"$detail. Hint: $hint"))
}

/**
 * The operating system's side of the planner, and of an engine: one process, its stdin kept open for life (end-of-file tells it that
 * the driver is gone), one line read from its stdout, its stderr forwarded to the log.
 */
final class PythonProcess(process: Process, errors: StderrLog, kind: ProcessKind, executable: String) extends Logging {
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

  /**
   * What it answers to the greeting, its port above all.
   *
   * @throws ProcessStartException it does not answer in time, or is of another version
   */
  def greet(greeting: Greeting, timeoutMillis: Long): Started = {
    try send(greeting)
    catch {
      case _: IOException => /* it ended at once: reading the port says why */
    }
    val answer = readPort(timeoutMillis)
    checkVersion(greeting.version, answer.version)
    answer
  }

  private def send(greeting: Greeting): Unit = {
    stdin.write(Frames.encode(greeting) :+ '\n'.toByte)
    stdin.flush()
  }

  /** Both sides are released together, so any difference is a half-finished installation. */
  def checkVersion(own: String, version: String): Unit =
    if (version != own) {
      throw new ProcessStartException(
        kind.refusal(
          "VERSION_MISMATCH",
          s"the jar is version $own, the Python package in $executable is version $version. " +
            s"Hint: reinstall, python -m pip install spark_regions==$own"
        ))
    }

  /** The line with the port; a process that says anything else, nothing, or ends has not started. */
  private def readPort(timeoutMillis: Long): Started = {
    val line = new CompletableFuture[Option[String]]()
    val reader = new Thread(
      () => {
        try {
          val out = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
          line.complete(Option(out.readLine()))
          // Nothing more is expected, but a full pipe would block the process.
          while (out.readLine() != null) {}
        } catch { case error: IOException => line.completeExceptionally(error) }
      },
      s"spark-regions-${kind.name}-stdout"
    )
    reader.setDaemon(true)
    reader.start()
    val said =
      try line.get(timeoutMillis, TimeUnit.MILLISECONDS)
      catch {
        case _: TimeoutException => throw kind.notStartable(s"no port after $timeoutMillis ms")
        case error: java.util.concurrent.ExecutionException => throw kind.notStartable(error.getCause.toString)
      }
    said match {
      case None =>
        process.waitFor(1, TimeUnit.SECONDS)
        throw kind.notStartable(lastWords)
      case Some(text) =>
        val started =
          try Frames.json.readTree(text) match {
              case null => Started()
              case line => Started.codec.read(line, "")
            }
          catch { case _: IOException => Started() }
        if (started.error.nonEmpty) throw new ProcessStartException(Refusal(started.error, started.detail))
        if (started.port == 0) throw kind.notStartable(s"expected a line with a port, found '${text.take(200)}'")
        started
    }
  }

  /** End-of-file on stdin asks the process to end; after `graceMillis` it is not asked any more. */
  def stop(graceMillis: Long): Unit = {
    try stdin.close()
    catch { case _: IOException => }
    if (!process.waitFor(graceMillis, TimeUnit.MILLISECONDS)) {
      logWarning(s"The ${kind.name} process $pid did not end within $graceMillis ms, killing it")
      process.destroyForcibly()
    }
  }
}

object PythonProcess {
  val planner: ProcessKind = ProcessKind(
    "planner",
    "PLANNER",
    "install spark_regions into the driver's Python (3.11 or newer), or name one that has it in " +
      "spark.regions.planner.python")

  def start(kind: ProcessKind, command: Seq[String], environment: Map[String, String] = Map.empty): PythonProcess = {
    val builder = new ProcessBuilder(command.asJava)
    builder.environment().putAll(environment.asJava)
    val process =
      try builder.start()
      catch { case error: IOException => throw kind.notStartable(error.getMessage) }
    new PythonProcess(process, new StderrLog(process, kind.name), kind, command.head)
  }

  /** What a connection has to show, so that nobody else on this machine is served. */
  def newToken(): String = {
    val bytes = new Array[Byte](32)
    new SecureRandom().nextBytes(bytes)
    bytes.map(byte => f"${byte & 0xff}%02x").mkString
  }
}

/** Forwards a process's stderr, at most `perMinute` lines a minute, and remembers the last ones. */
final class StderrLog(process: Process, name: String, perMinute: Int = 200, kept: Int = 8) extends Logging {
  private var last = Vector.empty[String]
  private val levelled = "(?i).*\\b(warning|error|critical|traceback|exception)\\b.*".r

  private val thread = new Thread(() => forward(), s"spark-regions-$name-stderr")
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
          logWarning(s"$name: more than $perMinute lines a minute, dropping the rest")
        line = lines.readLine()
      }
    } catch { case _: IOException => }
  }

  private def log(text: String): Unit =
    if (levelled.matches(text)) logWarning(s"$name: $text") else logInfo(s"$name: $text")
}
