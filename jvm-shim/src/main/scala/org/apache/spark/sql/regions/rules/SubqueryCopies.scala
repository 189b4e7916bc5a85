package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.{ExprId, ScalarSubquery, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/**
 * Gives the copies of one scalar subquery one plan again, also where a copy stands in another subquery.
 *
 * Spark optimizes each copy by itself, so that we may have stored or read a result in one of them and not in the other. But
 * it takes them for the same by their id (`InsertAdaptiveSparkPlan` runs the first that it meets for all of them), and rules
 * that come after ours rewrite the plans of both: `MergeSubplans` makes a struct of one and leaves the other a number.
 */
private[rules] object SubqueryCopies {

  def apply(plan: LogicalPlan): LogicalPlan = {
    val chosen = copies(plan).groupMap(_.exprId)(_.plan).collect {
      case (id, all) if all.exists(_ ne all.head) => id -> all.find(changed).getOrElse(all.head)
    }
    if (chosen.isEmpty) plan else replaced(plan, chosen)
  }

  private def copies(plan: LogicalPlan): Seq[ScalarSubquery] =
    plan.collectWithSubqueries { case node =>
      node.expressions.flatMap(_.collect { case s: ScalarSubquery if !s.isCorrelated => s })
    }.flatten

  private def replaced(plan: LogicalPlan, chosen: Map[ExprId, LogicalPlan]): LogicalPlan =
    plan.transformAllExpressionsWithPruning(_.containsPattern(PLAN_EXPRESSION)) {
      case s: ScalarSubquery if !s.isCorrelated && chosen.contains(s.exprId) =>
        s.withNewPlan(replaced(chosen(s.exprId), chosen))
      case s: SubqueryExpression => s.withNewPlan(replaced(s.plan, chosen))
    }

  private def changed(plan: LogicalPlan): Boolean =
    plan.collectWithSubqueries { case node if Deciding.ours(node) => node }.nonEmpty
}
