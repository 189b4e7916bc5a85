package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.execution.planmerging.PlanMerger
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.exec.SharedSubplan

/**
 * Several subplans with the same rows as one that has all of their columns.
 *
 * @param columns digests, one for each attribute of the plan's output
 */
private[rules] final case class MergedSubplans(plan: LogicalPlan, columns: Seq[String])

private[rules] object MergedSubplans {

  /** @param subplans each with digest and attribute of its columns */
  def apply(subplans: Seq[(LogicalPlan, Seq[(String, Attribute)])]): Either[Refusal, MergedSubplans] = {
    // Equal filters only: with others in them, the subplans would not have the same rows.
    val merger = new PlanMerger(false, false, false, false)
    val merged = subplans.map { case (plan, _) => merger.merge(plan, false) }
    if (merged.exists(_.mergedPlanIndex != 0)) Left(Refusal("SHAPES_DIFFER"))
    else {
      val plan = merger.mergedPlans().head.plan
      val digests = subplans.zip(merged).flatMap { case ((_, columns), result) =>
        columns.map { case (digest, attribute) => result.outputMap(attribute) -> digest }
      }.toMap
      if (!plan.output.exists(attribute => SharedSubplan.hashable(attribute.dataType)))
        Left(Refusal("NOT_PARTITIONABLE"))
      // The same column twice in one of the subplans has its digest at one place only.
      else Right(MergedSubplans(plan, plan.output.indices.map(i => digests.getOrElse(i, s"unnamed $i"))))
    }
  }

  /** The same plan with attributes of its own, as Spark does where a common table expression is inlined twice. */
  def renewed(plan: LogicalPlan): LogicalPlan =
    DeduplicateRelations(Join(plan, plan, Inner, None, JoinHint.NONE)).children(1)
}
