package org.apache.spark.sql.regions.profile

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Complete, Partial}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.types.{DateType, DecimalType, StringType, TimestampNTZType, TimestampType}

/**
 * What an operator's expressions take on one row, beyond moving its columns: µs on one core, as [[Attribution]]'s weights.
 * Spark fuses a projection that splits texts with the join below it; without this, the join would seem to be dear, and
 * reading its rows for a query that needs no texts would seem to save as much.
 */
object ExpressionCosts {
  private val regex = 0.8
  private val find = 0.3
  private val text = 0.1
  private val number = 0.05
  private val calendar = 0.15
  private val pattern = 0.25
  private val json = 1.3
  private val digest = 0.3
  private val wideDecimal = 0.15
  // Not measured: what a function of the user's does is unknown; calling it converts its arguments and its result.
  private val udf = 1.0

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
    case _: ScalaUDF => udf
    case _: RLike => find
    case _: RegExpReplace | _: RegExpExtractBase | _: StringSplit => regex
    case _: JsonToStructs | _: GetJsonObject | _: StructsToJson => json
    case _: Sha1 | _: Sha2 | _: Md5 => digest
    case _: DateFormatClass | _: GetTimestamp | _: FromUnixTime | _: UnixTimestamp => pattern
    case cast: Cast if isText(cast) != isText(cast.child) =>
      if (isCalendar(cast) || isCalendar(cast.child)) calendar else number
    case each if isText(each) || each.children.exists(isText) && !each.isInstanceOf[BinaryComparison] => text
    case _: BinaryArithmetic | _: CheckOverflow if isWide(expression) => wideDecimal
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
