package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.regions.{Refusal, SparkMinor}
import org.apache.spark.sql.types._

/**
 * An aggregate function whose states of slices are merged.
 *
 * @param calls what each slice aggregates
 * @param value of the function, from their results
 */
private[regions] final case class MergedAggregate(calls: Seq[AggregateExpression], value: Expression)

private[regions] object MergedAggregate {
  private val legacy = SparkMinor.arithmetic(EvalMode.LEGACY)
  private val lowBits = 0xffffffffL

  def apply(call: AggregateExpression): MergedAggregate = call.aggregateFunction match {
    case sum: Sum if mayOverflow(sum) => halves(sum)
    case function =>
      val own = complete(function)
      MergedAggregate(Seq(own), own.resultAttribute)
  }

  /**
   * A sum of bigint that raises the error of an overflow where all of it does not fit. Added one by one, it could also
   * overflow on the way, in one order of the rows and not in another. With x = high * 2^32 + low, the sums of both
   * halves have room for 2^31 rows; the carry of the low ones is added to the high ones.
   */
  private def halves(sum: Sum): MergedAggregate = {
    val high = complete(sum.copy(ShiftRight(sum.child, Literal(32)), legacy))
    val low = complete(sum.copy(BitwiseAnd(sum.child, Literal(lowBits)), legacy))
    val carried = Add(high.resultAttribute, ShiftRightUnsigned(low.resultAttribute, Literal(32)), legacy)
    val own = SparkMinor.arithmetic(SparkMinor.evalMode(sum))
    val rest = BitwiseAnd(low.resultAttribute, Literal(lowBits))
    MergedAggregate(Seq(high, low), Add(Multiply(carried, Literal(lowBits + 1), own), rest, own))
  }

  private def complete(function: AggregateFunction): AggregateExpression =
    AggregateExpression(function, Complete, isDistinct = false)

  private def mayOverflow(sum: Sum): Boolean = sum.child.dataType == LongType &&
    !sum.child.isInstanceOf[UnscaledValue] && SparkMinor.evalMode(sum) == EvalMode.ANSI

  /**
   * Whether states that are merged in another order could come to another value, or to an error.
   *
   * @param rows at most in a partition
   */
  def inexact(function: AggregateFunction, rows: Option[Double]): Option[Refusal] = function match {
    case _: Count | _: BitAndAgg | _: BitOrAgg | _: BitXorAgg => None
    case extreme @ (_: Min | _: Max) =>
      if (equalButDifferent(extreme.dataType) || hasFloats(extreme.dataType))
        Some(Refusal("ORDER_DEPENDENT", extreme.prettyName))
      else None
    case sum: Sum if sum.child.isInstanceOf[UnscaledValue] => None // of up to 8 digits: it cannot overflow
    case sum: Sum if sum.child.dataType == LongType && SparkMinor.evalMode(sum) != EvalMode.TRY => None
    case sum: Sum => summed(sum, sum.child.dataType)
    case average: Average =>
      (largest(average.child), average.child.dataType) match {
        // Spark adds these as doubles, which are exact up to 2^53.
        case (Some(largest), _) if rows.exists(_ * largest < math.pow(2, 53)) => None
        case (None, decimal: DecimalType) => summed(average, decimal)
        case _ => Some(Refusal("FLOAT_AGGREGATE", average.prettyName))
      }
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation =>
      Some(Refusal("FLOAT_AGGREGATE", function.prettyName))
    case other => Some(Refusal("ORDER_DEPENDENT", other.prettyName))
  }

  /** Whether another order of its rows, or other parts of them, can end in other last digits. */
  def rounds(function: AggregateFunction): Boolean = function match {
    case sum: Sum => hasFloats(sum.child.dataType)
    case average: Average => Seq(FloatType, DoubleType, LongType).contains(average.child.dataType)
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation => true
    case _ => false
  }

  /** 2^32 of the largest 32-bit integers, or 10^10 of the largest decimals, must fit. */
  private def summed(function: AggregateFunction, dataType: DataType): Option[Refusal] = dataType match {
    case ByteType | ShortType | IntegerType => None
    case DecimalType.Fixed(precision, _) if precision + 10 <= DecimalType.MAX_PRECISION => None
    case FloatType | DoubleType => Some(Refusal("FLOAT_AGGREGATE", function.prettyName))
    case other =>
      Some(Refusal("ORDER_DEPENDENT", s"${function.prettyName} of ${other.catalogString} may overflow on the way"))
  }

  private def largest(summand: Expression): Option[Double] = (summand, summand.dataType) match {
    case (UnscaledValue(child), _) =>
      Some(child.dataType).collect { case DecimalType.Fixed(precision, _) => math.pow(10, precision) }
    case (_, ByteType) => Some(math.pow(2, 7))
    case (_, ShortType) => Some(math.pow(2, 15))
    case (_, IntegerType) => Some(math.pow(2, 31))
    case _ => None
  }

  /** Values that compare as equal, or cannot be compared, and have other bits. */
  def equalButDifferent(dataType: DataType): Boolean = dataType.existsRecursively {
    case string: StringType => !string.supportsBinaryEquality
    case _: MapType | VariantType | CalendarIntervalType | _: UserDefinedType[_] => true
    case _ => false
  }

  /** 0.0 and -0.0: the first one that comes is kept. */
  private def hasFloats(dataType: DataType): Boolean = dataType.existsRecursively {
    case FloatType | DoubleType => true
    case _ => false
  }
}
