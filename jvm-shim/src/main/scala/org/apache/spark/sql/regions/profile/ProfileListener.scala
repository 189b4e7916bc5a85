package org.apache.spark.sql.regions.profile

import java.util.{LinkedHashMap => JLinkedMap, Map => JMap}

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}
import org.apache.spark.sql.regions.Guard

/**
 * Follows executions, stages and tasks, and tells `observe` what each signed query really did, and `ran` also which plans of it ran, and in which
 * execution. All on Spark's listener thread, so the maps need no lock.
 */
final class ProfileListener(
    registry: QueryRegistry,
    observe: JMap[String, Any] => Unit,
    ran: (JMap[String, Any], RanPlans, Long) => Unit = (_, _, _) => ())
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
        } finally ends.fire(number, qe, failed)
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
  def event(query: RegisteredQuery, ran: ExecutedQuery, seconds: Double, failed: Boolean): JMap[String, Any] = {
    val observed = ran.nodes
    // Equal lineage means equal rows: what a reused exchange skipped is known from where it was computed.
    val rowsByLineage = query.nodes.flatMap(node =>
      node.signature.flatMap(signature => observed.get(node.id).flatMap(_.rows).map(signature.lineage -> _))).toMap
    val nodes = query.nodes.map { node =>
      val own = observed.get(node.id)
      val rows = own.flatMap(_.rows).orElse(node.signature.flatMap(signature => rowsByLineage.get(signature.lineage)))
      val fields = map("id" -> node.id, "operator" -> node.operator, "children" -> node.children)
      node.signature.foreach { signature =>
        fields.put("lineage", signature.lineage)
        fields.put("core", signature.core)
        fields.put("conjuncts", signature.conjuncts)
        fields.put("columns", signature.columns)
      }
      fields.put("rows", orNull(rows))
      fields.put("bytes", orNull(own.flatMap(_.bytes).orElse(rows.map(_ * node.rowBytes))))
      fields.put("seconds", orNull(own.flatMap(_.seconds)))
      fields.put("region", orNull(ran.regions.get(node.id)))
      ran.exchanges.get(node.id).foreach { exchanged =>
        fields.put("exchange", exchanged.kind)
        exchanged.bytes.foreach(fields.put("exchangeBytes", _))
      }
      fields
    }
    val loads = query.loads.groupBy(_.entry).toSeq.map { case (entry, places) =>
      val found = places.flatMap(ran.loads.get)
      val seconds = found.flatMap(_.seconds)
      map(
        "entry" -> entry,
        "seconds" -> orNull(Option.when(seconds.nonEmpty)(seconds.sum)),
        "rows" -> orNull(found.flatMap(_.rows).headOption),
        "bytes" -> orNull(found.flatMap(_.bytes).headOption)
      )
    }
    map(
      "type" -> "observe",
      "event" -> "executed",
      "query" -> query.query,
      "outcome" -> (if (failed) "failed" else "ok"),
      "seconds" -> seconds,
      "taskSeconds" -> ran.taskSeconds,
      "nodes" -> nodes,
      "loads" -> loads
    )
  }

  private def orNull(value: Option[Any]): Any = value.orNull

  private def map(pairs: (String, Any)*): JLinkedMap[String, Any] = {
    val result = new JLinkedMap[String, Any]()
    pairs.foreach { case (key, value) => result.put(key, value) }
    result
  }
}
