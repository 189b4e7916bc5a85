package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

private[rules] object Plans {

  /** The optimizer does not see into a [[org.apache.spark.sql.regions.exec.MaterializedRead]]: what it still owes is done here. */
  def finished(session: SparkSession, plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.expressions.exists(_.exists(_.isInstanceOf[PythonUDF])))) plan
    else OptimizerRuns.bypass(session.sessionState.optimizer.execute(plan))
}
