package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.columnar.{CachedRDDBuilder, InMemoryRelation}
import org.apache.spark.sql.regions.SignedPlan
import org.apache.spark.sql.regions.exec.Layout
import org.apache.spark.sql.regions.platforms.TypedPlan

/**
 * A DataFrame of the program's as the optimizer has it. Kept with the plan that the program holds, for the next query that is built on
 * it, as long as the settings stay and what is cached of it.
 */
private[rules] final class KnownFrame private (
    session: SparkSession,
    optimized: Option[LogicalPlan],
    cached: Seq[(CachedRDDBuilder, BigInt)]) {
  private val settings = KnownFrame.settings(session)

  /** A copy: a query marks what it meets. */
  def plan: Option[LogicalPlan] = optimized.map(_.clone())

  @volatile private var planned: Option[Option[Layout]] = None

  /** How plain Spark would arrange its rows, were it a query by itself. */
  def layout: Option[Layout] = planned.getOrElse {
    val found = optimized.flatMap(RowOrder.alone(session, _)())
    planned = Some(found)
    found
  }

  /** Whether its rows are shuffled, as far as that was asked for before. */
  def shuffles: Boolean = planned.flatten.exists(_.shuffles)

  @volatile private var told: Option[(String, Option[TypedPlan])] = None

  /** For another engine; once, as long as the files stay. */
  def typed(signed: SignedPlan): Option[TypedPlan] = signed.nodes.head.signature.toOption.flatMap { signature =>
    told.collect { case (lineage, found) if lineage == signature.lineage => found }.getOrElse {
      val found = TypedPlan.of(session, signed, _ => true)
      told = Some(signature.lineage -> found)
      found
    }
  }

  private def holds(now: SparkSession, in: Seq[(CachedRDDBuilder, BigInt)]): Boolean =
    (now eq session) && in.size == cached.size &&
      in.lazyZip(cached).forall { case ((one, size), (other, before)) => (one eq other) && size == before } &&
      KnownFrame.settings(now) == settings
}

private[rules] object KnownFrame {
  private val tag = TreeNodeTag[KnownFrame]("spark_regions.optimized")

  def of(session: SparkSession, analyzed: LogicalPlan): KnownFrame = {
    val current = session.sharedState.cacheManager.useCachedData(analyzed)
    val cached =
      if (current eq analyzed) Nil
      else
        current.collectWithSubqueries { case relation: InMemoryRelation =>
          // Which is known once it is in memory, and decides how the plan above is executed.
          relation.cacheBuilder -> relation.computeStats().sizeInBytes
        }
    // A program's threads may share it.
    analyzed.synchronized(analyzed.getTagValue(tag)).filter(_.holds(session, cached)).getOrElse {
      val frame = new KnownFrame(session, OptimizerRuns.captureOptimized(session, current), cached)
      analyzed.synchronized(analyzed.setTagValue(tag, frame))
      frame
    }
  }

  private def settings(session: SparkSession): Map[String, String] = session.sessionState.conf.getAllConfs
}
