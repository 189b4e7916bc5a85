package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.{Grouping => _, Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project}
import org.apache.spark.sql.regions.{Refusal, SparkMinor}
import org.apache.spark.sql.regions.skew.MergedAggregate
import org.apache.spark.sql.types._

/**
 * What an aggregate is made of; see docs/rollup.md.
 *
 * @param base core of its input
 * @param conjuncts filters of its input that are none of its groups
 * @param input all filters of its input, and what is early there
 */
private[regions] final case class Grouping(
    base: String,
    conjuncts: Seq[String],
    keys: Seq[GroupedKey],
    calls: Seq[GroupedCall],
    input: Filters) {

  /** Values that are computed from stored groups. */
  def reads: Seq[String] = keys.map(_.digest) ++ calls.flatMap(_.values.toSeq.flatten)
}

/**
 * @param digest of the value in the input's rows
 * @param column the same in the aggregate's rows, which may have other bits
 */
private[regions] final case class GroupedKey(expression: Expression, digest: String, column: String)

/**
 * A function of an aggregate.
 *
 * @param function its digest
 * @param column digest of its value
 * @param merge out of its parts, with their digests, or why there are none
 * @param values digests of what it reads, where it does not matter how often a value comes
 */
private[regions] final case class GroupedCall(
    call: AggregateExpression,
    function: String,
    column: String,
    merge: Either[Refusal, (Merge, Seq[String])],
    values: Option[Seq[String]])

private[rules] object Grouping {

  /** @param functions digest of a call */
  def apply(
      outputs: Seq[NamedExpression],
      input: Form,
      conjuncts: Seq[String],
      keys: Seq[GroupedKey],
      column: String => String,
      digest: Expression => String,
      functions: AggregateExpression => String,
      floatAggregates: Boolean): Grouping = {
    val calls = outputs.flatMap(_.collect { case call: AggregateExpression => call }).map { call =>
      val function = functions(call)
      val merge =
        if (call.isDistinct) Left(Refusal("NOT_MERGEABLE", s"${call.aggregateFunction.prettyName}(DISTINCT)"))
        else Merge.of(call.aggregateFunction, floatAggregates).map { merge =>
          merge -> merge.parts.map(part => functions(call.copy(aggregateFunction = part)))
        }
      val values = Option.when(Merge.ofValues(call)) {
        call.aggregateFunction.children.filterNot(_.isInstanceOf[Literal]).map(digest)
      }
      GroupedCall(call, function, column(function), merge, values)
    }
    Grouping(input.core, conjuncts, keys, calls.distinctBy(_.function), input.filters)
  }
}

/**
 * A function's value over a group out of the values of others over parts of the group.
 *
 * @param parts these
 * @param merge their values to functions over all parts
 * @param value of the function, from the values of those
 */
private[regions] final case class Merge(
    parts: Seq[AggregateFunction],
    merge: Seq[Expression] => Seq[AggregateFunction],
    value: Seq[Expression] => Expression)

private[regions] object Merge {
  private val legacy = SparkMinor.arithmetic(EvalMode.LEGACY)

  /**
   * Allowed is what [[MergedAggregate]] shows to come to the same value or error however its states are merged. Where only last digits
   * may differ, it is allowed as such aggregates are stored at all.
   *
   * @param floatAggregates whether sums that differ in their last digits count as equal
   */
  def of(function: AggregateFunction, floatAggregates: Boolean): Either[Refusal, Merge] = {
    def refused = Left(Refusal("NOT_MERGEABLE", s"${function.prettyName} of ${types(function)}"))
    val allowed = MergedAggregate.inexact(function, None).forall { _ =>
      floatAggregates && (function match {
        case extreme @ (_: Min | _: Max) => !MergedAggregate.equalButDifferent(extreme.dataType)
        case _ => MergedAggregate.rounds(function) || integral(function)
      })
    }
    function match {
      case _ if !allowed => refused
      case count: Count =>
        Right(Merge(Seq(count), values => values.map(Sum(_, legacy)), sums => Coalesce(sums :+ Literal(0L))))
      case sum: Sum =>
        Right(Merge(Seq(sum), values => values.map(value => sum.copy(child = value)), sums => as(sum, sums.head)))
      case _: Min | _: Max | _: BitAndAgg | _: BitOrAgg | _: BitXorAgg =>
        def over(value: Expression) = function.withNewChildren(Seq(value)).asInstanceOf[AggregateFunction]
        Right(Merge(Seq(function), _.map(over), _.head))
      case average: Average => ofAverage(average).toRight(refused.value)
      case _ => refused
    }
  }

  /**
   * The state of an average is a sum and a count. Spark adds integers as doubles, and decimals of up to 11 digits as doubles of
   * their unscaled values (`DecimalAggregates`): so are they here, where the sum of up to 8 digits has an unscaled value.
   */
  private def ofAverage(average: Average): Option[Merge] = {
    val whole = SparkMinor.sumOf(average)
    val mode = SparkMinor.evalMode(whole)
    // A sum that overflows is no error there: it wraps, or is null.
    val lost = mode == EvalMode.TRY || mode != EvalMode.ANSI && average.child.dataType == LongType
    val count = if (average.child.nullable) Count(Seq(average.child)) else Count(Seq(Literal(1)))
    val parts = Seq(whole, count)
    def merged(state: Average, summand: Expression => Expression, value: Expression => Expression): Merge = {
      val Seq(sum, counted) = state.aggBufferAttributes
      Merge(
        parts,
        { case Seq(s, c) => Seq(Sum(Cast(summand(s), sum.dataType), legacy), Sum(c, legacy)) },
        { case Seq(s, c) =>
          val filled = Map[ExprId, Expression](
            sum.exprId -> Coalesce(Seq(Cast(s, sum.dataType), Literal.default(sum.dataType))),
            counted.exprId -> Coalesce(Seq(c, Literal(0L))))
          value(state.evaluateExpression.transform { case a: AttributeReference => filled.getOrElse(a.exprId, a) })
        }
      )
    }
    average.child.dataType match {
      case _ if lost => None
      case DecimalType.Fixed(digits, scale) if digits <= 8 =>
        val unscaled = average.copy(child = UnscaledValue(average.child))
        Some(
          merged(
            unscaled, UnscaledValue(_),
            mean => Cast(Divide(mean, Literal(math.pow(10.0, scale)), legacy), average.dataType)))
      case DecimalType.Fixed(digits, _) if digits <= 11 => None
      case _: DecimalType | _: NumericType => Some(merged(average, identity, identity))
      case _ => None
    }
  }

  /** Whether the function's value over a group is its value over the distinct rows of it. */
  def ofValues(call: AggregateExpression): Boolean = call.filter.isEmpty && (call.aggregateFunction match {
    case _: Min | _: Max | _: BitAndAgg | _: BitOrAgg => true
    case _: Count => call.isDistinct
    case sum: Sum => call.isDistinct && MergedAggregate.inexact(sum, None).isEmpty
    case _ => false
  })

  /** What is exact below 2^53. */
  private def integral(function: AggregateFunction): Boolean = function match {
    case average: Average => average.child.dataType.isInstanceOf[IntegralType]
    case _ => false
  }

  private def as(function: AggregateFunction, value: Expression): Expression =
    if (value.dataType == function.dataType) value else Cast(value, function.dataType)

  private def types(function: AggregateFunction): String =
    function.children.map(_.dataType.catalogString).mkString(", ")
}

/** Groups of a stored aggregate merged into those of the query's. */
private[rules] object RollUp {

  /** What gives rows: columns, each with its digest, and the plan that computes the same from the sources. */
  type Read = (Seq[(Attribute, String)], LogicalPlan) => Either[Refusal, LogicalPlan]

  /** A call over what is read: `columns` of it, what they are in the aggregate's input, and the value over `calls`. */
  private final case class Merging(
      columns: Seq[(Attribute, String)],
      groups: Seq[Alias],
      parts: Seq[Alias],
      calls: Seq[AggregateExpression],
      value: Expression)

  /**
   * @param stored columns with the values of functions, by function
   * @return the aggregate's values, and the digests of its columns that they are
   */
  def apply(
      aggregate: Aggregate,
      grouping: Grouping,
      stored: Map[String, String],
      read: Read): Either[Refusal, (LogicalPlan, Seq[(String, Attribute)])] = {
    val keys = grouping.keys.distinctBy(_.digest).map(key => key -> attribute(key.expression))
    val calls = grouping.calls.map(call => call -> over(call, stored))
    calls.collectFirst { case (_, Left(refusal)) => refusal }.toLeft(
      calls.collect { case (call, Right(o)) => call -> o })
      .flatMap { over =>
        val groups = keys.map { case (key, a) => Alias(key.expression, a.name)(a.exprId) } ++ over.flatMap(_._2.groups)
        val columns = keys.map { case (key, a) => a -> key.digest } ++ over.flatMap(_._2.columns)
        // In the order of the columns: either plan may give the rows.
        val values = (groups ++ over.flatMap(_._2.parts)).map(value => value.exprId -> value).toMap
        val finer = Aggregate(groups.map(_.child), columns.map { case (a, _) => values(a.exprId) }, aggregate.child)
        read(columns, finer).map { rows =>
          val results = over.flatMap(_._2.calls).map(call => call.resultId -> Alias(call, "merged")())
          val result = results.toMap
          val merged = Aggregate(keys.map(_._2), keys.map(_._2) ++ results.map(_._2), rows)
          val values = over.map { case (call, o) =>
            call.column -> Alias(
              o.value.transform { case a: Attribute => result.get(a.exprId).fold(a)(_.toAttribute) }, "value")()
          }
          val plan = Project(keys.map(_._2) ++ values.map(_._2), merged)
          (plan, keys.map { case (key, a) => key.column -> a } ++ values.map { case (d, v) => d -> v.toAttribute })
        }
      }
  }

  private def over(grouped: GroupedCall, stored: Map[String, String]): Either[Refusal, Merging] =
    (grouped.merge, grouped.values) match {
      case (Right((merge, digests)), _) if digests.forall(stored.contains) =>
        val parts = merge.parts.map(part => part -> attribute(part))
        val whole = merge.merge(parts.map(_._2)).map(f => MergedAggregate(complete(f)))
        Right(
          Merging(
            parts.map(_._2).zip(digests.map(stored)),
            Nil,
            parts.map { case (part, a) => Alias(complete(part).copy(filter = grouped.call.filter), a.name)(a.exprId) },
            whole.flatMap(_.calls),
            merge.value(
              whole.map(_.value))
          ))
      case (_, Some(digests)) =>
        val read = grouped.call.aggregateFunction.children.filterNot(_.isInstanceOf[Literal])
        val values = read.map(child => child -> attribute(child))
        val next = values.map(_._2).iterator
        val children = grouped.call.aggregateFunction.children.map {
          case literal: Literal => literal
          case _ => next.next()
        }
        val function = grouped.call.aggregateFunction.withNewChildren(children).asInstanceOf[AggregateFunction]
        val call = complete(function).copy(isDistinct = grouped.call.isDistinct)
        val groups = values.map { case (child, a) => Alias(child, a.name)(a.exprId) }
        Right(Merging(values.map(_._2).zip(digests), groups, Nil, Seq(call), call.resultAttribute))
      case (merge, _) => Left(merge.left.getOrElse(Refusal("NOT_COVERED", grouped.call.aggregateFunction.prettyName)))
    }

  private def attribute(of: Expression): AttributeReference = AttributeReference("part", of.dataType, nullable = true)()

  private def complete(function: AggregateFunction): AggregateExpression =
    AggregateExpression(function, Complete, isDistinct = false)
}
