package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.regions.SparkMinor
import org.apache.spark.sql.types._

/**
 * Expressions that raise no error on any row, so that they may be evaluated on rows that plain Spark would not have evaluated
 * them on. A list of those that are known not to: under ANSI rules most functions can fail.
 */
private[regions] object TotalExpressions {
  def apply(expression: Expression): Boolean = expression.deterministic && own(expression) &&
    expression.children.forall(apply)

  /** Whether the expression raises no error itself, whatever its inputs do. */
  def own(expression: Expression): Boolean = expression match {
    case _: Attribute | _: Literal | _: Alias | _: SortOrder => true
    case _: And | _: Or | _: Not | _: IsNull | _: IsNotNull | _: Coalesce | _: If | _: CaseWhen => true
    case _: BinaryComparison | _: In | _: InSet => true
    case _: StringPredicate | _: Upper | _: Lower | _: Substring | _: Length | _: Concat => true
    case _: GetStructField | _: CreateNamedStruct | _: CreateArray | _: GetMapValue | _: Size => true
    case _: GetDateField | _: DateAdd | _: DateSub | _: DateDiff => true
    case _: Greatest | _: Least | _: IsNaN | _: NaNvl | _: KnownNullable | _: KnownNotNull => true
    case _: NormalizeNaNAndZero | _: KnownFloatingPointNormalized | _: UnaryMathExpression => true
    case _: UnscaledValue | _: HashExpression[_] | _: String2TrimExpression => true
    case Like(_, Literal(pattern, _), escape) => pattern != null && !pattern.toString.contains(escape)
    case cast: Cast => cast.evalMode != EvalMode.ANSI && !Seq(cast, cast.child).exists(intervals) ||
      cast.dataType.isInstanceOf[StringType] || Cast.canUpCast(cast.child.dataType, cast.dataType) ||
      cast.dataType == DateType && cast.child.dataType.isInstanceOf[DatetimeType]
    case division @ (_: DivModLike | _: Pmod) =>
      val Seq(number, by) = division.children
      SparkMinor.evalMode(division.asInstanceOf[BinaryArithmetic]) != EvalMode.ANSI || divides(number, by)
    case arithmetic: BinaryArithmetic if wraps(arithmetic, SparkMinor.evalMode(arithmetic) == EvalMode.ANSI) => true
    case minus: UnaryMinus => wraps(minus, minus.failOnError)
    case abs: Abs => wraps(abs, abs.failOnError)
    case _: Add | _: Subtract => decimals(expression).exists { case (p, s, q, t) =>
        math.max(s, t) + math.max(p - s, q - t) + 1 <= DecimalType.MAX_PRECISION
      }
    case _: Multiply => decimals(expression).exists { case (p, _, q, _) => p + q + 1 <= DecimalType.MAX_PRECISION }
    case call: AggregateExpression => aggregate(call.aggregateFunction)
    case function: AggregateFunction => aggregate(function)
    case _ => false
  }

  /** A divisor that is neither 0 nor the -1 by which the smallest number has no quotient. */
  private def divides(number: Expression, by: Expression): Boolean = (number.dataType, by) match {
    case (_: IntegralType | FloatType | DoubleType, Literal(divisor: Number, _)) => math.abs(divisor.doubleValue) > 1
    case _ => false
  }

  private def intervals(expression: Expression): Boolean =
    expression.dataType.existsRecursively(_.isInstanceOf[AnsiIntervalType])

  /** Intervals are always computed exactly. */
  private def wraps(arithmetic: Expression, ansi: Boolean): Boolean = arithmetic.dataType match {
    case FloatType | DoubleType => true
    case _: NumericType => !ansi
    case _ => false
  }

  private def aggregate(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Min | _: Max => true
    case sum: Sum => summable(sum.child.dataType)
    case average: Average => summable(average.child.dataType)
    case _ => false
  }

  /** Whether a sum has room for more rows than a group can have: 2^32 of the largest, or 10^10. */
  private def summable(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | FloatType | DoubleType => true
    case DecimalType.Fixed(precision, _) => precision + 10 <= DecimalType.MAX_PRECISION
    case _ => false
  }

  /** Precision and scale of both operands, where both are decimals. */
  private def decimals(expression: Expression): Option[(Int, Int, Int, Int)] =
    expression.children.map(_.dataType) match {
      case Seq(DecimalType.Fixed(p, s), DecimalType.Fixed(q, t)) => Some((p, s, q, t))
      case _ => None
    }
}
