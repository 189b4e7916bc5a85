package org.apache.spark.sql.regions.ui.pages

import scala.util.Try

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.execution.ui.{SQLAppStatusStore, SQLExecutionUIData}
import org.apache.spark.sql.regions.ui.store.QueryRecord
import org.apache.spark.status.AppStatusStore

/**
 * A SQL execution with all that was planned for it: the query, its subqueries, and plans that were made on the way; or one query
 * without an execution.
 *
 * @param id Spark's number, -1 where there is none
 * @param queries at least one
 * @param status "running", "ok", "failed", "unfinished" (its application has ended without it), "planned" without an execution
 * @param error first line of what it failed with, empty where that is not known
 * @param began milliseconds since the epoch
 * @param wallSeconds from its start to its end, or till now
 */
private[pages] final case class Execution(
    id: Long,
    queries: Seq[QueryRecord],
    description: String,
    status: String,
    error: String,
    began: Long,
    wallSeconds: Option[Double]) {

  /** Those whose figures are the execution's. */
  val ran: Seq[QueryRecord] = queries.filter(_.partOf >= 0)

  /** Spark plans the subqueries of a query before the query. */
  val main: QueryRecord = queries.find(q => q.partOf == q.query).getOrElse(queries.maxBy(_.query))

  /** The main query, its subqueries that ran, then what did not run. */
  val inOrder: Seq[QueryRecord] =
    queries.sortBy(q => (if (q.query == main.query) 0 else if (q.partOf >= 0) 1 else 2, -q.query))

  /** What is known before it has ended is that of its main query. */
  private val counted = if (ran.isEmpty) Seq(main) else ran

  def planningMillis: Double = counted.map(_.planningMillis).sum
  def restMillis: Double = queries.map(_.planningMillis).sum - planningMillis
  def declined: Int = counted.map(_.declined).sum
  def predicted: Double = ran.map(_.predicted).sum
  def saved: Option[Double] = Some(ran.map(_.saved).filterNot(_.isNaN)).filter(_.nonEmpty).map(_.sum)
  def estimated: Option[Double] = Some(ran.map(_.estimated).filterNot(_.isNaN)).filter(_.nonEmpty).map(_.sum)
  def seconds: Option[Double] = main.ended(_.seconds).orElse(if (ended) wallSeconds else None)
  def ended: Boolean = status == "ok" || status == "failed"

  /** Kinds of actions with how many of each: at places that ran, or as decided on the main query where it has not ended. */
  def done: Map[String, Int] =
    (if (ran.isEmpty) Seq(main.applied) else ran.map(_.done)).flatten.groupMapReduce(_._1)(_._2)(_ + _)
  def counts: Boolean = ran.nonEmpty
}

/** Spark's own knowledge of the executions: their texts, and whether and how they ended. */
private[pages] final class Executions(sql: SQLAppStatusStore, app: AppStatusStore) {

  def apply(id: Long, queries: Seq[QueryRecord]): Execution = {
    val known = if (id < 0) None else sql.execution(id)
    val outcome = queries.map(_.outcome).find(_.nonEmpty)
    val ended = known.flatMap(_.completionTime).map(_.getTime)
    Execution(
      id,
      queries,
      known.map(_.description).getOrElse(""),
      if (id < 0) "planned" else known.map(status(_, outcome)).orElse(outcome).getOrElse("unfinished"),
      known.flatMap(_.errorMessage).flatMap(_.linesIterator.map(_.trim).find(_.nonEmpty)).getOrElse("").take(500),
      known.map(_.submissionTime).getOrElse(queries.map(_.time).minOption.getOrElse(0L)),
      known.flatMap(e =>
        ended.orElse(if (over) None else Some(System.currentTimeMillis()))
          .map(end => math.max(0, end - e.submissionTime) / 1000.0))
    )
  }

  /** Milliseconds since the epoch between which each job of an execution ran. */
  def jobs(id: Long): Seq[(Long, Long)] =
    if (id < 0) Nil
    else sql.execution(id).toSeq.flatMap(_.jobs.keys).flatMap { job =>
      Try(app.job(job)).toOption.flatMap { data =>
        for (start <- data.submissionTime; end <- data.completionTime) yield (start.getTime, end.getTime)
      }
    }

  private def status(known: SQLExecutionUIData, outcome: Option[String]): String =
    known.executionStatus match {
      case "FAILED" => "failed"
      case "COMPLETED" => "ok"
      case _ => outcome.getOrElse(if (over) "unfinished" else "running")
    }

  /** In the History Server the application has mostly ended. */
  def over: Boolean = Try(app.applicationInfo().attempts.forall(_.completed)).getOrElse(false)
}
