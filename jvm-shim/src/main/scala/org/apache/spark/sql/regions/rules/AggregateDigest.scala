package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Window}
import org.apache.spark.sql.types._

/** Aggregate and window functions whose result does not depend on the order of rows, but for the last digits of floats. */
private[rules] final class AggregateDigest(floatAggregates: Boolean, digest: ExpressionDigest) {

  def apply(call: AggregateExpression): String = {
    check(call.aggregateFunction)
    val function = call.aggregateFunction match {
      case Count(Seq(literal: Literal)) if literal.value != null => "count(*)"
      case other => digest(other)
    }
    Digest("aggregation", function, call.isDistinct.toString, call.filter.fold("all")(digest(_)))
  }

  def window(call: WindowExpression): String = {
    val spec = call.windowSpec
    val function = call.windowFunction match {
      case aggregate: AggregateExpression if unboundedOrRange(spec.frameSpecification) => apply(aggregate)
      case rank @ (_: Rank | _: DenseRank | _: PercentRank | _: CumeDist) => Digest("rank", rank.getClass.getName)
      case _: PythonFuncExpression => Refused("OPAQUE_PYTHON", "window function")
      case AggregateExpression(_: PythonFuncExpression, _, _, _, _) => Refused("OPAQUE_PYTHON", "window function")
      case other => Refused("TIE_DEPENDENT", other.prettyName)
    }
    Digest.of(
      "window",
      Seq(function, Digest.of("by", spec.partitionSpec.map(digest(_)).sorted)) ++
        spec.orderSpec.map(digest(_)) :+ digest(spec.frameSpecification))
  }

  private def unboundedOrRange(frame: WindowFrame): Boolean = frame match {
    case SpecifiedWindowFrame(RangeFrame, _, _) => true
    case SpecifiedWindowFrame(RowFrame, UnboundedPreceding, UnboundedFollowing) => true
    case _ => false
  }

  private def check(function: AggregateFunction): Unit = function match {
    case _: PythonFuncExpression => Refused("OPAQUE_PYTHON", function.prettyName)
    case _: UserDefinedExpression => Refused("UNDIGESTIBLE_FUNCTION", function.prettyName)
    case _: Count | _: BitAndAgg | _: BitOrAgg | _: BitXorAgg | _: HyperLogLogPlusPlus =>
    case extreme @ (_: Min | _: Max) =>
      if (ValueDigest.hasEqualButDifferent(extreme.dataType)) Refused("ORDER_DEPENDENT", extreme.prettyName)
    case rounding if AggregateDigest.rounds(rounding) =>
      if (!floatAggregates) Refused("FLOAT_AGGREGATE", rounding.prettyName)
    case _: Sum | _: Average =>
    case other => Refused("ORDER_DEPENDENT", other.prettyName)
  }
}

private[rules] object AggregateDigest {

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
