package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.regions.wire
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * What a simple filter says of one value, by comparisons with literals: true exactly where the value is not null and all comparisons
 * of one branch hold. The planner decides by it what a filter implies (docs/containment.md). None for all other filters: a list of
 * what is known to be told exactly.
 */
private[rules] object SimplePredicates {
  private type Branches = Seq[Seq[wire.Comparison]]
  private type Told = Option[(Expression, Branches)]

  /** More would cost each query that has them more than they are worth. */
  private val mostComparisons = 100
  private val longestLiteral = 1000

  def apply(condition: Expression, conjunct: String, digest: ExpressionDigest): Option[wire.Predicate] =
    told(condition).filterNot(_._1.foldable).map { case (value, any) =>
      wire.Predicate(conjunct, digest(value), ValueDigest.typeKey(value.dataType), any)
    }

  private def told(condition: Expression): Told = condition match {
    case IsNotNull(value) if ordered(value.dataType) => Some((value, Seq(Nil)))
    case EqualTo(left, right) => compared("=", "=", left, right)
    case EqualNullSafe(left, right) => compared("=", "=", left, right)
    case LessThan(left, right) => compared("<", ">", left, right)
    case LessThanOrEqual(left, right) => compared("<=", ">=", left, right)
    case GreaterThan(left, right) => compared(">", "<", left, right)
    case GreaterThanOrEqual(left, right) => compared(">=", "<=", left, right)
    case StartsWith(value, prefix: Literal) if value.dataType == StringType =>
      literal(prefix.value, StringType).map(text => (value, Seq(Seq(wire.Comparison("prefix", text)))))
    case In(value, list) if list.forall(_.isInstanceOf[Literal]) =>
      listed(value, list.map(_.asInstanceOf[Literal].value))
    // Zeros of two signs are equal, but perhaps not as members of a set.
    case InSet(value, set) if !fractional(value.dataType) => listed(value, set.toSeq)
    case flag: Attribute if flag.dataType == BooleanType => compared("=", "=", flag, Literal.TrueLiteral)
    case Not(flag: Attribute) if flag.dataType == BooleanType => compared("=", "=", flag, Literal.FalseLiteral)
    case Not(EqualTo(left, right)) => compared("!=", "!=", left, right)
    case Not(in @ (_: In | _: InSet)) => told(in).filterNot(_ => hasNull(in)).map { case (value, any) =>
        (value, Seq(any.flatten.map(_.copy(operator = "!="))))
      }
    case or: Or => together(ExpressionDigest.flatten[Or](or))(_.flatten)
    case and: And =>
      together(ExpressionDigest.flatten[And](and))(_.reduce((one, other) => one.flatMap(a => other.map(a ++ _))))
    case _ => None
  }

  private def compared(operator: String, flipped: String, left: Expression, right: Expression): Told =
    (left, right) match {
      case (value, of: Literal) => compared(operator, value, of)
      case (of: Literal, value) => compared(flipped, value, of)
      case _ => None
    }

  private def compared(operator: String, value: Expression, of: Literal): Told =
    if (value.dataType != of.dataType) None
    else literal(of.value, of.dataType).map(text => (value, Seq(Seq(wire.Comparison(operator, text)))))

  /** True for its members that are not null: equal to null is nothing. */
  private def listed(value: Expression, members: Seq[Any]): Told = {
    val texts = members.filter(_ != null).take(mostComparisons + 1).map(literal(_, value.dataType))
    if (texts.isEmpty || texts.size > mostComparisons || texts.exists(_.isEmpty)) None
    else Some((value, texts.flatten.map(text => Seq(wire.Comparison("=", text)))))
  }

  private def hasNull(in: Expression): Boolean = in match {
    case In(_, list) => list.exists { case Literal(value, _) => value == null; case _ => true }
    case InSet(_, set) => set.contains(null)
    case _ => true
  }

  /** Of parts that all speak of the same value. */
  private def together(parts: Seq[Expression])(join: Seq[Branches] => Branches): Told =
    if (parts.size > mostComparisons) None
    else {
      val each = parts.map(told)
      val small = each.flatten.map { case (_, any) => any.size.toDouble.max(1) }.product <= mostComparisons
      each.headOption.flatten.collect {
        case (value, _) if small && each.forall(_.exists(_._1.canonicalized == value.canonicalized)) =>
          (value, join(each.flatten.map(_._2)))
      }.filter(_._2.map(_.size).sum <= mostComparisons)
    }

  private def fractional(dataType: DataType): Boolean = dataType == FloatType || dataType == DoubleType

  private def ordered(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType =>
      true
    case StringType | BinaryType | FloatType | DoubleType | _: DecimalType => true
    case _ => false
  }

  /** A value of the type as text: bytes in hex, a decimal with all digits of its scale, a date or time as its number. */
  private def literal(value: Any, dataType: DataType): Option[String] = (value, dataType) match {
    case (flag: Boolean, BooleanType) => Some(if (flag) "1" else "0")
    case (number @ (_: Byte | _: Short | _: Int | _: Long), kind) if ordered(kind) => Some(number.toString)
    case (number: Float, FloatType) => Some(number.toDouble.toString)
    case (number: Double, DoubleType) => Some(number.toString)
    case (number: Decimal, DecimalType.Fixed(_, scale)) =>
      val exact = number.toJavaBigDecimal.stripTrailingZeros
      Option.when(exact.scale <= scale)(exact.setScale(scale).toPlainString)
    case (text: UTF8String, StringType) if text.numBytes <= longestLiteral =>
      Some(Digest.hex(text.getBytes, text.numBytes))
    case (bytes: Array[Byte], BinaryType) if bytes.length <= longestLiteral => Some(Digest.hex(bytes, bytes.length))
    case _ => None
  }
}
