package org.apache.spark.sql.regions.platforms

import java.util.IdentityHashMap

import scala.collection.mutable
import scala.util.control.ControlThrowable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.QueryContext
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.regions.SparkMinor
import org.apache.spark.sql.regions.platforms.Json.{list, record, text}
import org.apache.spark.sql.types.{AbstractDataType, DataType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Expressions of one plan as trees of classes, types and constructor arguments. What an expression has beside its children, and this
 * cannot name, makes it `unknown`.
 */
private[platforms] final class TypedExpression {
  import TypedExpression._

  private var count = 0

  def apply(expression: Expression, asked: PlanIds, depth: Int = 0): JsonNode = {
    count += 1
    if (count > mostExpressions || depth > mostDepth) throw TooLarge
    def told(children: Seq[Expression]): Seq[JsonNode] = children.map(apply(_, asked, depth + 1))
    expression match {
      case attribute: AttributeReference =>
        tree(attribute, Nil, Seq("id" -> attribute.exprId.id.toString))
      case alias: Alias =>
        tree(alias, told(Seq(alias.child)), Seq("id" -> alias.exprId.id.toString, "name" -> alias.name))
      case literal: Literal =>
        if (literal.value == null) tree(literal, Nil, Nil)
        else LiteralText(literal.value, literal.dataType).fold(unknown(literal)) { value =>
          tree(literal, Nil, Seq("value" -> value))
        }
      case InSet(value, values) =>
        tree(expression, told(value +: values.toSeq.map(Literal(_, value.dataType))), Nil)
      case call: AggregateExpression =>
        val fields = Seq("mode" -> call.mode.toString, "isDistinct" -> call.isDistinct.toString)
        val filter = call.filter.map(_ => "filter" -> "true")
        tree(call, told(call.aggregateFunction +: call.filter.toSeq), fields ++ filter)
      case subquery: ScalarSubquery if SparkMinor.outerAttrs(subquery).isEmpty && asked.containsKey(subquery.plan) =>
        val made = tree(subquery, Nil, Nil)
        made.put("plan", asked.get(subquery.plan).intValue)
        made
      case other if !known(other) => unknown(other)
      case other =>
        val found = fields(other)
        if (found.isEmpty) unknown(other) else tree(other, told(other.children), found.get)
    }
  }
}

private[platforms] object TypedExpression {
  val mostExpressions = 20000
  val mostDepth = 200

  /** Ids of the plans that the expressions of a node ask. */
  type PlanIds = IdentityHashMap[LogicalPlan, Integer]

  object TooLarge extends ControlThrowable

  /** Catalyst's class, and not one of a library that is called the same. */
  private def known(expression: Expression): Boolean =
    expression.getClass.getName.startsWith("org.apache.spark.sql.catalyst.expressions.")

  def name(value: Any): String = value.getClass.getSimpleName.stripSuffix("$")

  private def tree(expression: Expression, children: Seq[JsonNode], fields: Seq[(String, String)]) = {
    val made = record("kind" -> text(name(expression)), "type" -> text(dataType(expression)))
    if (!nullable(expression)) made.put("nullable", false)
    if (children.nonEmpty) made.set[JsonNode]("children", list(children))
    if (fields.nonEmpty)
      made.set[JsonNode]("fields", record(fields.map { case (key, value) => key -> text(value) }: _*))
    made
  }

  private def unknown(expression: Expression): JsonNode = {
    val made = tree(expression, Nil, Nil)
    made.put("unknown", true)
    made
  }

  /** Parts of a window have neither type nor null. */
  private def untyped(expression: Expression): Boolean = expression match {
    case _: WindowSpecDefinition | _: WindowFrame | _: SpecialFrameBoundary => true
    case other => !other.resolved
  }

  private def dataType(expression: Expression): String = if (untyped(expression)) "" else expression.dataType.sql
  private def nullable(expression: Expression): Boolean = untyped(expression) || expression.nullable

  /** Constructor arguments that are no children, by name; None where there is one that cannot be told. */
  private def fields(expression: Expression): Option[Seq[(String, String)]] = {
    val children = new IdentityHashMap[Expression, Expression]()
    expression.children.foreach(child => children.put(child, child))
    val found = mutable.ArrayBuffer.empty[(String, String)]
    val told = named(expression).forall { case (name, value) => tell(name, value, children, found) }
    Option.when(told)(found.toSeq)
  }

  private def named(product: Product): Seq[(String, Any)] =
    product.productElementNames.zip(product.productIterator).toSeq

  /** @return false if it cannot be told */
  private def tell(
      name: String,
      value: Any,
      children: IdentityHashMap[Expression, Expression],
      found: mutable.ArrayBuffer[(String, String)]): Boolean = value match {
    case None => true
    case Some(inner) => tell(name, inner, children, found)
    case child: Expression => children.containsKey(child)
    case _: DataType | _: AbstractDataType => true
    // The place in the query's text, for messages.
    case _: QueryContext => true
    case plain @ (_: Boolean | _: Byte | _: Short | _: Int | _: Long | _: Char | _: Float | _: Double | _: String) =>
      found += name -> plain.toString
      true
    case string: UTF8String => tell(name, string.toString, children, found)
    case constant: Enumeration#Value => tell(name, constant.toString, children, found)
    case constant: Enum[_] => tell(name, constant.name, children, found)
    case cls: Class[_] => tell(name, cls.getName, children, found)
    case several: scala.collection.Seq[_] => several.forall(part(_, children))
    case _: TreeNode[_] | _: ExprId => false
    // A case object by its name, a record of settings by each of them.
    case settings: Product if settings.getClass.getName.startsWith("org.apache.spark.sql.") =>
      if (settings.productArity == 0) tell(name, TypedExpression.name(settings), children, found)
      else named(settings).forall { case (inner, each) => tell(inner, each, children, found) }
    case _ => false
  }

  /** Whether it is made of children and types alone. */
  private def part(value: Any, children: IdentityHashMap[Expression, Expression]): Boolean = value match {
    case child: Expression => children.containsKey(child)
    case _: DataType | _: AbstractDataType => true
    case several: scala.collection.Seq[_] => several.forall(part(_, children))
    case tuple: Product if tuple.getClass.getName.startsWith("scala.Tuple") =>
      tuple.productIterator.forall(part(_, children))
    case _ => false
  }
}
