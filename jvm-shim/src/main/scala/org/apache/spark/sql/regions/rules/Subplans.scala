package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Exchanges whole subquery plans inside a node's expressions. */
private[rules] object Subplans {
  def replace(plan: LogicalPlan, replaced: Seq[(LogicalPlan, LogicalPlan)]): LogicalPlan =
    plan.transformExpressions { case s: SubqueryExpression =>
      replaced.collectFirst { case (before, after) if before eq s.plan => after }.map(s.withNewPlan).getOrElse(s)
    }
}
