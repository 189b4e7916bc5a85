package org.apache.spark.sql.regions.control.badrows

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.regions.rules.TotalExpressions
import org.apache.spark.sql.types._

/** Which expressions may fail on a row, and such expressions with their failures caught. */
private[badrows] object Fallible {

  /** It or one below it may fail where it stands. */
  def apply(expression: Expression): Boolean =
    own(expression) || (!closed(expression) && expression.children.exists(apply))

  /**
   * With null in the place of each value that cannot be computed. A function of higher order is caught as a whole: what is
   * inside of it sees elements, not rows.
   */
  def caught(expression: Expression, sink: BadRowSink): Expression =
    nulled(expression, sink).getOrElse(caught(expression, sink, nullable = false))

  private def caught(expression: Expression, sink: BadRowSink, nullable: Boolean): Expression = {
    def over(inner: Expression) =
      Caught(inner, sink.asked)(sink, Computed(Caught.shown(expression), expression.dataType, nullable))
    if (!apply(expression)) expression
    else if (expression.isInstanceOf[HigherOrderFunction]) over(expression)
    else {
      val inner = expression.mapChildren(caught(_, sink, nullable))
      if (own(expression)) over(inner) else inner
    }
  }

  /** The same where its type allows for null; None where it does not. */
  def nulled(expression: Expression, sink: BadRowSink): Option[Expression] =
    Some(caught(expression, sink, nullable = true)).filter(to =>
      to.nullable == expression.nullable && to.dataType == expression.dataType)

  /** Columns that it is computed of; without those that are only shown. */
  def read(expression: Expression): AttributeSet = expression match {
    case caught: Caught => read(caught.child)
    case leaf if leaf.children.isEmpty => leaf.references
    case other => AttributeSet.fromAttributeSets(other.children.map(read))
  }

  /** Evaluated elsewhere, or what fails in it is caught already. */
  private def closed(expression: Expression): Boolean = expression match {
    case _: PythonUDF | _: PlanExpression[_] | _: TryEval | _: Caught | _: Unfailed | _: AggregateFunction => true
    case _: Generator | _: LambdaFunction => true
    case _ => false
  }

  private def own(expression: Expression): Boolean = expression match {
    case function: HigherOrderFunction => function.functions.exists(_.exists(own)) || function.arguments.exists(apply)
    case _ if closed(expression) || TotalExpressions.own(expression) => false
    case _: LeafExpression | _: Unevaluable | _: NamedExpression => false
    case item: GetArrayItem => item.failOnError
    case _: StringSplit | _: RegExpReplace | _: StringRegexExpression => !expression.children.tail.forall(_.foldable)
    case _ => true
  }
}
