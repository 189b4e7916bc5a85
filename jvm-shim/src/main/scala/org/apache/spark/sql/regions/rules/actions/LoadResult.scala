package org.apache.spark.sql.regions.rules.actions

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.LoadUse
import org.apache.spark.sql.regions.rules.OrderCheck

/** A scan of a stored result, with the rest of the node's filters and columns on top, or its groups merged into the node's. */
private[rules] object LoadResult extends ReadingApplier[wire.Load] {
  def entry(action: wire.Load): String = action.entry

  protected def lost(action: wire.Load, query: Long, refusal: Refusal): wire.Event =
    wire.Invalid(action.entry, query, refusal.code, refusal.detail)

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: wire.Load): Either[Refusal, LogicalPlan] =
    read(query.reads, node, node, action).map { found =>
      query.runtime.counters.add(Counters.loads)
      found
    }

  /** What cannot be merged may well be read as it is. */
  override def refused(action: wire.Load, query: Long, refusal: Refusal): Option[wire.Event] =
    if (action.merged && !refusal.code.startsWith("ENTRY_")) None else super.refused(action, query, refusal)

  override def misplaced(check: OrderCheck, node: SignedNode, action: wire.Load): Option[String] =
    if (action.merged) Option.unless(check.order.free(node))(Applying.rowOrder)
    else super.misplaced(check, node, action)

  private def attributes(stored: StoredEntry): Seq[Attribute] =
    stored.schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())

  protected def found(check: OrderCheck, action: wire.Load): Option[ReadingApplier.Found] =
    check.opened(action.location, action.entry).toOption.map { stored =>
      ReadingApplier.Found(stored.layout, action.columns.zip(attributes(stored)), conjuncts(action))
    }

  private def conjuncts(action: wire.Load): Set[String] = action.conjuncts.toSet -- action.implied

  def read(reads: Reads, node: SignedNode, at: SignedNode, action: wire.Load): Either[Refusal, LogicalPlan] = {
    val (entry, digests) = (action.entry, action.columns)
    for {
      stored <- reads.query.opened(action.location, entry)
      _ <- Either.cond(stored.columns == digests, (), Refusal("ENTRY_DAMAGED", s"$entry holds other columns"))
      attributes = this.attributes(stored)
      arranged <-
        if (action.merged) reads.reordered(node, at).map(_ => None) else reads.arranged(node, at, stored.layout)
      scan = MaterializedRelation(attributes, stored, attributes.indices, arranged.isDefined)
      check = (hadoopConf: Configuration) => Entries.check(stored, hadoopConf).left.toOption
      columns = digests.zip(attributes)
      // What the query's filters imply is shown of the node that was asked about, not of another one in its place.
      filters = if (node eq at) conjuncts(action) else action.conjuncts.toSet
      found <-
        if (action.refreshed) reads.refreshed(node, scan, columns, entry, check)
        else if (action.merged) reads.rolledUp(node, scan, columns, action, check)
        else reads.over(node, scan, columns, filters).map {
          reads.recycled(node, entry, _, check, arranged.isDefined, arranged)
        }
    } yield {
      // Of several reads the last is the one that runs, and is to be measured.
      reads.query.loads += LoadUse(entry, action.node, scan)
      found
    }
  }
}
