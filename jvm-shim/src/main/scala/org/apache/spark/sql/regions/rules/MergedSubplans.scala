package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.optimizer.{CollapseProject, ColumnPruning, RemoveNoopOperators}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LogicalPlan, Project}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.SharedSubplan

/**
 * One subplan with the rows and columns of several nodes.
 *
 * @param signature of `plan`: its core is that of the nodes, its columns are those of the plan's output
 * @param exact whether every row is a row of some node
 */
private[rules] final case class MergedSubplans(plan: LogicalPlan, signature: Signature, exact: Boolean) {

  /** The node's rows and columns, read from a copy of the subplan with attributes of its own. */
  def over(signed: SignedPlan, node: SignedNode): Either[Refusal, LogicalPlan] = {
    val fresh = MergedSubplans.renewed(plan)
    MergedSubplans.over(signed, node, SharedSubplan(fresh), signature, fresh.output)
  }
}

private[rules] object MergedSubplans {

  /**
   * Whether the merged plan has the nodes' rows is not taken on trust: it is signed, and must have their core. Its other
   * filters hold for the rows of each node by construction, see [[PlanMerging]], and each node's own are applied on top.
   *
   * @param nodes of one core
   * @param sign signs a plan by itself
   */
  def apply(
      signed: SignedPlan,
      nodes: Seq[SignedNode],
      sign: LogicalPlan => SignedPlan): Either[Refusal, MergedSubplans] =
    for {
      merged <- merge(nodes.map(_.plan))
      signature <- signedRoot(sign, merged.plan)
      core <- nodes.head.signature.map(_.core)
      _ <- Either.cond(signature.core == core, (), Refusal("SHAPES_DIFFER", "filters inside the subplan differ"))
      used <- used(signed, nodes, merged.plan, signature)
      narrow = pruned(used, merged.plan)
      _ <- Either.cond(narrow.output.exists(a => SharedSubplan.hashable(a.dataType)), (), Refusal("NOT_PARTITIONABLE"))
    } yield {
      val digests = merged.plan.output.map(_.exprId).zip(signature.columns).toMap
      MergedSubplans(
        narrow,
        signature.copy(columns = narrow.output.map(a => digests(a.exprId))),
        merged.extent != Extent.Wider)
    }

  private def merge(plans: Seq[LogicalPlan]): Either[Refusal, MergedPlan] =
    try Right(PlanMerging(plans))
    catch { case refused: Refused => Left(refused.refusal) }

  private def signedRoot(sign: LogicalPlan => SignedPlan, plan: LogicalPlan): Either[Refusal, Signature] =
    sign(plan).nodes.head.signature

  /** What the nodes read of the merged plan, or why one of them cannot be computed from it. */
  private def used(
      signed: SignedPlan,
      nodes: Seq[SignedNode],
      plan: LogicalPlan,
      signature: Signature): Either[Refusal, AttributeSet] = {
    val fresh = renewed(plan)
    val positions = fresh.output.map(_.exprId).zipWithIndex.toMap
    val read = nodes.map(over(signed, _, SharedSubplan(fresh), signature, fresh.output))
    read.collectFirst { case Left(refusal) => refusal }.toLeft {
      val above = read.collect { case Right(Project(list, below)) =>
        val filters = below match {
          case Filter(condition, _) => Seq(condition)
          case _ => Nil
        }
        (list ++ filters).flatMap(_.references)
      }
      AttributeSet(above.flatten.flatMap(a => positions.get(a.exprId)).distinct.map(plan.output))
    }
  }

  private def pruned(used: AttributeSet, plan: LogicalPlan): LogicalPlan = {
    val output = plan.output.filter(used.contains)
    // A place that only counts its rows reads no column, but some column has to be hashed.
    val kept = if (output.isEmpty) plan.output.take(1) else output
    if (kept.size == plan.output.size) plan
    else RemoveNoopOperators(CollapseProject(ColumnPruning(Project(kept, plan))))
  }

  private def over(
      signed: SignedPlan,
      node: SignedNode,
      source: LogicalPlan,
      signature: Signature,
      output: Seq[Attribute]): Either[Refusal, LogicalPlan] =
    for {
      conjuncts <- node.signature.map(_.conjuncts.toSet)
      columns = signature.columns.zip(output).distinctBy(_._1)
      // Its other filters let more rows pass than the node's own.
      read <- signed.over(node, source, columns, conjuncts.intersect(signature.conjuncts.toSet))
    } yield read

  /** The same plan with attributes of its own, as Spark does where a common table expression is inlined twice. */
  private def renewed(plan: LogicalPlan): LogicalPlan =
    DeduplicateRelations(Join(plan, plan, Inner, None, JoinHint.NONE)).children(1)
}
