package org.apache.spark.sql.regions.rules.actions

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Counters, Refusal, SignedNode}
import org.apache.spark.sql.regions.exec.StoredLayout
import org.apache.spark.sql.regions.profile.PersistUse
import org.apache.spark.sql.regions.rules.OrderCheck

/** A read of what this application keeps in the block manager. */
private[rules] object ReadPersisted extends ReadingApplier {
  val kind = "recall"
  protected val lost = "dropped"

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: JsonNode): Either[Refusal, LogicalPlan] = {
    query.runtime.counters.add(Counters.recalls)
    apply(query, node, action, computes = false)
  }

  /** @param computes the query is the first to read it, and makes it */
  def apply(
      query: Applying,
      node: SignedNode,
      action: JsonNode,
      computes: Boolean): Either[Refusal, LogicalPlan] =
    read(query.reads, node, node, action, computes).map { found =>
      query.persists += PersistUse(action.path("entry").asText, action.path("release").asBoolean(false))
      found
    }

  protected def layout(check: OrderCheck, action: JsonNode): Option[Option[StoredLayout]] =
    check.runtime.recycling.persisted.get(action.path("entry").asText("")).map(_.layout)

  def read(reads: Reads, node: SignedNode, at: SignedNode, action: JsonNode): Either[Refusal, LogicalPlan] =
    read(reads, node, at, action, computes = false)

  private def read(
      reads: Reads,
      node: SignedNode,
      at: SignedNode,
      action: JsonNode,
      computes: Boolean): Either[Refusal, LogicalPlan] = {
    val persisted = reads.query.runtime.recycling.persisted
    val entry = action.path("entry").asText("")
    for {
      held <- persisted.get(entry).toRight(Refusal("ENTRY_MISSING", entry))
      arranged <- reads.arranged(node, at, held.layout)
      found <- reads.over(node, held.relation, held.columns.zip(held.relation.output), held.conjuncts)
      check = (_: Configuration) => persisted.missing(entry)
      // Spark's own relation knows its partitions.
    } yield reads.recycled(node, entry, found, check, arranged.isDefined, None, computes)
  }
}
