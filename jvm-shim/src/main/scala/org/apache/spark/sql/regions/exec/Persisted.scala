package org.apache.spark.sql.regions.exec

import java.util.{LinkedHashMap => JLinkedHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.rules.OptimizerRuns
import org.apache.spark.storage.StorageLevel

/**
 * Results that this application keeps in Spark's block manager.
 *
 * They are relations of our own and not entries of Spark's CacheManager: the user's `unpersist`, `clearCache` and counts of cached
 * data neither see nor drop them, and we never drop the user's.
 */
final class Persisted {

  /** @param columns digest of each column of `relation` */
  final case class Held(relation: InMemoryRelation, columns: Seq[String], conjuncts: Set[String])

  private val held = new JLinkedHashMap[String, Held]

  /** The held relation, with fresh attributes; made from `plan` (lazily: the query that asks first also computes it) if new. */
  def open(
      session: SparkSession,
      entry: String,
      plan: LogicalPlan,
      columns: Seq[String],
      conjuncts: Set[String],
      level: String): Either[Refusal, Held] = synchronized {
    Option(held.get(entry)) match {
      case Some(h) => Right(h.copy(relation = h.relation.newInstance().asInstanceOf[InMemoryRelation]))
      case None =>
        val relation = OptimizerRuns.bypass {
          val settled = plan.clone()
          settled.setAnalyzed()
          InMemoryRelation(StorageLevel.fromString(level), new QueryExecution(session, settled), None)
        }
        val made = Held(relation, columns, conjuncts)
        held.put(entry, made)
        Right(made)
    }
  }

  def drop(entry: String): Unit = synchronized {
    Option(held.remove(entry)).foreach(_.relation.cacheBuilder.clearCache())
  }

  def dropAll(): Unit = synchronized(held.keySet.asScala.toSeq.foreach(drop))
}
