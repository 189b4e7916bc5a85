package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.regions._

/** Queries that the program is about to run, told to the planner before the first of them. */
object Batch {

  /** What the planner makes of queries on `frames`; none of them runs here. Kept results of an earlier batch are released. */
  def announce(
      runtime: RegionsRuntime,
      session: SparkSession,
      frames: Seq[DataFrame],
      atOnce: Int): Either[Refusal, wire.BatchPlan] =
    session match {
      case known: classic.SparkSession =>
        runtime.recycling.announced = frames.nonEmpty
        val told = mutable.HashSet.empty[LogicalPlan]
        runtime.resting.clear()
        val message = wire.Announce(frames.flatMap(request(runtime, known, _, told, counted = atOnce > 0)), atOnce)
        // One answer for a whole batch may take longer than that for a query.
        runtime.planner.request(message, math.max(runtime.plannerDeadlineMillis, deadlineMillis)).map { answer =>
          answer.release.foreach(runtime.recycling.persisted.drop)
          answer
        }
      case other => Left(Refusal("INTERNAL_ERROR", s"unexpected session class ${other.getClass.getName}"))
    }

  private val deadlineMillis = 5000L

  /**
   * @param told DataFrames of the queries before, each of which the planner is told once
   * @param counted whether the planner is told how many rows its sources have
   */
  private def request(
      runtime: RegionsRuntime,
      session: classic.SparkSession,
      frame: DataFrame,
      told: mutable.Set[LogicalPlan],
      counted: Boolean): Option[wire.Decide] = {
    val analyzed = frame.queryExecution.analyzed
    val used = session.sharedState.cacheManager.useCachedData(analyzed)
    OptimizerRuns.captureOptimized(session, used).map { plan =>
      val signed = runtime.recycling.sign(session, plan)
      val order = new RowOrder(session, signed)
      val frames = SharedDataFrames.of(analyzed, used).filter(each => told.add(each.canonicalized))
      // The query will not be offered what does not fit it.
      val shared = new SharedPoints(session, runtime, signed, order, frames, Set.empty)(Policy.mostOffers)
        .filterNot(point => order.misfits(signed.nodes(point.node), point.plan))
      DecideRequest(session, runtime, 0, signed, shared, Policy.mostOffers, Nil, counted = counted)
    }
  }
}
