package org.apache.spark.sql.regions

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, Sum}
import org.apache.spark.sql.catalyst.plans.logical.{LimitAll, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.ArrowAggregatePythonExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, TimeType}

private[regions] trait ShimPlans {
  def limitAll(plan: LogicalPlan): Boolean = plan.isInstanceOf[LimitAll]
  def pandasAggregate(plan: SparkPlan): Boolean = plan.isInstanceOf[ArrowAggregatePythonExec]
  def stateful(plan: SparkPlan): Boolean = plan.isInstanceOf[StatefulOperator]

  def outerAttrs(subquery: SubqueryExpression): Seq[Expression] = subquery.getOuterAttrs
  def evalMode(sum: Sum): EvalMode.Value = sum.evalContext.evalMode
  def evalMode(arithmetic: BinaryArithmetic): EvalMode.Value = arithmetic.evalMode

  /** The sum that has the average's state, as the analyzer makes it. */
  def sumOf(average: Average): Sum = {
    val sum = Sum(average.child)
    sum.copy(evalContext = sum.evalContext.copy(evalMode = average.evalMode))
  }

  /** What `Sum`, `Add` and `Multiply` take as the last argument. */
  def arithmetic(mode: EvalMode.Value): NumericEvalContext = NumericEvalContext(mode, allowDecimalPrecisionLoss = true)

  def scalarArrow: Set[Int] = Set(PythonEvalType.SQL_SCALAR_ARROW_UDF)
  def variantAnnotation: String = SQLConf.PARQUET_ANNOTATE_VARIANT_LOGICAL_TYPE.key

  /** Digits of a second, if it is a time of day. */
  def timePrecision(dataType: DataType): Option[Int] = Some(dataType).collect { case time: TimeType => time.precision }
}
