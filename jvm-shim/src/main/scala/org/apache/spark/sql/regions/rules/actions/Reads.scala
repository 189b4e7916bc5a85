package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project, Union}
import org.apache.spark.sql.regions.{Refusal, SignedNode, wire}
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.ProfileTags
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
      stored: Option[StoredLayout]): Either[Refusal, Option[Arranged]] =
    stored.flatMap(own.arranged(node, _)) match {
      case None => reordered(node, at).map(_ => None)
      case found => Right(found)
    }

  /** Another order than plain Spark's, where nobody sees it. */
  def reordered(node: SignedNode, at: SignedNode): Either[Refusal, Unit] =
    if (own.settled(node)) Right(query.unordered(at)) else query.reorder(at)

  /** The node's rows from a source that lacks those of new files, and from these. */
  def refreshed(
      node: SignedNode,
      source: LogicalPlan,
      columns: Seq[(String, Attribute)],
      entry: String,
      check: MaterializedRead.Check): Either[Refusal, LogicalPlan] =
    within.grown.get(node.id -> entry).toRight(Refusal("NOT_GROWN", entry)).flatMap { grown =>
      val stored = columns.toMap
      def column(digest: String): Option[Attribute] = stored.get(digest).orElse(grown.key(digest).flatMap(stored.get))
      def read(wanted: Seq[(Attribute, String)], whole: LogicalPlan): Either[Refusal, LogicalPlan] =
        if (!wanted.forall { case (a, digest) => column(digest).exists(_.dataType == a.dataType) })
          Left(Refusal("NOT_COVERED", entry))
        else {
          val groups = Project(wanted.map { case (a, digest) => Alias(column(digest).get, a.name)(a.exprId) }, source)
          val original = grown.over(query.session, whole, grown.kept)
          val before = recycled(node, entry, groups, check, asPlain = false)
            .copy(output = wanted.map(_._1), original = original, children = original.collectLeaves())
          val since = grown.over(query.session, whole, grown.added)
          val in = wanted.map { case (a, _) => Alias(a, a.name)() }
          Right(Union(Seq(before, Project(in, since))))
        }
      if (node.grouping.isDefined) merged(node, grown.functions, read)
      else node.signature.flatMap(signature => read(node.plan.output.zip(signature.columns), node.plan))
    }

  /** The aggregate's rows from a source with more groups. */
  def rolledUp(
      node: SignedNode,
      source: LogicalPlan,
      columns: Seq[(String, Attribute)],
      action: wire.Load,
      check: MaterializedRead.Check): Either[Refusal, LogicalPlan] = {
    def read(wanted: Seq[(Attribute, String)], original: LogicalPlan): Either[Refusal, LogicalPlan] =
      within.groups(node, wanted, source, columns, action.conjuncts.toSet).map { groups =>
        recycled(node, action.entry, groups, check, asPlain = false)
          .copy(output = wanted.map(_._1), original = original, children = original.collectLeaves())
      }
    merged(node, action.functions, read)
  }

  private def merged(
      node: SignedNode,
      functions: Map[String, String],
      read: RollUp.Read): Either[Refusal, LogicalPlan] = (node.plan, node.grouping) match {
    case (aggregate: Aggregate, Some(grouping)) =>
      for {
        signature <- node.signature
        merged <- RollUp(aggregate, grouping, functions, read)
        (plan, values) = merged
        found <- over(node, plan, values, signature.conjuncts.toSet)
      } yield {
        plan.children.foreach(below =>
          node.plan.getTagValue(ProfileTags.node).foreach(below.setTagValue(ProfileTags.node, _)))
        found
      }
    case _ => Left(Refusal("NOT_COVERED", node.operator))
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
