package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, Literal, UserDefinedExpression}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.regions.Tags
import org.apache.spark.sql.regions.rules.Digest

/**
 * What a stage is known by from one run to the next.
 *
 * @param shape digest of its operators and their expressions, whatever rows they read and constants they have
 * @param lineage of the rows of its first operator that has one: equal in two runs, each partition has the same rows
 */
final case class StageKey(shape: String, lineage: Option[String])

private[skew] object StageKey {

  def of(group: ReduceGroup): StageKey = {
    val operators = group.path.init.map(operator)
    val columns = group.inputs.flatMap(_.stage.output).map(column => s"${column.name} ${column.dataType.sql}")
    val keys = group.inputs.map(_.stage.outputPartitioning).map {
      case HashPartitioning(keys, _) => keys.map(text).mkString(", ")
      case other => other.getClass.getSimpleName
    }
    val lineage = group.path.reverseIterator
      .flatMap(_.logicalLink.flatMap(_.collectFirst(Function.unlift(_.getTagValue(Tags.lineage)))))
      .nextOption()
    StageKey(Digest.of("stage", group.operator +: (operators ++ columns ++ keys)), lineage)
  }

  /** An exchange's keys are another stage's. */
  private def operator(plan: SparkPlan): String = plan match {
    case exchange: Exchange => exchange.nodeName
    case other => (other.nodeName +: other.expressions.map(text)).mkString(" ")
  }

  private def text(expression: Expression): String = expression match {
    case column: AttributeReference => column.name
    case _: Literal => "?"
    case other =>
      val name = other match {
        case function: UserDefinedExpression => function.name
        case built => built.prettyName
      }
      other.children.map(text).mkString(s"$name(", ", ", ")")
  }
}
