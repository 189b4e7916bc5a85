package org.apache.spark.sql.regions.profile

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Complete, Partial}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.regions.Policy
import org.apache.spark.sql.types.{DateType, DecimalType, StringType, TimestampNTZType, TimestampType}

/**
 * What an operator's expressions take on one row, beyond moving its columns: µs on one core, as [[Attribution]]'s weights.
 * Spark fuses a projection that splits texts with the join below it; without this, the join would seem to be dear, and
 * reading its rows for a query that needs no texts would seem to save as much.
 */
object ExpressionCosts {
  import Policy._

  def apply(plan: SparkPlan): Double =
    // Code generation evaluates what occurs twice once.
    evaluated(plan).flatMap(_.collect { case part => part.canonicalized }).distinct.map(own).sum

  private def evaluated(plan: SparkPlan): Seq[Expression] = plan match {
    case project: ProjectExec => project.projectList
    case filter: FilterExec => Seq(filter.condition)
    case join: BaseJoinExec => join.condition.toSeq
    // The others merge buffers; what the buffers are made of was evaluated before.
    case aggregate: BaseAggregateExec => aggregate.groupingExpressions ++ aggregate.aggregateExpressions
        .filter(each => each.mode == Partial || each.mode == Complete).flatMap(_.aggregateFunction.children)
    case _ => Nil
  }

  /** Of the expression itself, without its children. */
  private def own(expression: Expression): Double = expression match {
    case _: LeafExpression | _: NamedExpression | _: IsNull | _: IsNotNull => 0.0
    case _: ScalaUDF => udfMicros
    case _: RLike => findMicros
    case _: RegExpReplace | _: RegExpExtractBase | _: StringSplit => regexMicros
    case _: JsonToStructs | _: GetJsonObject | _: StructsToJson => jsonMicros
    case _: Sha1 | _: Sha2 | _: Md5 => digestMicros
    case _: DateFormatClass | _: GetTimestamp | _: FromUnixTime | _: UnixTimestamp => patternMicros
    case cast: Cast if isText(cast) != isText(cast.child) =>
      if (isCalendar(cast) || isCalendar(cast.child)) calendarMicros else numberMicros
    case each if isText(each) || each.children.exists(isText) && !each.isInstanceOf[BinaryComparison] => textMicros
    case _: BinaryArithmetic | _: CheckOverflow if isWide(expression) => wideDecimalMicros
    case _ => 0.0
  }

  private def isText(each: Expression): Boolean = each.dataType.isInstanceOf[StringType]

  private def isCalendar(each: Expression): Boolean = each.dataType match {
    case DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  private def isWide(each: Expression): Boolean = each.dataType match {
    case decimal: DecimalType => decimal.precision > 18
    case _ => false
  }
}
