package org.apache.spark.sql.regions.platforms

import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.internal.Logging
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.bridge.{Backoff, PlannerClient, ProcessKind, ProcessStartException, PythonProcess}
import org.apache.spark.sql.regions.wire.{Greeting, Hello}

/**
 * @param command of the engine's process
 * @param version of the shim; the process's must be the same
 * @param confs startup confs, handed over on stdin
 * @param hello the first frame of a connection, with its token
 */
private[regions] final case class EngineSettings(
    command: Seq[String],
    version: String,
    confs: Map[String, String],
    hello: String => Hello,
    environment: Map[String, String] = Map.empty)

/** A running process: its port, and what a connection has to say first. */
private[platforms] final class RunningEngine(val process: PythonProcess, val port: Int, val hello: Hello)

/** The engine's process, started when a statement is to run first, and again after it ended. */
private[regions] final class EngineProcess(settings: EngineSettings, backoff: Backoff = new Backoff) extends Logging {
  import EngineProcess._

  @volatile private var running: Option[RunningEngine] = None
  private var closed = false
  private var notBefore = Long.MinValue
  @volatile private var gone: Option[Refusal] = None
  private val prepared = new AtomicBoolean

  /** Why there will be no engine any more, if so. */
  def refusal: Option[Refusal] = gone

  def isUp: Boolean = running.exists(_.process.isAlive)

  /** Starts it behind the query that may want it, once; who wants it in fact waits for that. */
  def prepare(): Unit = if (!prepared.getAndSet(true)) {
    val starting = new Thread(() => { up(); () }, "spark-regions-engine-start")
    starting.setDaemon(true)
    starting.start()
  }

  /** The process, and the seconds that its start took if nobody had started it before. */
  def up(): Either[Refusal, (RunningEngine, Double)] = synchronized {
    val known = running.filter(_.process.isAlive)
    known match {
      case Some(engine) => Right((engine, 0.0))
      case None if gone.isDefined => Left(gone.get)
      case None if closed => Left(kind.refusal("DOWN", "the application has ended"))
      case None =>
        ended()
        if (gone.isDefined) Left(gone.get)
        else if (System.nanoTime() < notBefore) Left(kind.refusal("DOWN", "it ended, and is not yet started again"))
        else started()
    }
  }

  /** Of a process that does not answer any more. */
  def kill(engine: RunningEngine): Unit = {
    engine.process.kill()
    engine.process.endsWithin(stopMillis)
  }

  def close(): Unit = {
    val last = synchronized {
      closed = true
      running
    }
    last.foreach(_.process.stop(stopMillis))
  }

  /** The process ended by itself: another one follows, at first at once, then later and later. */
  private def ended(): Unit = running.foreach { engine =>
    running = None
    val words = engine.process.lastWords
    backoff.next() match {
      case Some(delay) =>
        logWarning(s"The engine's process ended: $words")
        notBefore = System.nanoTime() + (delay - backoffFirstMillis) * 1000000
      case None => refuse(kind.refusal("GAVE_UP", s"it ended too often; last: $words"))
    }
  }

  private def started(): Either[Refusal, (RunningEngine, Double)] = {
    val began = System.nanoTime()
    var process: Option[PythonProcess] = None
    try {
      val token = PythonProcess.newToken()
      val own = PythonProcess.start(kind, settings.command, settings.environment)
      process = Some(own)
      val greeting = Greeting(token, settings.version, PlannerClient.protocol, settings.confs)
      val engine = new RunningEngine(own, own.greet(greeting, startMillis).port, settings.hello(token))
      running = Some(engine)
      process = None
      logInfo(s"The engine's process ${own.pid} is up on port ${engine.port}")
      Right((engine, (System.nanoTime() - began) / 1e9))
    } catch {
      case error: ProcessStartException =>
        // What is not installed, or does not fit, is not so the next time either.
        refuse(error.refusal)
        Left(error.refusal)
    } finally process.foreach(_.kill())
  }

  private def refuse(reason: Refusal): Unit = {
    gone = Some(reason)
    logWarning(s"spark_regions runs nothing on another engine. ${reason.code}: ${reason.detail}")
  }
}

private[regions] object EngineProcess {
  val kind: ProcessKind = ProcessKind(
    "engine",
    "ENGINE",
    "install spark_regions[duckdb] into the driver's Python (spark.regions.planner.python), or set " +
      "spark.regions.platforms to off")

  private val startMillis = 60000L
  private val stopMillis = 1000L

  /** The first delay of a back-off: the first restart waits for nothing. */
  private val backoffFirstMillis = 500L
}
