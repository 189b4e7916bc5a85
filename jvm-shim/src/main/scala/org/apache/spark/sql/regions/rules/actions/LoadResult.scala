package org.apache.spark.sql.regions.rules.actions

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.LoadUse
import org.apache.spark.sql.regions.rules.OrderCheck

/** A scan of a stored result, with the rest of the node's filters and columns on top. */
private[rules] object LoadResult extends ReadingApplier[wire.Load] {
  def entry(action: wire.Load): String = action.entry

  protected def lost(action: wire.Load, query: Long, refusal: Refusal): wire.Event =
    wire.Invalid(action.entry, query, refusal.code, refusal.detail)

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: wire.Load): Either[Refusal, LogicalPlan] =
    read(query.reads, node, node, action).map { found =>
      query.runtime.counters.add(Counters.loads)
      found
    }

  protected def layout(check: OrderCheck, action: wire.Load): Option[Option[StoredLayout]] =
    check.opened(action.location, action.entry).toOption.map(_.layout)

  def read(reads: Reads, node: SignedNode, at: SignedNode, action: wire.Load): Either[Refusal, LogicalPlan] = {
    val (entry, digests) = (action.entry, action.columns)
    for {
      stored <- reads.query.opened(action.location, entry)
      _ <- Either.cond(stored.columns == digests, (), Refusal("ENTRY_DAMAGED", s"$entry holds other columns"))
      attributes = stored.schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())
      arranged <- reads.arranged(node, at, stored.layout)
      scan = MaterializedRelation(attributes, stored, attributes.indices, arranged.isDefined)
      // What the query's filters imply is shown of the node that was asked about, not of another one in its place.
      implied = if (node eq at) action.implied else Nil
      found <- reads.over(node, scan, digests.zip(attributes), action.conjuncts.toSet -- implied)
      check = (hadoopConf: Configuration) => Entries.check(stored, hadoopConf).left.toOption
    } yield {
      // Of several reads the last is the one that runs, and is to be measured.
      reads.query.loads += LoadUse(entry, action.node, scan)
      reads.recycled(node, entry, found, check, arranged.isDefined, arranged)
    }
  }
}
