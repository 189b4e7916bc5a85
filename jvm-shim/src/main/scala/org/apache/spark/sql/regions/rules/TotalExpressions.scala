package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count, Max, Min}

/**
 * Expressions that raise no error on any row, so that they may be evaluated on rows that plain Spark would not have evaluated
 * them on. A list of those that are known not to: under ANSI rules most functions can fail.
 */
private[rules] object TotalExpressions {
  def apply(expression: Expression): Boolean = expression.deterministic && own(expression) &&
    expression.children.forall(apply)

  private def own(expression: Expression): Boolean = expression match {
    case _: Attribute | _: Literal | _: Alias => true
    case _: And | _: Or | _: Not | _: IsNull | _: IsNotNull | _: Coalesce | _: If | _: CaseWhen => true
    case _: BinaryComparison | _: In | _: InSet => true
    case _: StringPredicate | _: Upper | _: Lower | _: Substring | _: Length | _: Concat => true
    case _: GetStructField | _: CreateNamedStruct => true
    case _: SortOrder => true
    case cast: Cast => Cast.canUpCast(cast.child.dataType, cast.dataType)
    case call: AggregateExpression => call.aggregateFunction match {
        case _: Count | _: Min | _: Max => true
        case _ => false
      }
    case _: Count | _: Min | _: Max => true
    case _ => false
  }
}
