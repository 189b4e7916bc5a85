package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.regions.Refusal

/** Why an aggregate of a stage keeps its rows from going to several tasks. */
private[skew] object SplitRefusal {

  /** A sum whose last digits depend on its rows' order, and whether it is of all that a task reads, not key by key. */
  def rounding(plan: SparkPlan): Option[(Refusal, Boolean)] = plan match {
    case aggregate: BaseAggregateExec =>
      aggregate.aggregateExpressions.find(call => MergedAggregate.rounds(call.aggregateFunction)).map { call =>
        Refusal("FLOAT_AGGREGATE", call.aggregateFunction.prettyName) -> (call.mode == Partial)
      }
    case _ => None
  }

  /** Slices bring rows out in another order: what keeps the first of several that come would show it. */
  def firstComer(plan: SparkPlan): Option[Refusal] = plan match {
    case aggregate: BaseAggregateExec =>
      val key = aggregate.groupingExpressions.find(key => MergedAggregate.equalButDifferent(key.dataType))
      val refused = aggregate.aggregateExpressions.iterator.map(_.aggregateFunction).flatMap {
        // Zeros of two signs are equal to whoever looks at them.
        case extreme @ (_: Min | _: Max) if !MergedAggregate.equalButDifferent(extreme.dataType) => None
        case function => MergedAggregate.inexact(function, None).filter(_.code == "ORDER_DEPENDENT")
      }
      key.map(key => Refusal("ORDER_DEPENDENT", key.sql)).orElse(refused.nextOption())
    case _ => None
  }

  /** Aggregates whose state of a key holds its rows, or all of its different values. */
  def large(aggregate: BaseAggregateExec): Option[Refusal] =
    aggregate.aggregateExpressions.map(_.aggregateFunction).collectFirst {
      case function @ (_: Collect[_] | _: PercentileBase | _: Mode | _: ListAgg) =>
        Refusal("STATE_AS_LARGE", function.prettyName)
      case function: TypedImperativeAggregate[_] if function.isInstanceOf[UserDefinedExpression] =>
        Refusal("UNKNOWN_OPERATOR", function.prettyName)
    }
}
