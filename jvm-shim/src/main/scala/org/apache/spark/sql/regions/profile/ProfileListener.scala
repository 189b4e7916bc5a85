package org.apache.spark.sql.regions.profile

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler._
import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}
import org.apache.spark.sql.regions.{Guard, wire}

/**
 * Follows executions, stages and tasks, and tells `observe` what each signed query really did. Before, `ran` is told also which plans
 * of it ran, and in which execution, and completes the event. All on Spark's listener thread, so the maps need no lock.
 */
final class ProfileListener(
    registry: QueryRegistry,
    observe: wire.Event => Unit,
    ran: (wire.Executed, RanPlans, Long) => wire.Executed = (event, _, _) => event)
    extends SparkListener with Logging {
  val metrics = new StageMetrics
  val ends = new QueryEnds

  /** As the planner told them last. */
  @volatile var weights: Weights = Weights.fixed

  private val executionsKept = 1000
  private val stagesOf = mutable.LinkedHashMap.empty[Long, mutable.LinkedHashMap[Int, StageSums]]
  private val running = mutable.HashMap.empty[Int, StageSums]
  private val beside = new Concurrency

  /** Executions that have begun so far; what runs outside of any is not counted. */
  def begun: Long = beside.begun

  /** Those that have not ended; asked on the listeners' thread. */
  def open: Int = beside.open

  override def onJobStart(start: SparkListenerJobStart): Unit = guarded("a job's start") {
    for (properties <- Option(start.properties);
      execution <- Option(properties.getProperty(SQLExecution.EXECUTION_ID_KEY)).flatMap(_.toLongOption);
      stages <- stagesOf.get(execution);
      stage <- start.stageInfos) {
      running(stage.stageId) = stages.getOrElseUpdate(stage.stageId, new StageSums(stage.stageId))
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = guarded("a task's end") {
    metrics.add(end)
    running.get(end.stageId).foreach(_.add(end))
  }

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit = guarded("a stage's end") {
    metrics.add(completed.stageInfo)
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case start: SparkListenerSQLExecutionStart if start.sparkPlanInfo.nodeName.nonEmpty =>
      guarded("an execution's start") {
        stagesOf(start.executionId) = mutable.LinkedHashMap.empty
        beside.start(start.executionId, start.rootExecutionId.getOrElse(start.executionId))
        if (stagesOf.size > executionsKept) forget(stagesOf.head._1)
      }
    case end: SparkListenerSQLExecutionEnd => guarded("an execution's end") {
        try ended(end)
        finally forget(end.executionId)
      }
    case _ =>
  }

  private def forget(execution: Long): Unit = {
    beside.end(execution)
    stagesOf.remove(execution).foreach(_.keysIterator.foreach(running.remove))
  }

  private def ended(end: SparkListenerSQLExecutionEnd): Unit = {
    val failed = end.executionFailure.isDefined || end.errorMessage.exists(_.nonEmpty)
    // Spark tells a plan at the start only where there is one. Where analysis or planning failed, asking for it would fail
    // again, and Spark adds whoever asks to the stack trace of the user's own error.
    for (qe <- Option(end.qe); sums <- stagesOf.get(end.executionId)) {
      val began = System.nanoTime()
      val walked = PlanWalk(qe.executedPlan)
      for (number <- walked.query) {
        try {
          registry.get(number).foreach { query =>
            val executed = new ExecutedQuery(walked, sums.values.toSeq, failed, weights)
            val plans = RanPlans((number +: walked.queries).distinct, executed.loads)
            val took = plans.queries.flatMap(registry.get).map(_.took)
            val event = ProfileListener.event(query, executed, end.duration / 1e9, failed)
            observe(
              ran(
                event.copy(
                  seconds = math.max(0, event.seconds + took.map(_.beyond).sum),
                  deciding = took.map(_.seconds).sum,
                  queries = plans.queries,
                  alone = beside.alone(end.executionId)),
                plans,
                end.executionId
              ))
            if (!failed) executed.cached.foreach(cached(_, end.duration / 1e9))
          }
        } finally ends.fire(QueryEnd(number, qe, failed, end.time))
        logDebug(
          s"Profiled query $number, ${walked.operators.size} operators, in ${(System.nanoTime() - began) / 1000} µs")
      }
    }
  }

  /** A cached plan was decided on as a query of its own, and ran as a part of the one that first read it. */
  private def cached(part: ExecutedQuery, seconds: Double): Unit =
    for (number <- part.query; query <- registry.get(number)) {
      observe(ProfileListener.event(query, part, seconds, false).copy(queries = Seq(number), alone = false))
    }

  private def guarded(where: String)(body: => Unit): Unit =
    try body
    catch { case error: Throwable if Guard.isOurs(error) => Guard.warnOnce(where, error) }
}

/** Which executions ran beside another one; those that one execution started count as one. Of one thread, but for `begun`. */
private final class Concurrency {
  private val roots = mutable.LinkedHashMap.empty[Long, Long]
  private val shared = mutable.HashSet.empty[Long]
  @volatile private var count = 0L

  def begun: Long = count
  def open: Int = roots.size

  def start(execution: Long, root: Long): Unit = {
    count += 1
    roots(execution) = root
    if (roots.values.exists(_ != root)) shared ++= roots.keys
  }

  def end(execution: Long): Unit = {
    roots.remove(execution)
    shared.remove(execution)
  }

  def alone(execution: Long): Boolean = !shared(execution)
}

/**
 * What an execution ran of the plans that were decided. A subquery that was planned several times, or an exchange that is
 * reused, is in here once.
 *
 * @param queries numbers of the plans: the query's own first
 * @param loads the places that read, with what the reads took
 */
final case class RanPlans(queries: Seq[Long], loads: Map[LoadMark, Observed])

object ProfileListener {

  /** Of each text column of which a shuffle counted bytes; of several such shuffles, the one with the fewest texts tells most. */
  private def textBytes(nodes: Seq[RegisteredNode], observed: Map[Int, Observed]): Map[ExprId, Double] =
    nodes.filter(_.texts.nonEmpty).sortBy(-_.texts.size).flatMap { node =>
      val each = for (own <- observed.get(node.id); rows <- own.rows if rows > 0; bytes <- own.bytes)
        yield math.max(1.0, (bytes.toDouble / rows - node.fixedBytes) / node.texts.size)
      each.toSeq.flatMap(width => node.texts.map(_ -> width))
    }.toMap

  /** The `executed` event of docs/protocol.md. */
  def event(query: RegisteredQuery, ran: ExecutedQuery, seconds: Double, failed: Boolean): wire.Executed = {
    val observed = ran.nodes
    // Equal lineage means equal rows: what a reused exchange skipped is known from where it was computed.
    val rowsByLineage = query.nodes.flatMap(node =>
      node.signature.flatMap(signature => observed.get(node.id).flatMap(_.rows).map(signature.lineage -> _))).toMap
    val texts = textBytes(query.nodes, observed)
    val nodes = query.nodes.map { node =>
      val own = observed.get(node.id)
      val rows = own.flatMap(_.rows).orElse(node.signature.flatMap(signature => rowsByLineage.get(signature.lineage)))
      val exchanged = ran.exchanges.get(node.id)
      wire.RanNode(
        node.id,
        node.operator,
        node.children,
        node.signature.map(_.lineage),
        node.signature.map(_.core),
        node.signature.toSeq.flatMap(_.conjuncts),
        node.signature.toSeq.flatMap(_.columns),
        rows,
        own.flatMap(_.bytes).orElse(rows.map(counted => (counted * node.rowBytes(texts)).toLong)),
        own.flatMap(_.seconds),
        ran.regions.get(node.id),
        exchanged.map(_.kind),
        exchanged.flatMap(_.bytes)
      )
    }
    val loads = query.loads.groupBy(_.entry).toSeq.map { case (entry, places) =>
      val found = places.flatMap(ran.loads.get)
      val seconds = found.flatMap(_.seconds)
      wire.RanLoad(
        entry,
        Option.when(seconds.nonEmpty)(seconds.sum),
        found.flatMap(_.rows).headOption,
        found.flatMap(_.bytes).headOption)
    }
    val outcome = if (failed) "failed" else "ok"
    wire.Executed(query.query, outcome, seconds, ran.taskSeconds, nodes, loads, ran.timed, ran.fitted,
      writeSeconds = ran.writeSeconds)
  }
}
