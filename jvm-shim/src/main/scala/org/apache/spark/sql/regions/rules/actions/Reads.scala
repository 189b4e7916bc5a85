package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Refusal, SignedNode}
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.rules._

/**
 * Reads of results in the places of nodes.
 *
 * @param within the plan of these nodes: the query's, or that of a DataFrame which stands in for a part of it
 */
private[actions] final class Reads(val query: Applying, within: SignedQuery) {
  private val own = if (within eq query.signed) query.order else new RowOrder(query.session, within)

  /** What to claim of rows that come in plain Spark's order; None where they come in another one, and nobody sees that. */
  def arranged(
      node: SignedNode,
      at: SignedNode,
      stored: Option[StoredLayout]): Either[Refusal, Option[Arranged]] = {
    stored.flatMap(own.arranged(node, _)) match {
      case None if !query.order.free(at) && !own.free(node) => Left(Refusal(Applying.rowOrder, node.operator))
      case found =>
        if (found.isEmpty) query.reordered = true
        Right(found)
    }
  }

  /** The node's rows and columns from a source with more of them. */
  def over(
      node: SignedNode,
      source: LogicalPlan,
      columns: Seq[(String, Attribute)],
      conjuncts: Set[String]): Either[Refusal, LogicalPlan] =
    for {
      signature <- node.signature
      _ <- Either.cond(conjuncts.forall(signature.conjuncts.contains), (), Refusal("CONJUNCTS_DIFFER"))
      read <- within.over(node, source, columns, conjuncts)
    } yield read

  def recycled(
      node: SignedNode,
      entry: String,
      read: LogicalPlan,
      check: MaterializedRead.Check,
      asPlain: Boolean,
      arranged: Option[Arranged] = None,
      computes: Boolean = false): MaterializedRead =
    MaterializedRead(
      entry,
      node.plan.output,
      Plans.finished(query.session, read),
      node.plan,
      within.inputs(node),
      check,
      refusal => query.runtime.recycling.fellBack(entry, query.notes.query, refusal),
      computes,
      asPlain,
      arranged
    )
}
