package org.apache.spark.sql.regions.exec

import java.util.{LinkedHashMap => JLinkedHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.config.Kryo
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.columnar.{CachedRDDBuilder, InMemoryRelation}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.regions.{Refusal, SparkMinor, Tags}
import org.apache.spark.sql.regions.rules.OptimizerRuns
import org.apache.spark.storage.StorageLevel

/**
 * Results that this application keeps in Spark's block manager.
 *
 * They are relations of our own and not entries of Spark's CacheManager: the user's `unpersist`, `clearCache` and counts of cached
 * data neither see nor drop them, and we never drop the user's.
 */
final class Persisted {
  import Persisted.Held

  private val held = new JLinkedHashMap[String, Held]

  /**
   * Keeps the rows of `plan`, lazily: the query that asks first also computes them. An entry that is there is kept as it is.
   *
   * @param columnar in Spark's own format, which takes longer to make and is read by the columns that are wanted
   */
  def open(
      session: SparkSession,
      entry: String,
      plan: LogicalPlan,
      columns: Seq[String],
      conjuncts: Set[String],
      level: String,
      layout: Option[StoredLayout] = None,
      columnar: Boolean = false): Held = synchronized {
    get(entry).getOrElse {
      val relation = OptimizerRuns.bypass {
        val settled = plan.clone()
        settled.setAnalyzed()
        // Another query may see the order that this one does not.
        settled.foreach(_.unsetTagValue(Tags.anyOrder))
        inMemory(StorageLevel.fromString(level), new QueryExecution(session, settled), columnar)
      }
      val made = Held(relation, columns, conjuncts, layout)
      held.put(entry, made)
      made
    }
  }

  private def inMemory(level: StorageLevel, execution: QueryExecution, columnar: Boolean): InMemoryRelation = {
    val conf = execution.sparkSession.sparkContext.conf
    // Kryo would fail on a class that nobody registered, when a block moves to disk: Spark's own format is registered.
    if (columnar || conf.get(Kryo.KRYO_REGISTRATION_REQUIRED)) InMemoryRelation(level, execution, None)
    else {
      val keepTime = SQLMetrics.createNanoTimingMetric(execution.sparkSession.sparkContext, "time to keep")
      val format = new RowBatches(keepTime)
      InMemoryRelation(CachedRDDBuilder(format, level, execution.executedPlan, None, execution.logical), execution)
    }
  }

  /** The held relation, with attributes of its own for each use. */
  def get(entry: String): Option[Held] = synchronized {
    Option(held.get(entry)).map(h => h.copy(relation = h.relation.newInstance().asInstanceOf[InMemoryRelation]))
  }

  /** Why `entry` can be read no more: a plan that was made before it was released can be run again after. */
  def missing(entry: String): Option[Refusal] =
    if (synchronized(held.containsKey(entry))) None else Some(Refusal("ENTRY_MISSING", entry))

  /** Bytes in memory and on disk, once all of its partitions have been computed. */
  def bytes(entry: String): Option[Long] = synchronized(Option(held.get(entry))).map(_.relation.cacheBuilder)
    .filter(_.isCachedColumnBuffersLoaded).map(SparkMinor.cachedBytes)

  /** Task-seconds that keeping it took, where its format counts them. */
  def seconds(entry: String): Option[Double] = synchronized(Option(held.get(entry)))
    .flatMap(kept => RowBatches.time(kept.relation)).map(_.value / 1e9)

  def drop(entry: String): Unit = synchronized {
    Option(held.remove(entry)).foreach(_.relation.cacheBuilder.clearCache())
  }

  def dropAll(): Unit = synchronized(held.keySet.asScala.toSeq.foreach(drop))
}

object Persisted {

  /** @param columns digest of each column of `relation` */
  final case class Held(
      relation: InMemoryRelation,
      columns: Seq[String],
      conjuncts: Set[String],
      layout: Option[StoredLayout] = None)
}
