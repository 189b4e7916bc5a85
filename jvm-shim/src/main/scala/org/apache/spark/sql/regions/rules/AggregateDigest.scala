package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Window}
import org.apache.spark.sql.types._

/**
 * Aggregate and window functions. The result of most does not depend on the order of rows, but for the last digits of floats.
 *
 * @param order of the rows, where it is the same in each run
 * @param keys by which they are grouped
 */
private[rules] final class AggregateDigest(
    floatAggregates: Boolean,
    digest: ExpressionDigest,
    child: LogicalPlan,
    order: () => Option[String],
    keys: Seq[Expression] = Nil) {

  def apply(call: AggregateExpression): String = {
    val seen = check(call.aggregateFunction)
    val function = call.aggregateFunction match {
      case Count(Seq(literal: Literal)) if literal.value != null => "count(*)"
      case other => digest(other)
    }
    Digest.of("aggregation", Seq(function, call.isDistinct.toString, call.filter.fold("all")(digest(_))) ++ seen)
  }

  def window(call: WindowExpression): String = {
    val spec = call.windowSpec
    val function = call.windowFunction match {
      case _: PythonFuncExpression => Refused("OPAQUE_PYTHON", "window function")
      case AggregateExpression(_: PythonFuncExpression, _, _, _, _) => Refused("OPAQUE_PYTHON", "window function")
      case rank @ (_: Rank | _: DenseRank | _: PercentRank | _: CumeDist) => Digest("rank", rank.getClass.getName)
      case aggregate: AggregateExpression if AggregateDigest.unboundedOrRange(spec.frameSpecification) =>
        apply(aggregate)
      case aggregate: AggregateExpression => Digest("tied", apply(aggregate), determined("TIE_DEPENDENT", aggregate))
      case other => Digest("tied", digest(other), determined("TIE_DEPENDENT", other))
    }
    Digest.of(
      "window",
      Seq(function, Digest.of("by", spec.partitionSpec.map(digest(_)).sorted)) ++
        spec.orderSpec.map(digest(_)) :+ digest(spec.frameSpecification))
  }

  /** The order of rows, where the function sees it. */
  private def check(function: AggregateFunction): Option[String] = function match {
    case _: UserDefinedExpression if !function.isInstanceOf[PythonUDAF] =>
      Refused("UNDIGESTIBLE_FUNCTION", function.prettyName)
    case rounding if AggregateDigest.rounds(rounding) =>
      if (floatAggregates) None else Refused("FLOAT_AGGREGATE", rounding.prettyName)
    case PivotFirst(pivot, _, _, _, _) if child.distinctKeys.exists(_.subsetOf(ExpressionSet(keys :+ pivot))) => None
    case other => Option.when(AggregateDigest.ordered(other))(determined("ORDER_DEPENDENT", other))
  }

  private def determined(code: String, function: Expression): String =
    order().getOrElse(Refused(code, function.prettyName))
}

private[rules] object AggregateDigest {

  private def unboundedOrRange(frame: WindowFrame): Boolean = frame match {
    case SpecifiedWindowFrame(RangeFrame, _, _) => true
    case SpecifiedWindowFrame(RowFrame, UnboundedPreceding, UnboundedFollowing) => true
    case _ => false
  }

  /** Whether a function's value depends on the order of rows by more than last digits. */
  def ordered(function: AggregateFunction): Boolean = function match {
    case _: Count | _: BitAndAgg | _: BitOrAgg | _: BitXorAgg | _: HyperLogLogPlusPlus | _: Sum | _: Average => false
    case extreme @ (_: Min | _: Max) => ValueDigest.hasEqualButDifferent(extreme.dataType)
    case other => !rounds(other)
  }

  def ordered(call: WindowExpression): Boolean = call.windowFunction match {
    case _: Rank | _: DenseRank | _: PercentRank | _: CumeDist => false
    case aggregate: AggregateExpression =>
      ordered(aggregate.aggregateFunction) || !unboundedOrRange(call.windowSpec.frameSpecification)
    case _ => true
  }

  /** Whether another order of its rows can end in other last digits. */
  def rounds(function: AggregateFunction): Boolean = function match {
    case sum: Sum => isFloat(sum.child.dataType)
    case Average(_: UnscaledValue, _) => false
    // Sums of integers are kept as doubles here: exact below 2^53, which 64-bit values may exceed at once.
    case average: Average => average.child.dataType == LongType || isFloat(average.child.dataType)
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation => true
    case _ => false
  }

  def rounds(plan: LogicalPlan): Boolean = plan match {
    case _: Aggregate | _: Window => plan.expressions.exists(rounds(_))
    case _ => false
  }

  def rounds(call: Expression): Boolean = call.exists {
    case aggregate: AggregateExpression => rounds(aggregate.aggregateFunction)
    case _ => false
  }

  private def isFloat(dataType: DataType): Boolean = dataType == FloatType || dataType == DoubleType
}
