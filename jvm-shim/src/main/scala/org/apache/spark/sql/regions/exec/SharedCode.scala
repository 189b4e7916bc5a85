package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeGenerator,
  CodegenContext,
  EmptyBlock,
  ExprCode,
  FalseLiteral,
  JavaCode
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarRule, FilterExec, ProjectExec, RangeExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.regions.{Guard, RegionsConf}
import org.apache.spark.sql.types._

/**
 * Lets queries that differ in numbers and dates only run the same compiled code. Spark writes these into the code that it
 * generates, so that each such query is compiled, and optimized by the JVM, as if none had run before; texts and decimals it
 * hands over as values, and so does this rule with the others.
 */
final class SharedCode(session: SparkSession) extends ColumnarRule {

  /** What comes next cuts the plan into stages of generated code. */
  override val postColumnarTransitions: Rule[SparkPlan] = plan =>
    if (!session.sessionState.conf.getConf(RegionsConf.codeReuse)) plan
    else Guard(session.sparkContext.conf, "the literals of generated code", plan)(SharedCode(plan))
}

object SharedCode {

  /** A field each, of which a class has room for some thousands. */
  private val most = 200

  def apply(plan: SparkPlan): SparkPlan = {
    // Rows that are made from a counter never leave the processor, where reading a field is a part of what a row takes.
    val parents = if (plan.exists(_.isInstanceOf[RangeExec])) choosing else calculating.orElse(choosing)
    plan.transformUp {
      case node @ (_: FilterExec | _: ProjectExec | _: BaseAggregateExec | _: BaseJoinExec)
          if node.expressions.map(count).sum <= most =>
        node.mapExpressions(held(_, parents))
    }
  }

  private def count(expression: Expression): Int = expression.collect { case literal: Literal => literal }.size

  private def held(expression: Expression, parents: PartialFunction[Expression, Unit]): Expression =
    expression.mapChildren {
      case literal: Literal if parents.isDefinedAt(expression) && HeldLiteral.writtenIntoCode(literal) =>
        HeldLiteral(literal)
      case child => held(child, parents)
    }

  /**
   * Whose generated code has nothing of a child but its value. Not those that look into a literal when code is generated (a
   * pattern, a format), nor divisions: the JVM has something better for a divisor that it knows.
   */
  private val choosing: PartialFunction[Expression, Unit] = {
    case _: BinaryComparison | _: Alias | _: If | _: CaseWhen | _: Coalesce | _: Least | _: Greatest =>
  }
  private val calculating: PartialFunction[Expression, Unit] = { case _: In | _: Add | _: Subtract | _: Multiply => }
}

/**
 * A literal that generated code finds in a field, set when a task begins. It equals the literal wherever plans are compared, and is one
 * to executors, which get code that is generated, and need no class of ours for it.
 */
final case class HeldLiteral(literal: Literal) extends LeafExpression {
  override def dataType: DataType = literal.dataType
  override def nullable: Boolean = false
  override def foldable: Boolean = true
  override lazy val canonicalized: Expression = literal.canonicalized
  private def writeReplace(): AnyRef = literal
  override def eval(input: InternalRow): Any = literal.value
  override def toString: String = literal.toString
  override def sql: String = literal.sql

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val java = CodeGenerator.javaType(dataType)
    val value = ctx.addReferenceObj("literal", literal.value, CodeGenerator.boxedType(dataType))
    val field = ctx.addMutableState(java, "literal", name => s"$name = $value;")
    ExprCode(EmptyBlock, FalseLiteral, JavaCode.global(field, dataType))
  }
}

object HeldLiteral {

  /** As Spark's `Literal` does it. A NaN has one form in code, and may have others as a value. */
  def writtenIntoCode(literal: Literal): Boolean = literal.value match {
    case null => false
    case float: Float => !float.isNaN
    case double: Double => !double.isNaN
    case _ =>
      literal.dataType match {
        case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => true
        case _ => false
      }
  }
}
