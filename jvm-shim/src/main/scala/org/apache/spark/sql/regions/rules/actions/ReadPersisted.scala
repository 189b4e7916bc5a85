package org.apache.spark.sql.regions.rules.actions

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Counters, Refusal, SignedNode, wire}
import org.apache.spark.sql.regions.exec.Persisted
import org.apache.spark.sql.regions.profile.PersistUse
import org.apache.spark.sql.regions.rules.OrderCheck

/** A read of what this application keeps in the block manager. */
private[rules] object ReadPersisted extends ReadingApplier[wire.ReadPersisted] {
  def entry(action: wire.ReadPersisted): String = action.entry

  protected def lost(action: wire.ReadPersisted, query: Long, refusal: Refusal): wire.Event =
    wire.Dropped(action.entry, query, refusal.code, refusal.detail)

  def apply(
      query: Applying,
      node: SignedNode,
      plan: LogicalPlan,
      action: wire.ReadPersisted): Either[Refusal, LogicalPlan] = {
    query.runtime.counters.add(Counters.recalls)
    apply(query, node, action.entry, action.release, computes = false, action.implied.toSet)
  }

  /**
   * @param computes the query is the first to read it, and makes it
   * @param implied filters of what is kept that the node's imply
   */
  def apply(
      query: Applying,
      node: SignedNode,
      entry: String,
      release: Boolean,
      computes: Boolean,
      implied: Set[String] = Set.empty): Either[Refusal, LogicalPlan] =
    read(query.reads, node, node, entry, computes, implied).map { found =>
      query.persists += PersistUse(entry, release)
      found
    }

  protected def found(check: OrderCheck, action: wire.ReadPersisted): Option[ReadingApplier.Found] =
    check.runtime.recycling.persisted.get(action.entry).map { held =>
      ReadingApplier.Found(held.layout, columns(held), held.conjuncts -- action.implied)
    }

  private def columns(held: Persisted.Held): Seq[(String, Attribute)] = held.columns.zip(held.relation.output)

  def read(reads: Reads, node: SignedNode, at: SignedNode, action: wire.ReadPersisted): Either[Refusal, LogicalPlan] =
    read(reads, node, at, action.entry, computes = false)

  private def read(
      reads: Reads,
      node: SignedNode,
      at: SignedNode,
      entry: String,
      computes: Boolean,
      implied: Set[String] = Set.empty): Either[Refusal, LogicalPlan] = {
    val persisted = reads.query.runtime.recycling.persisted
    for {
      held <- persisted.get(entry).toRight(Refusal("ENTRY_MISSING", entry))
      arranged <- reads.arranged(node, at, held.layout)
      found <- reads.over(node, held.relation, columns(held), held.conjuncts -- implied)
      check = (_: Configuration) => persisted.missing(entry)
      // Spark's own relation knows its partitions.
    } yield reads.recycled(node, entry, found, check, arranged.isDefined, None, computes)
  }
}
