package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

/** Aggregate and window functions whose result does not depend on the order of rows. */
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
    case sum: Sum => exact(sum, sum.child.dataType)
    // Sums of integers are kept as doubles here: exact below 2^53, which 64-bit values may exceed at once.
    case average: Average =>
      average.child match {
        case _: UnscaledValue =>
        case child if child.dataType == LongType => float(average)
        case child => exact(average, child.dataType)
      }
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation => float(function)
    case other => Refused("ORDER_DEPENDENT", other.prettyName)
  }

  private def exact(function: AggregateFunction, input: DataType): Unit = input match {
    case FloatType | DoubleType => float(function)
    case _ =>
  }

  private def float(function: AggregateFunction): Unit =
    if (!floatAggregates) Refused("FLOAT_AGGREGATE", function.prettyName)
}
