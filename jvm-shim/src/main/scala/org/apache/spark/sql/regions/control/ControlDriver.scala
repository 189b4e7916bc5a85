package org.apache.spark.sql.regions.control

import java.lang.ref.WeakReference
import java.util.concurrent.{Callable, ConcurrentHashMap, ExecutionException, Executors, RejectedExecutionException}
import java.util.concurrent.{TimeUnit, TimeoutException}
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonProcessingException

import org.apache.spark.{SparkContext, SparkEnv, Success}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}
import org.apache.spark.scheduler._
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, BindReferences, Cast, Expression}
import org.apache.spark.sql.catalyst.expressions.{SubqueryExpression, Unevaluable}
import org.apache.spark.sql.catalyst.optimizer.{ComputeCurrentTime, ReplaceExpressions}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, Project}
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{BoundedMap, Guard, Planner, RegionsConf}
import org.apache.spark.sql.regions.ui.events.Redaction
import org.apache.spark.sql.regions.wire.{BreakAt, Control, ControlCommand, ControlState, CountOrder, CountRows}
import org.apache.spark.sql.regions.wire.{Frames, ProtocolException, WaitingRow}
import org.apache.spark.sql.types.DoubleType
import org.apache.spark.util.{ThreadUtils, Utils}

/**
 * Control of an application, on its driver: what holds, as the planner decides it, is kept here and told to executors;
 * what they tell is handed to the planner. One thread does it all in order.
 *
 * @param edited called before the first row may be left out
 */
final class ControlDriver(sc: SparkContext, planner: Planner, edited: () => Unit)
    extends ThreadSafeRpcEndpoint with Logging {
  import ControlDriver._

  override val rpcEnv: RpcEnv = SparkEnv.get.rpcEnv
  private val thread = Executors.newSingleThreadScheduledExecutor { (work: Runnable) =>
    val made = new Thread(work, "spark-regions-control")
    made.setDaemon(true)
    made
  }
  private val pauseMillis = sc.conf.get(RegionsConf.controlPauseTimeout)
  private val ids = new AtomicLong()
  private val executors = new ConcurrentHashMap[String, RpcEndpointRef]()
  private val running = new ConcurrentHashMap[Long, RunningTask]()
  private val queries = new ConcurrentHashMap[Long, String]()

  // With the lock of this: what holds, for whom.
  private val probes = mutable.LinkedHashMap.empty[Long, DriverProbe]
  private var state = ControlState(sc.appName)
  private var told = Holding(0, paused = false, Map.empty, Map.empty)
  private var note = ""
  private val params = mutable.LinkedHashMap.empty[String, Param]
  private val took = mutable.Queue.empty[Took]
  private val taken = new TakenValues(mostAttempts)

  /** Python functions that can be replaced, with the number of their arguments; and those in whose places others came. */
  private val functions = mutable.LinkedHashMap.empty[String, Int]
  private var replacements = Vector.empty[Array[Byte]]

  /** By stage, the shuffle that it writes. */
  private val written = BoundedMap[Int, Option[Int]](mostStages)

  /** Attempts that wait for what they have to repeat. */
  private val asking = new ConcurrentHashMap[Long, () => Unit]()

  // Of the thread alone.
  private val counting = mutable.HashMap.empty[Int, mutable.HashMap[Long, Counts]]
  private var resumes: Option[java.util.concurrent.Future[_]] = None

  def start(): this.type = {
    rpcEnv.setupEndpoint(endpoint, this)
    // A queue of its own: Spark drops events of one that others hold up.
    sc.listenerBus.addToQueue(listener, endpoint)
    this
  }

  def close(): Unit = {
    thread.shutdownNow()
    rpcEnv.stop(self)
  }

  // ---- What is there ----------------------------------------------------------------------------------------------

  /** A probe is about to run: breakpoints hold for it from its first row on. */
  private[control] def register(plan: ProbeExec): ProbeInfo = synchronized {
    val execution = Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).map(_.toLong).getOrElse(-1L)
    val id = ids.incrementAndGet()
    val kind = ProbeRule.name(plan.child)
    val alike = probes.values.filter(_.execution == execution).map(_.name).toSet
    val name = if (!alike(kind)) kind else Iterator.from(2).map(n => s"$kind $n").find(!alike(_)).get
    val redaction = Redaction(sc.conf, SQLConf.get.stringRedactionPattern)
    val asWritten = ProbeRule.shown(plan.child).mapExpressions(ReplaceableFunctions.without)
    val detail = redaction(asWritten.simpleString(SQLConf.get.maxToStringFields))
    val probe = DriverProbe(id, execution, name, detail, plan.output, plan.session, new WeakReference(plan),
      refusal(plan))
    probes(id) = probe
    while (probes.size > mostProbes) probes.remove(probes.head._1)
    if (state.breakpoints.exists(_.operator == name)) tell()
    ProbeInfo(id, name, plan.schema, Some(told))
  }

  /** A query has a parameter: it can be set from now on. */
  private[control] def declare(param: Param): Param = synchronized {
    params.get(param.name).filter(_.dataType != param.dataType).foreach(known =>
      throw new IllegalArgumentException(
        s"Found the parameter ${param.name} of ${param.dataType.sql}, expected ${known.dataType.sql} as before. " +
          "Hint: another name"))
    params(param.name) = param
    param
  }

  /** A query calls a Python function: it can be replaced from now on. */
  private[control] def replaceable(name: String, arguments: Int): Unit = synchronized(functions.put(name, arguments))

  /** A command to set a parameter, with the value as Spark shows it. */
  private def typed(asked: ControlCommand): Either[String, ControlCommand] =
    synchronized(params.get(asked.name)).fold[Either[String, ControlCommand]](Right(asked))(param =>
      Param.read(asked.value, param.dataType).map(value => asked.copy(value = Param.text(value))))

  /** Why a row cannot have the values that it is given. */
  private def unfit(asked: ControlCommand): Option[String] = {
    def name(row: WaitingRow) = s"${row.attempt.stage}.${row.attempt.partition}.${row.attempt.number}"
    synchronized(state.held).find(name(_) == asked.row).flatMap(GivenValues.unfit(_, asked.values))
  }

  /** Why the query must not be paused. */
  private def refusal(plan: ProbeExec): Option[String] = {
    val conf = plan.session.sessionState.conf
    def on(key: String) = conf.getConfString(key, sc.conf.get(key, "false")).toBoolean
    val kills =
      Seq("spark.sql.execution.pyspark.udf.killOnIdleTimeout", "spark.python.worker.killOnIdleTimeout").find(on)
    def broadcasts = plan.exists(_.isInstanceOf[BroadcastExchangeLike]) && !conf.adaptiveExecutionEnabled
    kills.map(key =>
      s"Found $key=true, which ends paused Python workers, expected false. Hint: set it to false").orElse(
      Option.when(broadcasts && conf.broadcastTimeout > 0 && conf.broadcastTimeout * 1000 <= pauseMillis)(
        s"Found ${SQLConf.BROADCAST_TIMEOUT.key}=${conf.broadcastTimeout} without adaptive execution, which would fail in a " +
          s"pause, expected more than ${RegionsConf.controlPauseTimeout.key}. Hint: set it to -1"))
  }

  /** Operators of queries that run, and of plans that run again. */
  private def live(snapshots: Seq[Snapshot] = Nil): Seq[DriverProbe] = {
    val seen = snapshots.flatMap(_.tasks).flatMap(_.rows.keys).toSet
    synchronized(probes.values.filter(p => queries.containsKey(p.execution) || seen(p.id)).toSeq)
  }

  private val listener = new SparkListener {
    override def onTaskStart(start: SparkListenerTaskStart): Unit = {
      val task = start.taskInfo
      running.put(task.taskId, RunningTask(start.stageId, task.partitionId, task.executorId))
      answer(task.taskId)
    }
    override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit =
      written.putIfAbsent(submitted.stageInfo.stageId, submitted.stageInfo.shuffleDepId)
    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = {
      running.remove(end.taskInfo.taskId)
      if (end.reason == Success) taken.ended(end.taskInfo.taskId)
    }
    override def onExecutorRemoved(removed: SparkListenerExecutorRemoved): Unit = {
      executors.remove(removed.executorId)
      later(lost(removed.executorId))
    }
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case start: SparkListenerSQLExecutionStart => queries.put(start.executionId, start.description)
      case end: SparkListenerSQLExecutionEnd => queries.remove(end.executionId)
      case _ =>
    }
  }

  // ---- What holds -------------------------------------------------------------------------------------------------

  def paused: Boolean = synchronized(state.paused)

  /** Makes `told` anew. The lock is held. */
  private def tell(everyRow: Boolean = false): Unit = {
    val points = for (each <- state.breakpoints; probe <- probes.values if probe.name == each.operator)
      yield
        if (each.sql.isEmpty) Some(probe.id -> Point(each.number, each.action, "", None, counts = true))
        else probe.compiled(each.sql, each.target > 0).fold(
          why => {
            logWarning(s"breakpoint ${each.number} does not hold for ${probe.name}: $why")
            None
          },
          code => Some(probe.id -> Point(each.number, each.action, each.sql, Some(code), each.target > 0))
        )
    val answers =
      state.held.filter(_.going).map(row => Holding.key(row) -> Answered(row.answer, row.fixed))
    told = Holding(
      told.version + 1,
      state.paused,
      points.flatten.groupMap(_._1)(_._2),
      answers.toMap ++ Option.when(everyRow)(Holding.everyRow -> Answered("pass")),
      state.params ++ state.replaced.zipWithIndex.map { case (name, before) =>
        ReplaceableFunctions.version(name) -> (before + 1).toString
      },
      replacements.take(state.replaced.size)
    )
  }

  private def send(): Unit = {
    val message = told.bytes
    executors.values.forEach(_.send(message))
  }

  /** What follows from commands, or why nothing does. On the thread. */
  private def command(commands: Seq[ControlCommand], operators: Seq[String] = Nil): Either[String, Unit] =
    planner.request(Control(known(operators), commands), deadlineMillis) match {
      case Left(why) =>
        Left(s"Found no planner (${why.code}: ${why.detail}), expected one that decides. Hint: try again")
      case Right(answer) if answer.error.nonEmpty => Left(answer.error)
      case Right(answer) => adopt(answer.state)
    }

  private def known(operators: Seq[String]): ControlState =
    synchronized(
      state.copy(operators = operators, declared = params.keys.toSeq, functions = functions.keys.toSeq))

  private def adopt(next: ControlState): Either[String, Unit] = {
    val fresh = next.breakpoints.filterNot(state.breakpoints.contains).filter(_.sql.nonEmpty)
    val alive = if (fresh.isEmpty) Nil else live(snapshots())
    val unfit = fresh.flatMap { each =>
      val tried =
        alive.filter(_.name == each.operator).map(probe => synchronized(probe.compiled(each.sql, each.target > 0)))
      if (tried.exists(_.isRight)) None else tried.collectFirst { case Left(why) => why }
    }
    if (unfit.nonEmpty) Left(unfit.head)
    else synchronized {
      if (next.edited && !state.edited) edited()
      if (leavesOut(next)) taken.skip()
      counting.filterInPlace((number, _) => next.breakpoints.exists(_.number == number))
      val changed = next.version != state.version
      state = next
      if (changed) {
        if (!state.paused) note = ""
        tell()
        send()
        resumeLater()
      }
      Right(())
    }
  }

  private def resumeLater(): Unit =
    if (!paused) {
      resumes.foreach(_.cancel(false))
      resumes = None
    } else if (resumes.isEmpty) resumes = Some(
      thread.schedule((() => Guard.run(sc.conf, "the end of a pause")(resumeAnyway())): Runnable, pauseMillis,
        TimeUnit.MILLISECONDS))

  private def resumeAnyway(): Unit = {
    logWarning(s"the application has been paused for ${RegionsConf.controlPauseTimeout.key}: it goes on")
    resumes = None
    say(ControlCommand("resume", own))
  }

  // ---- What executors tell ------------------------------------------------------------------------------------------

  override def receive: PartialFunction[Any, Unit] = { case bytes: Array[Byte] =>
    ControlMessage[ControlMessage](bytes) match {
      // At once: the next attempt may ask already.
      case change: Took =>
        taken.took(change)
        synchronized {
          took.enqueue(change)
          if (took.size > mostChanges) took.dequeue()
        }
      case other => later(heard(other))
    }
  }

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case (executor: String, ref: RpcEndpointRef) =>
      executors.put(executor, ref)
      context.reply(synchronized(told).bytes)
    case bytes: Array[Byte] =>
      begins(ControlMessage[Starting](bytes))(earlier => context.reply(earlier.bytes))
  }

  private def skips: Boolean = synchronized(leavesOut(state))

  /** Whether rows are other ones than those that the operator got. */
  private def leavesOut(state: ControlState): Boolean =
    state.breakpoints.exists(_.action == "skip") || state.held.exists(row => Set("skip", "fix", "null")(row.answer))

  /** Answered once Spark's listeners have heard of it, and so of all that was before: its stage, and attempts that are done. */
  private def begins(starting: Starting)(reply: Earlier => Unit): Unit = {
    val number = starting.attempt.number
    asking.put(number, () => reply(taken.started(starting, output(starting.attempt.stage), skips)))
    if (running.containsKey(number)) answer(number)
    else thread.schedule((() => unheard(number)): Runnable, listenerMillis, TimeUnit.MILLISECONDS)
  }

  private def answer(attempt: Long): Unit = Option(asking.remove(attempt)).foreach(_())

  private def unheard(attempt: Long): Unit = if (asking.containsKey(attempt)) {
    logWarning(
      s"Spark has dropped events of task attempt $attempt: it may not take the values that an earlier one took")
    answer(attempt)
  }

  /** What a stage writes; the same for all of its attempts, also if Spark has dropped what says it. */
  private def output(stage: Int): String =
    written.computeIfAbsent(stage, _ => None).fold(s"stage $stage")(shuffle => s"shuffle $shuffle")

  private def later(work: => Unit): Unit =
    if (!thread.isShutdown) thread.execute(() => Guard.run(sc.conf, "control of running tasks")(work))

  private def heard(message: ControlMessage): Unit = message match {
    case Held(row) => say(ControlCommand("hold", own, held = Some(GivenValues.redacted(sc.conf, row))))
    case Gone(attempt) =>
      if (state.held.exists(_.attempt == attempt)) say(ControlCommand("letgo", own, attempt = Some(attempt)))
    case Failing(attempt, why) => sc.cancelStage(attempt.stage, s"stopped at a breakpoint: $why")
    // Another task may have told it.
    case Broken(number, error) => if (state.breakpoints.exists(_.number == number)) {
        logWarning(s"breakpoint $number is gone: $error")
        say(ControlCommand("clear", own, number = number))
      }
    case counts: Counts => count(counts)
    case other => logWarning(s"spark-regions: a driver takes no $other")
  }

  /** What has to happen; nothing is left to wait for where it does not: who would answer is gone. */
  private def say(commands: ControlCommand*): Unit = command(commands).left.foreach { why =>
    logWarning(s"$why; the application goes on without breakpoints")
    synchronized {
      state = ControlState(sc.appName, version = state.version + 1, edited = state.edited, params = state.params,
        replaced = state.replaced)
      note = why
      tell(everyRow = true)
      send()
      counting.clear()
      resumeLater()
    }
  }

  private def count(counts: Counts): Unit = state.breakpoints.find(_.number == counts.number).foreach { point =>
    val first = !counting.contains(point.number)
    val shares = counting.getOrElseUpdate(point.number, mutable.HashMap.empty)
    if (counts.attempt != null) shares(counts.attempt.number) = counts
    val asked = CountRows(point.number, point.target, first, counts.event, Option(counts.attempt), counts.round,
      counts.produced, point.sql.nonEmpty)
    planner.request(asked, deadlineMillis) match {
      case Left(why) =>
        logWarning(s"breakpoint ${point.number} is gone: ${why.code}: ${why.detail}")
        say(ControlCommand("clear", own, number = point.number))
      case Right(answer) => answer.orders.foreach(ordered(point, shares, _))
    }
  }

  private def ordered(point: BreakAt, shares: mutable.HashMap[Long, Counts], order: CountOrder): Unit = {
    def send(message: ControlMessage): Unit =
      shares.get(order.attempt).flatMap(share => Option(executors.get(share.executor))).foreach(_.send(message.bytes))
    order.order match {
      case "target" => send(Target(order.attempt, point.number, order.round, order.amount, order.last))
      case "ask" => send(Ask(order.attempt, point.number, order.round))
      case "wait" =>
        val over = Counts("", null, point.number, "waited", order.round)
        thread.schedule((() => Guard.run(sc.conf, "a breakpoint")(count(over))): Runnable,
          (order.seconds * 1e6).toLong, TimeUnit.MICROSECONDS)
      case _ =>
        synchronized {
          note = if (point.sql.isEmpty) s"${point.operator} has given ${order.amount.toLong} rows"
          else s"sum(${point.sql}) of ${point.operator} is ${BigDecimal(order.amount).bigDecimal.toPlainString}"
        }
        say(ControlCommand("pause", own), ControlCommand("clear", own, number = point.number))
    }
  }

  private def lost(executor: String): Unit = {
    for (shares <- counting.values.toSeq; share <- shares.values.toSeq if share.executor == executor)
      count(share.copy(event = "lost"))
    state.held.filterNot(row => running.containsKey(row.attempt.number)).foreach(row =>
      say(ControlCommand("letgo", own, attempt = Some(row.attempt))))
  }

  // ---- What users ask -----------------------------------------------------------------------------------------------

  /**
   * Does what a command says, and tells what holds: `{"state":…,"note":…}`, of a pause with what stands and what does not;
   * `{"error":…}` if it cannot be done.
   *
   * @param text a ControlCommand of docs/protocol.md; `state`, `operators` and `sizes` only ask
   * @param seconds how long a pause is waited for
   */
  def ask(text: String, seconds: Double): String = answered(text) { asked =>
    val refused = asked.command match {
      case "state" | "operators" | "sizes" => None
      case other if !commands.contains(other) || asked.by == own =>
        Some(
          s"Found the command $other of ${asked.by}, expected ${commands.mkString(", ")} of another. Hint: docs/control.md")
      case "pause" if refusals.nonEmpty => refusals.headOption
      case "answer" => unfit(asked).orElse(await(command(Seq(asked))).left.toOption)
      case "set" => typed(asked).flatMap(typed => await(command(Seq(typed)))).left.toOption
      case _ => await(command(Seq(asked), live(snapshots()).map(_.name))).left.toOption
    }
    refused.toLeft(
      asked.command match {
        case "pause" => standing(seconds) ++ held
        case "operators" => operators() ++ held
        case "sizes" => Map("sizes" -> sizes())
        case _ => held
      })
  }

  /**
   * The same of the command `replace`, which is for the driver's own program alone: who may end a query from a page may not run code.
   *
   * @param code the function that takes the place, pickled
   */
  def replace(text: String, code: Array[Byte]): String = answered(text) { asked =>
    await {
      synchronized { replacements = replacements.take(state.replaced.size) :+ code }
      command(Seq(asked))
    }.map(_ => held)
  }

  private def answered(text: String)(act: ControlCommand => Either[String, Map[String, Any]]): String = {
    val answer =
      try act(ControlCommand.codec.read(Frames.json.readTree(text), "")).left.map(error)
      catch {
        case wrong @ (_: ProtocolException | _: JsonProcessingException) => Left(error(wrong.getMessage))
        case _: RejectedExecutionException | _: TimeoutException =>
          Left(error(s"Found ${sc.appName} without an answer, expected one that runs. Hint: it may be about to end"))
      }
    Frames.json.writeValueAsString(answer.merge)
  }

  private def error(why: String): Map[String, Any] = Map("error" -> why)

  private def held: Map[String, Any] = synchronized(
    Map(
      "state" -> Frames.tree(state.copy(held = state.held.map(GivenValues.hidden(sc.conf, _)),
          answered = state.answered.map(GivenValues.hidden(sc.conf, _)))),
      "note" -> note,
      "params" -> params.map { case (name, param) =>
        name -> Map("value" -> state.params.getOrElse(name, param.default), "type" -> param.dataType.sql)
      },
      "functions" -> functions.toMap,
      "changes" -> took.map(each =>
        Map(
          "name" -> each.name,
          "value" -> each.value,
          "stage" -> each.attempt.stage,
          "partition" -> each.attempt.partition,
          "attempt" -> each.attempt.number,
          "row" -> each.row,
          "replayed" -> each.replayed,
          "reason" -> each.reason
        )).toSeq
    ))

  private def refusals: Seq[String] =
    speculates(sc).toSeq ++ live().flatMap(_.refusal)

  private def await[T](work: => T): T =
    try thread.submit((() => work): Callable[T]).get(answerMillis, TimeUnit.MILLISECONDS)
    catch { case error: ExecutionException => throw error.getCause }

  private def snapshots(): Seq[Snapshot] = {
    val asked = executors.asScala.toSeq.map { case (id, ref) =>
      id -> ref.ask[Array[Byte]]("snapshot", snapshotTimeout)
    }
    asked.flatMap { case (id, future) =>
      try Some(ControlMessage[Snapshot](ThreadUtils.awaitResult(future, snapshotTimeout.duration)))
      catch {
        case NonFatal(error) =>
          logInfo(s"executor $id does not say what its tasks do: $error")
          None
      }
    }
  }

  /** Waits until every running task stands, and says which do not. */
  private def standing(seconds: Double): Map[String, Any] = {
    val until = System.nanoTime() + (seconds * 1e9).toLong
    var (stand, run) = stands()
    while (run.nonEmpty && paused && System.nanoTime() < until) {
      Thread.sleep(lookMillis)
      val now = stands()
      stand = now._1
      run = now._2
    }
    Map("standing" -> stand, "running" -> run)
  }

  private def stands(): (Int, Seq[Map[String, Any]]) = {
    val known = snapshots().flatMap(_.tasks).map(task => task.attempt -> task).toMap
    val (stand, run) = running.asScala.toSeq.sortBy(_._1).partition { case (id, _) => known.get(id).exists(_.stands) }
    stand.size -> run.map { case (id, task) =>
      val why = known.get(id).fold("it has not come to an operator of a query")(
        _.stack.find(_.contains("spark")).getOrElse("it runs"))
      Map("stage" -> task.stage, "partition" -> task.partition, "attempt" -> id, "executor" -> task.executor,
        "why" -> why)
    }
  }

  private def operators(): Map[String, Any] = {
    val seen = snapshots()
    val alive = live(seen)
    val known = alive.map(_.id).toSet
    val shown = alive.map { probe =>
      Map(
        "id" -> probe.id,
        "name" -> probe.name,
        "query" -> probe.execution,
        "detail" -> probe.detail,
        "description" -> queries.getOrDefault(probe.execution, ""),
        "passed" -> seen.map(_.passed.getOrElse(probe.id, 0L)).sum,
        "columns" -> probe.output.map(column => Seq(column.name, column.dataType.sql)),
        "inputs" -> Option(probe.plan.get).toSeq.flatMap(plan => below(plan.child)).filter(known)
      )
    }
    val tasks = seen.flatMap(_.tasks).map(task => task.copy(row = GivenValues.redacted(sc.conf, task.row)))
    Map("operators" -> shown, "tasks" -> tasks, "python" -> seen.map(each => each.executor -> each.python).toMap)
  }

  /** By operator that runs, the sizes that Spark has of it: its SQL metrics, as of each executor's last heartbeat. */
  private def sizes(): Map[Long, Map[String, String]] = live(snapshots()).groupBy(_.execution).flatMap {
    case (execution, alive) =>
      val known = alive.head.session.sharedState.statusStore.executionMetrics(execution)
      alive.map { probe =>
        val metrics = Option(probe.plan.get).toSeq.flatMap(plan => ProbeRule.shown(plan.child).metrics.values)
        val found = for {
          metric <- metrics.filter(_.metricType == "size")
          name <- metric.name
          // The sum over tasks comes before what the smallest and the largest are.
          sum <- known.get(metric.id).flatMap(_.linesIterator.toSeq.lastOption).map(_.takeWhile(_ != '(').trim)
        } yield name -> sum
        probe.id -> found.toMap
      }
  }

  private def below(plan: SparkPlan): Seq[Long] = plan match {
    case probe: ProbeExec => probe.registered.map(_.id).toSeq
    case stage: QueryStageExec => below(stage.plan)
    case adaptive: AdaptiveSparkPlanExec => below(adaptive.executedPlan)
    case other => other.children.flatMap(below)
  }
}

object ControlDriver {
  val endpoint = "spark-regions-control"
  val off = "Found no control in this application, expected spark.regions.control.enabled=true at its start. " +
    "Hint: --conf spark.regions.control.enabled=true; spark_regions_status() says whether the plugin is active"

  /** What to ask for all that runs. */
  val look = """{"command": "operators", "by": "a page"}"""
  private val deadlineMillis = 5000L
  private val answerMillis = 20000L
  private val lookMillis = 5L
  private val commands = Seq("pause", "resume", "break", "clear", "answer", "set", "takeover", "leave")
  private val own = "driver"
  private val mostProbes = 5000
  private val mostChanges = 5000
  private val mostStages = 10000
  private val mostAttempts = 100000
  private val listenerMillis = 10000L
  private lazy val snapshotTimeout = new RpcTimeout(scala.concurrent.duration.FiniteDuration(2, TimeUnit.SECONDS),
    "spark.regions.control")

  @volatile private var driver: Option[ControlDriver] = None

  private def speculates(sc: SparkContext): Option[String] =
    Option.when(sc.conf.getBoolean("spark.speculation", defaultValue = false))(
      "Found spark.speculation=true, which starts other attempts of paused tasks, expected false. " +
        "Hint: --conf spark.speculation=false")

  /** Why nobody can be asked about rows that fail. */
  def unasked(sc: SparkContext): Option[String] = if (driver.nonEmpty) speculates(sc)
  else Some(
    s"Found ${RegionsConf.onBadRow.key}=pause, expected ${RegionsConf.controlEnabled.key}=true with it. " +
      s"Hint: --conf ${RegionsConf.controlEnabled.key}=true when the application starts")

  /** Of the application of this JVM, where control is on. */
  def current: Option[ControlDriver] = driver

  def start(sc: SparkContext, planner: Planner, edited: () => Unit): Option[ControlDriver] = {
    driver = Option.when(sc.conf.get(RegionsConf.controlEnabled))(new ControlDriver(sc, planner, edited).start())
    driver
  }

  def stop(): Unit = {
    driver.foreach(_.close())
    driver = None
  }

  private final case class RunningTask(stage: Int, partition: Int, executor: String)

  /** @param plan gone once nobody can run it again */
  private final case class DriverProbe(
      id: Long,
      execution: Long,
      name: String,
      detail: String,
      output: Seq[Attribute],
      session: org.apache.spark.sql.classic.SparkSession,
      plan: WeakReference[ProbeExec],
      refusal: Option[String]) {
    private val known = mutable.HashMap.empty[(String, Boolean), Either[String, Array[Byte]]]

    /**
     * A condition on its rows for executors, which have no analyzer; or Spark's message why there is none.
     *
     * @param summed a number of each row instead, as a double
     */
    def compiled(sql: String, summed: Boolean): Either[String, Array[Byte]] = known.getOrElseUpdate(
      (sql, summed),
      try {
        val parsed = session.sessionState.sqlParser.parseExpression(sql)
        val rows = LocalRelation(output)
        val asked = if (summed) Project(Seq(Alias(Cast(parsed, DoubleType), "value")()), rows)
        else Filter(parsed, rows)
        val analyzed = session.sessionState.analyzer.executeAndCheck(asked, new QueryPlanningTracker)
        val found = ComputeCurrentTime(ReplaceExpressions(analyzed)).collectFirst {
          case Filter(each, _) => each
          case Project(Seq(Alias(each, _)), _) => each
        }.map(BindReferences.bindReference(_, output))
        found.filterNot(_.exists(each => each.isInstanceOf[Unevaluable] || each.isInstanceOf[SubqueryExpression]))
          .map(Utils.serialize[Expression](_)).toRight(
            s"Found the condition $sql, expected what is computed of one row in the JVM. Hint: compare columns of the operator")
      } catch { case NonFatal(error) => Left(error.getMessage) }
    )
  }
}
