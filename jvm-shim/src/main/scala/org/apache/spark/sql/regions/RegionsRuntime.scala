package org.apache.spark.sql.regions

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import scala.jdk.CollectionConverters._

import org.apache.spark.{SPARK_VERSION, SparkContext, SparkEnv}
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{
  SparkListener,
  SparkListenerApplicationEnd,
  SparkListenerApplicationStart,
  SparkListenerEvent
}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.control.badrows.BadRows
import org.apache.spark.sql.regions.bridge.{AdaptiveDeadline, PlannerClient, PlannerPython, PlannerSettings}
import org.apache.spark.sql.regions.control.ControlDriver
import org.apache.spark.sql.regions.platforms.{EngineClient, EngineProcess, EngineSettings, Engines}
import org.apache.spark.sql.regions.profile.{ProfileListener, QueryRegistry, RanPlans}
import org.apache.spark.sql.regions.rules.{ChangedFilters, RestingLoops}
import org.apache.spark.sql.regions.skew.{SkewRule, StageLoads, StageTimes}
import org.apache.spark.sql.regions.ui.{LiveTab, RegionsExplain, RegionsSource}
import org.apache.spark.sql.regions.ui.events.{RegionsEvents, StateReport}
import org.apache.spark.sql.regions.verify.Verifier
import org.apache.spark.sql.regions.wire.{Executed, Hello, Status, StatusAnswer}

/** All of ours that lives as long as one SparkContext: the planner process, the listeners, what was decided. */
final class RegionsRuntime private (val sc: SparkContext) extends Logging {
  val counters = new Counters
  val decisions = new Ring[Decision](1000)
  val queries = new QueryRegistry(1000)
  private val numbers = new AtomicLong()

  val patience = new AdaptiveDeadline
  private val client = new PlannerClient(
    PlannerSettings(
      command = PlannerPython.command(sc.conf),
      version = Shim.version,
      confs = RegionsRuntime.startupConfs(sc),
      hello = RegionsRuntime.hello(sc, _),
      startupDeadlineMillis = sc.conf.get(
        RegionsConf.plannerStartupDeadline)
    ),
    patience
  )

  val planner: Planner = client
  val plannerDeadlineMillis: Long = sc.conf.get(RegionsConf.plannerDeadline)
  val state = new StateReport(sc, client, counters)
  val events = new RegionsEvents(sc, state)
  val profile: ProfileListener = new ProfileListener(queries, client.observe, ran)
  val recycling = new Recycling(sc, client, counters, decisions, profile, events)
  val verifier = new Verifier(sc, recycling, profile)
  private[regions] val changed = new ChangedFilters
  private[regions] val resting = new RestingLoops
  val engines = new Engines(
    new EngineClient(
      sc,
      new EngineProcess(
        EngineSettings(
          command = PlannerPython.command(sc.conf, module = "spark_regions.platforms.duckdb"),
          version = Shim.version,
          confs = RegionsRuntime.startupConfs(sc),
          hello = RegionsRuntime.hello(sc,
            _)
        ))
    ))

  /** Whether parts of a query can be for another engine; a planner that is not up yet may say so. */
  def anyEngine(conf: SQLConf): Boolean =
    engines.refusal.isEmpty && !BadRows.handled(conf) && (conf.getConf(RegionsConf.platforms) match {
      case "off" => false
      case "auto" => client.engines.forall(_.nonEmpty)
      case _ => true
    })

  /** Whether it is known that there is one, so that rows may come in its order. */
  def hasEngine(conf: SQLConf): Boolean =
    anyEngine(conf) && (conf.getConf(RegionsConf.platforms) != "auto" || client.engines.isDefined)
  val metrics = new RegionsSource(counters, events.savings, state, () => events.dropped)
  val badRows = new BadRows(sc)
  val stageTimes = new StageTimes(1000)
  val stageLoads = new StageLoads(1000)
  private val keys = new UnknownKeys

  /** Reached when our listeners, which share a queue of Spark's, have been told of everything up to the application's end. */
  private val heardAll = new CountDownLatch(1)
  private val lifetime = new SparkListener {
    // The metrics are named after the application, whose id a plugin's start is too early for.
    override def onApplicationStart(start: SparkListenerApplicationStart): Unit = measure()
    override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = {
      heardAll.countDown()
      RegionsRuntime.stop(sc)
    }
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case start: SparkListenerSQLExecutionStart => keys.check(start.modifiedConfigs.keys)
      case end: SparkListenerSQLExecutionEnd => recycling.ties.release(end.executionId)
      case _ =>
    }
  }

  private def ran(event: Executed, plans: RanPlans, execution: Long): Executed = {
    verifier.ran(event, plans)
    events.ran(event.copy(routes = engines.taken(event.query +: plans.queries)), plans, execution)
  }

  private def open(): this.type = {
    keys.check(sc.conf.getAll.map(_._1))
    explainInExplain()
    sc.addSparkListener(profile)
    sc.addSparkListener(stageTimes)
    sc.addSparkListener(stageLoads)
    sc.addSparkListener(lifetime)
    ControlDriver.start(sc, client, () => alter())
    LiveTab.attach(sc)
    if (sc.conf.contains("spark.app.id")) measure()
    Guard.run(sc.conf, "handing the jar to the executors")(Shim.addToExecutors(sc))
    this
  }

  /** A debugger leaves out rows of what runs: from here on nothing that is computed is kept for others. */
  private def alter(): Unit = {
    verifier.forget()
    recycling.alter()
  }

  private val analyzed = new AtomicBoolean()

  /** Whether it is asked for the first time. */
  private[regions] def firstAnalyzer(): Boolean = analyzed.compareAndSet(false, true)

  private val measured = new AtomicBoolean()

  private def measure(): Unit = if (measured.compareAndSet(false, true)) {
    Guard.run(sc.conf, "the metrics")(SparkEnv.get.metricsSystem.registerSource(metrics))
  }

  /** Sessions copy the context's settings when they are made, which is after this. */
  private def explainInExplain(): Unit = {
    val key = "spark.sql.extendedExplainProviders"
    val ours = classOf[RegionsExplain].getName
    val given = sc.conf.get(key, "").split(",").map(_.trim).filter(_.nonEmpty)
    if (!given.contains(ours)) sc.conf.set(key, (given :+ ours).mkString(","))
  }

  /** False once the planner is known not to come. */
  def active: Boolean = reason.isEmpty
  def reason: Option[Refusal] = client.refusal

  def nextQuery(): Long = numbers.incrementAndGet()

  def status(session: SparkSession): Seq[(String, String)] = {
    keys.check(session.conf.getAll.keys)
    val strategy = session.conf.get(RegionsConf.recycleStrategy.key)
    // Asked for on the caller's behalf only: a status that waits would be no status.
    val live = client.request(Status(), math.min(plannerDeadlineMillis, 1000)).toOption
    val engine = events.savings.engine
    val settled = Seq(
      "active" -> active.toString,
      "reason" -> reason.map(why => s"${why.code}: ${why.detail}").getOrElse(""),
      "mode" -> session.conf.get(RegionsConf.mode.key),
      "strategy" -> strategy,
      "skew" -> SkewRule.state(session),
      "spark.version" -> SPARK_VERSION,
      "shim.version" -> Shim.version,
      "planner.state" -> client.stateName,
      "planner.version" -> client.plannerVersion.getOrElse(""),
      "planner.pid" -> client.pid.map(_.toString).getOrElse(""),
      "planner.port" -> client.port.map(_.toString).getOrElse(""),
      "planner.startupMillis" -> client.startupMillis.map(_.toString).getOrElse(""),
      "planner.rssBytes" -> live.map(_.rssBytes.toString).getOrElse(""),
      "planner.reasons" -> live.map(told).getOrElse(""),
      "planner.observationsDropped" -> client.observationsDropped.toString,
      "planner.weights" -> profile.weights.name,
      "store.dir" -> RegionsRuntime.storeDir(sc),
      "store.entries" -> live.map(_.entries.toString).getOrElse(""),
      "store.bytes" -> live.map(_.bytes.toString).getOrElse(""),
      "engine.statements" -> engine.count.toString,
      "engine.predictedSeconds" -> engine.predictedSeconds.toString,
      "engine.seconds" -> engine.seconds.toString,
      "engine.rows" -> engine.rows.toString,
      "engine.bytes" -> engine.bytes.toString,
      "badRows" -> badRows.count.toString,
      "unknownKeys" -> keys.messages.mkString(" ")
    )
    settled ++ counters.snapshot.map { case (name, count) => s"counter.$name" -> count.toString }
  }

  /** What the planner has against recycling, or did about the store when it opened it. */
  private def told(live: StatusAnswer): String =
    live.reasons.map(why => s"${why.code}: ${why.detail}").mkString("; ")

  private var closed = false

  /**
   * Whoever comes second waits for the first: Spark's listener bus ends after the plugin does, and takes no event then. Other threads
   * than that of our listeners may come first, when those have not heard yet of the last query's end: it is waited for.
   */
  private def close(): Unit = {
    if (numbers.get() > 0) heardAll.await(RegionsRuntime.lastEventsMillis, TimeUnit.MILLISECONDS)
    end()
  }

  private def end(): Unit = synchronized {
    if (!closed) {
      closed = true
      ControlDriver.stop()
      Guard.run(sc.conf, "the quarantine")(badRows.close())
      verifier.close()
      recycling.close()
      engines.close()
      events.close()
      client.close()
    }
  }
}

object RegionsRuntime extends Logging {
  private val lastEventsMillis = 5000L
  private val runtimes = new ConcurrentHashMap[SparkContext, Either[Refusal, RegionsRuntime]]()

  /** The runtime of a context, started by the first caller; Left with the reason why there is none. */
  def start(sc: SparkContext): Either[Refusal, RegionsRuntime] =
    if (sc.isStopped && !runtimes.containsKey(sc)) Left(Refusal("PLANNER_DOWN", "the application has ended"))
    else runtimes.computeIfAbsent(sc, _ => attempt(sc))

  def of(session: SparkSession): Either[Refusal, RegionsRuntime] = session match {
    case known: classic.SparkSession => start(known.sparkContext)
    case other => Left(Refusal("INTERNAL_ERROR", s"unexpected session class ${other.getClass.getName}"))
  }

  /** The runtime of the JVM's SparkContext where it is already running. */
  def current: Option[RegionsRuntime] = runtimes.values.asScala.collectFirst { case Right(runtime) => runtime }

  def stop(sc: SparkContext): Unit = {
    Option(runtimes.get(sc)).foreach(
      _.foreach { runtime =>
        Guard.run(sc.conf, "the end of the application")(runtime.close())
      })
    runtimes.remove(sc)
  }

  def status(session: SparkSession): Seq[(String, String)] = of(session) match {
    case Right(runtime) => runtime.status(session)
    case Left(why) => Seq("active" -> "false", "reason" -> s"${why.code}: ${why.detail}",
        "spark.version" -> SPARK_VERSION, "shim.version" -> Shim.version)
  }

  def storeDir(sc: SparkContext): String = sc.conf.get(RegionsConf.recycleDir) match {
    case "" => s"${System.getProperty("user.home")}/.spark_regions"
    case given => given
  }

  private def attempt(sc: SparkContext): Either[Refusal, RegionsRuntime] = {
    var begun: Option[RegionsRuntime] = None
    try {
      if (!RegionsConf.isEnabled(sc.conf)) Left(Refusal("DISABLED", "spark.regions.enabled is false"))
      else Shim.unfit match {
        case Some(why) =>
          logWarning(s"spark_regions is inactive. ${why.code}: ${why.detail}")
          if (RegionsConf.isStrict(sc.conf)) throw new IllegalStateException(s"${why.code}: ${why.detail}")
          Left(why)
        case None =>
          val runtime = new RegionsRuntime(sc)
          begun = Some(runtime)
          Right(runtime.open())
      }
    } catch {
      case error: Throwable if Guard.isOurs(error) =>
        Guard.warnOnce("its start", error)
        begun.foreach(_.close())
        if (RegionsConf.isStrict(sc.conf)) throw error
        Left(
          error match {
            case invalid: IllegalArgumentException => Refusal("INVALID_CONF", invalid.getMessage)
            case other => Refusal("INTERNAL_ERROR", other.toString)
          })
    }
  }

  private def startupConfs(sc: SparkContext): Map[String, String] =
    RegionsConf.entries.map(entry =>
      entry.key -> sc.conf.getOption(entry.key).getOrElse(RegionsConf.defaultString(entry))).toMap ++
      Map(RegionsConf.recycleDir.key -> storeDir(sc))

  /** The id exists only once the task scheduler runs, later than a plugin's start. */
  private def hello(sc: SparkContext, token: String): Hello = {
    val end = System.nanoTime() + 60L * 1000000000
    while (sc.applicationId == null && !sc.isStopped && System.nanoTime() < end) Thread.sleep(5)
    Hello(token, PlannerClient.protocol, Option(sc.applicationId).getOrElse(""), sc.appName, sc.sparkUser)
  }
}

/** Remembers the unknown keys, and warns once for each. */
final class UnknownKeys extends Logging {
  private val seen = new ConcurrentHashMap[String, String]()

  def check(given: Iterable[String]): Unit = RegionsConf.unknown(given).foreach { case (key, suggestion) =>
    val message = RegionsConf.unknownMessage(key, suggestion)
    if (seen.putIfAbsent(key, message) == null) logWarning(message)
  }

  def messages: Seq[String] = seen.asScala.toSeq.sortBy(_._1).map(_._2)
}
