package org.apache.spark.sql.regions.profile

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}
import org.apache.spark.sql.regions.{Guard, wire}

/**
 * Follows executions, stages and tasks, and tells `observe` what each signed query really did, and `ran` also which plans of it ran, and in which
 * execution. All on Spark's listener thread, so the maps need no lock.
 */
final class ProfileListener(
    registry: QueryRegistry,
    observe: wire.Event => Unit,
    ran: (wire.Executed, RanPlans, Long) => Unit = (_, _, _) => ())
    extends SparkListener with Logging {
  val metrics = new StageMetrics
  val ends = new QueryEnds

  private val executionsKept = 1000
  private val stagesOf = mutable.LinkedHashMap.empty[Long, mutable.LinkedHashMap[Int, StageSums]]
  private val running = mutable.HashMap.empty[Int, StageSums]

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
        if (stagesOf.size > executionsKept) forget(stagesOf.head._1)
      }
    case end: SparkListenerSQLExecutionEnd => guarded("an execution's end") {
        try ended(end)
        finally forget(end.executionId)
      }
    case _ =>
  }

  private def forget(execution: Long): Unit =
    stagesOf.remove(execution).foreach(_.keysIterator.foreach(running.remove))

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
            val executed = new ExecutedQuery(walked, sums.values.toSeq, failed)
            val event = ProfileListener.event(query, executed, end.duration / 1e9, failed)
            observe(event)
            ran(event, RanPlans((number +: walked.queries).distinct, executed.loads), end.executionId)
          }
        } finally ends.fire(QueryEnd(number, qe, failed, end.time))
        logDebug(
          s"Profiled query $number, ${walked.operators.size} operators, in ${(System.nanoTime() - began) / 1000} µs")
      }
    }
  }

  private def guarded(where: String)(body: => Unit): Unit =
    try body
    catch { case error: Throwable if Guard.isOurs(error) => Guard.warnOnce(where, error) }
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

  /** The `executed` event of docs/protocol.md. */
  def event(query: RegisteredQuery, ran: ExecutedQuery, seconds: Double, failed: Boolean): wire.Executed = {
    val observed = ran.nodes
    // Equal lineage means equal rows: what a reused exchange skipped is known from where it was computed.
    val rowsByLineage = query.nodes.flatMap(node =>
      node.signature.flatMap(signature => observed.get(node.id).flatMap(_.rows).map(signature.lineage -> _))).toMap
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
        own.flatMap(_.bytes).orElse(rows.map(_ * node.rowBytes)),
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
    wire.Executed(query.query, if (failed) "failed" else "ok", seconds, ran.taskSeconds, nodes, loads)
  }
}
