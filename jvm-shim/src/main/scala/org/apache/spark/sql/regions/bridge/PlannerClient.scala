package org.apache.spark.sql.regions.bridge

import java.util.concurrent.{CountDownLatch, ExecutionException, TimeUnit, TimeoutException}
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong, LongAdder}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.internal.Logging
import org.apache.spark.sql.regions.{Planner, Refusal}
import org.apache.spark.sql.regions.wire._

/**
 * @param command of the planner process
 * @param version of the shim; the planner's must be the same
 * @param confs startup confs, handed over on stdin
 * @param hello the first frame with its token, asked for once the application knows the rest of it
 */
final case class PlannerSettings(
    command: Seq[String],
    version: String,
    confs: Map[String, String],
    hello: String => Hello,
    startupDeadlineMillis: Long,
    environment: Map[String, String] = Map.empty,
    queueLimit: Int = 10000,
    heartbeatMillis: Long = 30000,
    hungMillis: Long = 60000)

/**
 * The planner, kept alive by one daemon thread: start, connect, wait for its end, start again after a back-off.
 *
 * {{{
 *   starting ──► up ──► down ──► (back-off) ──► up …  ──► gave up
 *       └──────► refused: not startable, wrong version, refused by the planner itself
 * }}}
 */
final class PlannerClient(
    settings: PlannerSettings,
    patience: AdaptiveDeadline,
    backoff: Backoff = new Backoff,
    breaker: Breaker = new Breaker)
    extends Planner with Logging {
  import PlannerClient._

  private val startedAt = System.nanoTime()
  private val settled = new CountDownLatch(1)
  private val ended = new CountDownLatch(1)
  private val sequence = new AtomicLong()
  private val dropped = new LongAdder()
  private val starts = new AtomicInteger()
  @volatile private var state: State = Starting
  @volatile private var process: Option[PythonProcess] = None
  @volatile private var lastClose: Option[Refusal] = None
  @volatile private var upAfterMillis = -1L

  private val keeper = new Thread(() => keepAlive(), "spark-regions-planner")
  keeper.setDaemon(true)
  keeper.start()

  def stateName: String = state.name
  def pid: Option[Long] = process.map(_.pid)
  def port: Option[Int] = Option(state).collect { case up: Up => up.port }
  def plannerVersion: Option[String] = Option(state).collect { case up: Up => up.version }

  /** Other engines that it can have parts of a query computed by; None while it is not up. */
  def engines: Option[Seq[String]] = Option(state).collect { case up: Up => up.engines }
  def observationsDropped: Long = dropped.sum()

  /** How often the process was started again. */
  def restarts: Int = math.max(0, starts.get - 1)
  def startupMillis: Option[Long] = Some(upAfterMillis).filter(_ >= 0)

  /** Why the planner will not come (back), if so. */
  def refusal: Option[Refusal] = Option(state).collect { case Refused(reason) => reason }

  override def request[A <: Answer](message: Request[A], deadlineMillis: Long)(
      implicit codec: Codec[A]): Either[Refusal, A] =
    try {
      if (deadlineMillis <= 0) Left(Refusal("PLANNER_DEADLINE", "spark.regions.planner.deadline is 0: never wait"))
      else connected.flatMap(ask(_, message, math.max(deadlineMillis, patience.millis)))
    } catch {
      case error: InterruptedException =>
        Thread.currentThread().interrupt()
        Left(Refusal("PLANNER_DEADLINE", s"interrupted while waiting: $error"))
      case error if isOurs(error) => Left(Refusal("PLANNER_PROTOCOL", error.toString))
    }

  override def observe(event: Event): Unit =
    try {
      val sent = state match {
        case up: Up => up.connection.observe(Frames.encode(event))
        case _ => false
      }
      if (!sent) dropped.increment()
    } catch { case error if isOurs(error) => dropped.increment() }

  /** Waits for the first start only; a planner that died later does not hold up queries. */
  private def connected: Either[Refusal, Up] = {
    if (state == Starting) {
      val left = settings.startupDeadlineMillis - (System.nanoTime() - startedAt) / 1000000
      if (left > 0) settled.await(left, TimeUnit.MILLISECONDS)
    }
    state match {
      case up: Up => Right(up)
      case Starting =>
        Left(Refusal("PLANNER_STARTING", s"the planner is not up after ${settings.startupDeadlineMillis} ms"))
      case Down(reason) => Left(reason)
      case Refused(reason) => Left(reason)
      case Ended => Left(Refusal("PLANNER_DOWN", "the application has ended"))
    }
  }

  private def ask[A <: Answer](up: Up, message: Request[A], deadlineMillis: Long)(
      implicit codec: Codec[A]): Either[Refusal, A] =
    if (!breaker.allows) Left(Refusal("PLANNER_DEADLINE", "not asked: it missed its last deadlines"))
    else {
      val seq = sequence.incrementAndGet()
      val end = System.nanoTime() + deadlineMillis * 1000000
      val answer = up.connection.request(seq, Frames.numbered(message, seq))
      try {
        val node = answer.get(end - System.nanoTime(), TimeUnit.NANOSECONDS)
        breaker.succeeded()
        Frames.answer[A](node).left.map(reasonOf)
      } catch {
        case _: TimeoutException =>
          up.connection.forget(seq)
          breaker.failed()
          patience.missed()
          if (up.connection.silentMillis > settings.hungMillis) killHung(up)
          Left(Refusal("PLANNER_DEADLINE", s"no answer within $deadlineMillis ms"))
        case error: ExecutionException => Left(reasonOf(error.getCause))
        case error: ProtocolException => Left(reasonOf(error))
      }
    }

  private def killHung(up: Up): Unit = {
    logWarning(s"Planner process ${up.process.pid} has not answered for ${settings.hungMillis} ms, killing it")
    up.process.kill()
  }

  /** Asks the planner to end, and makes sure that it does. */
  def close(): Unit = if (state != Ended) {
    val last = state
    state = Ended
    settled.countDown()
    last match {
      case up: Up =>
        up.connection.observe(Frames.encode[Event](End()))
        up.connection.drain(500)
      case _ =>
    }
    process.foreach(_.stop(1000))
    keeper.interrupt()
    ended.countDown()
  }

  private def keepAlive(): Unit =
    try {
      var again = true
      while (again && state != Ended) again = runOnce()
    } catch {
      case _: InterruptedException =>
      case error: Throwable =>
        refuse(Refusal("PLANNER_NOT_STARTABLE", error.toString))
        if (!isOurs(error)) throw error
    } finally settled.countDown()

  /** One life of the planner process; false when there shall be no other. */
  private def runOnce(): Boolean = {
    val isFirst = upAfterMillis < 0
    val reason =
      try {
        val up = start()
        if (isFirst) upAfterMillis = (System.nanoTime() - startedAt) / 1000000
        if (!become(up)) return false
        settled.countDown()
        logInfo(s"Planner process ${up.process.pid} is up on port ${up.port}")
        beatUntilEnd(up)
        val reason = lastClose.filter(_.code == "PLANNER_PROTOCOL")
          .getOrElse(Refusal("PLANNER_DOWN", s"the planner process ended: ${up.process.lastWords}"))
        up.connection.close(new java.io.EOFException("planner ended"))
        reason
      } catch {
        case error: ProcessStartException =>
          process.foreach(_.kill())
          if (isFirst || permanent(error.refusal.code)) {
            refuse(error.refusal)
            return false
          }
          error.refusal
      }
    if (!become(Down(reason))) return false
    backoff.next() match {
      case None =>
        refuse(Refusal("PLANNER_GAVE_UP", s"it ended too often; last: ${reason.detail}"))
        false
      case Some(delay) =>
        logWarning(s"${reason.code}: ${reason.detail}; restarting it in $delay ms")
        !ended.await(delay, TimeUnit.MILLISECONDS)
    }
  }

  private def start(): Up = {
    val token = PythonProcess.newToken()
    starts.incrementAndGet()
    val started = PythonProcess.start(PythonProcess.planner, settings.command, settings.environment)
    process = Some(started)
    if (state == Ended) {
      started.stop(0)
      throw new InterruptedException("ended while starting")
    }
    val answer = started.greet(Greeting(token, settings.version, protocol, settings.confs), startTimeoutMillis)
    lastClose = None
    try {
      val connection = new Connection(answer.port, settings.queueLimit, closed(started, _))
      val hello = connection.hello(settings.hello(token), startTimeoutMillis.toInt)
      Frames.answer[HelloAnswer](hello) match {
        case Left(error) => throw new ProcessStartException(reasonOf(error))
        case Right(known) =>
          started.checkVersion(settings.version, known.version)
          Up(answer.port, answer.version, known.engines, started, connection)
      }
    } catch {
      case error: java.io.IOException =>
        throw new ProcessStartException(Refusal("PLANNER_PROTOCOL", s"no hello: $error"))
    }
  }

  private def closed(of: PythonProcess, reason: Throwable): Unit = {
    lastClose = Some(reasonOf(reason))
    // A connection is one life: without it the process has no use.
    if (state != Ended) of.kill()
  }

  private def beatUntilEnd(up: Up): Unit =
    while (state != Ended && !up.process.endsWithin(settings.heartbeatMillis)) {
      up.connection.observe(Frames.encode[Event](Heartbeat()))
    }

  private def become(next: State): Boolean = synchronized {
    if (state == Ended) false
    else {
      state = next
      true
    }
  }

  private def refuse(reason: Refusal): Unit = if (become(Refused(reason))) {
    logWarning(s"spark_regions is inactive, queries run unchanged. ${reason.code}: ${reason.detail}")
  }
}

object PlannerClient {
  val protocol = 1
  private val startTimeoutMillis = 60000L

  private sealed abstract class State(val name: String)
  private case object Starting extends State("starting")
  private final case class Up(
      port: Int,
      version: String,
      engines: Seq[String],
      process: PythonProcess,
      connection: Connection)
      extends State("up")
  private final case class Down(reason: Refusal) extends State("down")
  private final case class Refused(reason: Refusal) extends State("refused")
  private case object Ended extends State("ended")

  private def permanent(code: String): Boolean =
    Set("PLANNER_VERSION_MISMATCH", "PROTOCOL_MISMATCH", "BAD_TOKEN").contains(code)

  private def reasonOf(error: ErrorAnswer): Refusal = Refusal(error.code, error.detail)

  private def reasonOf(error: Throwable): Refusal = error match {
    case garbage: ProtocolException => Refusal("PLANNER_PROTOCOL", garbage.getMessage)
    case other => Refusal("PLANNER_DOWN", other.toString)
  }

  private def isOurs(error: Throwable): Boolean = error.isInstanceOf[LinkageError] || NonFatal(error)
}
