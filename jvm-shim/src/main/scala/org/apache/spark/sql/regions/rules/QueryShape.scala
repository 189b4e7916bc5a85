package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan}
import org.apache.spark.sql.regions.{SignedNode, SignedPlan, wire}

/**
 * A plan without the values in it: literals, and whatever a Python function is made of. The iterations of a loop that only changes
 * such have one shape. It says what may come again, not which rows something has: operators are told by their classes, columns by
 * where they come from, and sources by their identity.
 *
 * {{{
 *   SELECT k, count(*) FROM t WHERE v > 3 GROUP BY k        SELECT k, count(*) FROM t WHERE v > 5 GROUP BY k
 *   one shape, values 3 and 5
 * }}}
 */
private[rules] object QueryShape {

  /** None where a source has no identity. */
  def apply(signed: SignedPlan): Option[wire.QueryShape] = {
    val text = new QueryShape
    if (signed.nodes.forall(n => n.children.nonEmpty || n.signature.isRight)) {
      signed.nodes.foreach(text.node)
      Some(wire.QueryShape(Digest("shape", text.shape.toString), Digest("values", text.values.toString)))
    } else None
  }

  /** What the filters of a plan say, each with its values. */
  def conditions(plans: Seq[LogicalPlan]): Set[String] = plans.flatMap {
    case filter: Filter => ExpressionDigest.flatten[And](filter.condition)
    case join: Join => join.condition.toSeq.flatMap(ExpressionDigest.flatten[And](_))
    case _ => Nil
  }.map(condition).toSet

  /** A filter with its values, whatever numbers its attributes have this time. */
  def condition(conjunct: Expression): String = {
    val functions = conjunct.collect { case udf: PythonUDF => UdfDigests.key(udf.func) }
    (conjunct.sql +: functions).mkString(" ")
  }
}

private final class QueryShape {
  val shape = new StringBuilder
  val values = new StringBuilder
  private val numbers = mutable.HashMap.empty[ExprId, Int]

  def node(n: SignedNode): Unit = {
    shape ++= n.plan.getClass.getName ++= n.children.mkString("(", ",", ")")
    n.plan match {
      case join: Join => shape ++= join.joinType.getClass.getName
      case _ =>
    }
    if (n.children.isEmpty) n.signature.foreach(source => shape ++= source.lineage)
    n.plan.expressions.foreach(expression)
  }

  private def expression(e: Expression): Unit = e match {
    case literal: Literal =>
      shape += '?'
      values ++= literal.toString += ';'
    case list: InSet =>
      shape ++= "InSet"
      values ++= list.hset.map(String.valueOf).toSeq.sorted.mkString("{", ",", "};")
      expression(list.child)
    case attribute: Attribute => number(attribute.exprId)
    case alias: Alias =>
      expression(alias.child)
      number(alias.exprId)
    case _ =>
      shape ++= e.getClass.getName
      e match {
        case udf: PythonUDF =>
          shape ++= udf.name
          values ++= UdfDigests.key(udf.func) += ';'
        case call: AggregateExpression => shape ++= call.isDistinct.toString
        case order: SortOrder => shape ++= order.direction.sql
        case _ =>
      }
      shape += '('
      e.children.foreach(expression)
      shape += ')'
  }

  private def number(id: ExprId): Unit = shape += '#' ++= numbers.getOrElseUpdate(id, numbers.size).toString
}
