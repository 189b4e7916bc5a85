package org.apache.spark.sql.regions.rules

import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.regions.Guard

/**
 * Notices DataFrames that several queries of a session are built on.
 *
 * A query's optimized plan holds only the columns and rows that this query needs, so what the first of several reports over one
 * DataFrame leaves behind would not serve the second. The analyzed plan still holds the DataFrame itself, and PySpark keeps it as
 * the same object in every query built on it: the sightings are counted on that object.
 */
object SharedDataFrames {

  private val sightings = TreeNodeTag[AtomicInteger]("spark_regions.sightings")
  private val current = new ThreadLocal[Seq[LogicalPlan]]

  /** Files smaller than this in all are read again sooner than a first use is looked into. */
  private val leastInputBytes = 8L << 20

  /** The most candidates handed to the planner for one query; each costs an optimizer run. */
  val most = 2

  /** @param held ids, for one that is met for the first time and that the program can use again */
  final case class Sighted(plan: LogicalPlan, seen: Int, held: Set[Long])

  /**
   * The DataFrames below a query, widest first.
   *
   * @param used the query with what Spark's cache holds in the place of what is computed; DataFrames there are not computed again
   */
  def of(analyzed: LogicalPlan, used: LogicalPlan): Seq[LogicalPlan] = analyzed match {
    case _: Command | _: CommandResult => below(analyzed, used)
    case _ => datasets(analyzed, used, root = true)
  }

  /** Remembered until the query is decided on; many a plan is only looked up in Spark's cache. */
  def note(session: SparkSession, analyzed: LogicalPlan): Unit = {
    val cache = session.sharedState.cacheManager
    current.set(of(analyzed, if (cache.isEmpty) analyzed else cache.useCachedData(analyzed)))
  }

  /**
   * Those of `frames` that earlier queries were built on too; where there is none, the one that the program holds.
   *
   * @param firstUse whether a DataFrame may be offered that no earlier query was built on
   */
  def repeated(frames: Seq[LogicalPlan], firstUse: Boolean): Seq[Sighted] = {
    val seen = all(frames, Int.MaxValue).filter(_.seen >= 2)
    if (seen.nonEmpty || !firstUse || frames.isEmpty) seen.take(most) else held(frames).toSeq
  }

  /** The widest `count` DataFrames of the query, used before or not: for a planner that knows what later queries will use. */
  def all(frames: Seq[LogicalPlan], count: Int): Seq[Sighted] =
    frames.take(count).map(f => Sighted(f, f.getTagValue(sightings).fold(1)(_.get), Set.empty))

  /** The DataFrames below the query last noted on this thread, widest first; each has now been seen once more. */
  def taken(): Seq[LogicalPlan] = {
    val frames = Option(current.get).getOrElse(Nil)
    current.remove()
    frames.foreach { frame =>
      // A program's threads may share it.
      frame.synchronized {
        frame.getTagValue(sightings) match {
          case Some(count) => count.incrementAndGet()
          case None => frame.setTagValue(sightings, new AtomicInteger(1))
        }
      }
    }
    frames
  }

  /**
   * The outermost DataFrame that the program holds. Below filters the next one, if it is held as well: who filters a
   * DataFrame and keeps it has more to ask of it.
   */
  private def held(frames: Seq[LogicalPlan]): Option[Sighted] = {
    val ids = HeldDataFrames.ids()
    def isHeld(plan: LogicalPlan): Boolean = datasetIds(plan).exists(ids)
    def unfiltered(plan: LogicalPlan): LogicalPlan = plan match {
      case filter: Filter => unfiltered(filter.child)
      case alias: SubqueryAlias => unfiltered(alias.child)
      case other => other
    }
    frames.find(isHeld).map { outermost =>
      val inner = unfiltered(outermost)
      if (isHeld(inner) && worthwhile(inner)) inner else outermost
    }.filter(plan => costly(plan) && inputBytes(plan) >= leastInputBytes).map(plan =>
      Sighted(plan, 1, datasetIds(plan)))
  }

  private def datasetIds(plan: LogicalPlan): Set[Long] =
    plan.getTagValue(Dataset.DATASET_ID_TAG).fold(Set.empty[Long])(_.toSet)

  /** Rows of files passed on, filtered or not, are about as quick to read as a copy of them. */
  private def costly(plan: LogicalPlan): Boolean = plan.exists {
    case _: Join | _: Aggregate | _: Window | _: Distinct | _: Deduplicate => true
    case p => usesPython(p)
  }

  private def inputBytes(plan: LogicalPlan): BigInt =
    plan.collectLeaves().collect { case relation: LogicalRelation => BigInt(relation.relation.sizeInBytes) }.sum

  private def datasets(plan: LogicalPlan, used: LogicalPlan, root: Boolean): Seq[LogicalPlan] =
    if (used.isInstanceOf[InMemoryRelation]) Nil
    else {
      val here = !root && plan.getTagValue(Dataset.DATASET_ID_TAG).isDefined && worthwhile(plan)
      (if (here) Seq(plan) else Nil) ++ below(plan, used)
    }

  private def below(plan: LogicalPlan, used: LogicalPlan): Seq[LogicalPlan] =
    plan.children.zip(used.children).flatMap { case (child, now) => datasets(child, now, root = false) }

  private def worthwhile(plan: LogicalPlan): Boolean = plan.exists {
    case _: Join | _: Aggregate | _: Window | _: Generate | _: Distinct | _: Deduplicate | _: Union | _: Filter =>
      true
    case p => usesPython(p)
  }

  private def usesPython(plan: LogicalPlan): Boolean = plan.expressions.exists(_.exists(_.isInstanceOf[PythonUDF]))
}

/** Only looks; returns the plan as it is. */
final class SharedDataFramesRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (!OptimizerRuns.bypassed) {
      Guard.run(session.sparkContext.conf, "the search for shared DataFrames")(
        SharedDataFrames.note(session, plan))
    }
    plan
  }
}
