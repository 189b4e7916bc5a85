package org.apache.spark.sql.regions.control.badrows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * The value of `child`, or null where it fails, which `sink` is told. Children of `child` do not fail: they are caught
 * themselves, so that Spark may evaluate them once for several columns, as without us, but not `child`, whose failure would
 * then be elsewhere.
 *
 * @param inputs what is shown of the row to those who are asked
 * @param what `child`; by its columns' names, which it loses when it is compiled
 */
final case class Caught(child: Expression, inputs: Seq[Expression])(val sink: BadRowSink, val what: Computed)
    extends Expression with ConditionalExpression {
  override def children: Seq[Expression] = child +: inputs
  override def nullable: Boolean = true
  override def dataType: DataType = child.dataType
  override protected def otherCopyArgs: Seq[AnyRef] = sink :: what :: Nil
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Caught =
    copy(newChildren.head, newChildren.tail)(sink, what)
  override def prettyName: String = "caught"
  override def toString: String = child.toString
  override def sql: String = child.sql

  override def alwaysEvaluatedInputs: Seq[Expression] = child match {
    case _: CodegenFallback | _: HigherOrderFunction => Nil
    case conditional: ConditionalExpression => conditional.alwaysEvaluatedInputs
    case other => other.children
  }

  override def withNewAlwaysEvaluatedInputs(evaluated: Seq[Expression]): Caught = child match {
    case _: CodegenFallback | _: HigherOrderFunction => this
    case conditional: ConditionalExpression =>
      copy(conditional.withNewAlwaysEvaluatedInputs(evaluated).asInstanceOf[Expression])(sink, what)
    case other => copy(other.withNewChildren(evaluated))(sink, what)
  }
  override def branchGroups: Seq[Seq[Expression]] = Nil

  override def eval(input: InternalRow): Any =
    try child.eval(input)
    catch {
      case error: Exception => sink.caught(error, what, inputs.map(_.eval(input)).toArray)
    }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val late = if (ctx.currentVars == null) EmptyBlock else putOff(ctx)
    val inner = child.genCode(ctx)
    val told = ctx.addReferenceObj("badRows", sink)
    val of = ctx.addReferenceObj("computed", what)
    val error = ctx.freshName("error")
    val instead = ctx.freshName("instead")
    val shown = apart(ctx)(inputs.map(_.genCode(ctx)))
    val java = CodeGenerator.javaType(dataType)
    ev.copy(
      code = code"""
      $late
      boolean ${ev.isNull} = true;
      $java ${ev.value} = ${CodeGenerator.defaultValue(dataType)};
      try {
        ${inner.code}
        ${ev.isNull} = ${inner.isNull};
        ${ev.value} = ${inner.value};
      } catch (Exception $error) {
        ${shown.map(_.code).foldLeft[Block](EmptyBlock)(_ + _)}
        Object $instead = $told.caught($error, $of, ${Reporting.values(shown, inputs.map(_.dataType))});
        ${ev.isNull} = $instead == null;
        if ($instead != null) ${ev.value} = (${CodeGenerator.boxedType(dataType)}) $instead;
      }""")
  }

  /** Columns that an operator below has put off until somebody needs them: what fails in them is not for this expression. */
  private def putOff(ctx: CodegenContext): Block = child.collect { case input: BoundReference =>
    Option(ctx.currentVars(input.ordinal)).fold[Block](EmptyBlock) { column =>
      val code = column.code
      column.code = EmptyBlock
      code
    }
  }.foldLeft[Block](EmptyBlock)(_ + _)

  /** Spark notes in columns that their code has been written; in braces of ours that holds for those alone. */
  private def apart(ctx: CodegenContext)(codes: => Seq[ExprCode]): Seq[ExprCode] = {
    val columns = ctx.currentVars
    if (columns != null) ctx.currentVars = columns.map(column => if (column == null) null else column.copy())
    try codes
    finally ctx.currentVars = columns
  }
}

object Caught {

  /** As in SQL where it can be said so. */
  def shown(expression: Expression): String =
    try expression.sql
    catch { case _: Exception => expression.toString }
}

/**
 * A condition, false for a row on which a part of it failed; that row is reported.
 *
 * @param inputs what is shown of it
 */
final case class Unfailed(child: Expression, inputs: Seq[Expression])(val sink: BadRowSink)
    extends Expression with ConditionalExpression {
  override def children: Seq[Expression] = child +: inputs
  override def nullable: Boolean = child.nullable
  override def dataType: DataType = BooleanType
  override protected def otherCopyArgs: Seq[AnyRef] = sink :: Nil
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): Unfailed =
    copy(newChildren.head, newChildren.tail)(sink)
  override def prettyName: String = "unfailed"
  override def toString: String = child.toString
  override def sql: String = child.sql

  // What failed is told of the row at hand: nothing of it may be evaluated apart.
  override def alwaysEvaluatedInputs: Seq[Expression] = Nil
  override def withNewAlwaysEvaluatedInputs(inputs: Seq[Expression]): Unfailed = this
  override def branchGroups: Seq[Seq[Expression]] = Nil

  override def eval(input: InternalRow): Any = {
    val passes = child.eval(input)
    if (!sink.failed) passes
    else {
      sink.report(inputs.map(_.eval(input)).toArray)
      false
    }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val inner = child.genCode(ctx)
    val told = ctx.addReferenceObj("badRows", sink)
    ev.copy(code = code"""
      ${inner.code}
      boolean ${ev.isNull} = ${inner.isNull};
      boolean ${ev.value} = ${inner.value};
      if ($told.failed()) {
        ${Reporting.code(told, inputs.map(_.genCode(ctx)), inputs.map(_.dataType))}
        ${ev.isNull} = false;
        ${ev.value} = false;
      }""")
  }
}

private object Reporting {

  /** Of the row whose values are in `values`. */
  def code(sink: String, values: Seq[ExprCode], types: Seq[DataType]): Block = code"""
      ${values.map(_.code).foldLeft[Block](EmptyBlock)(_ + _)}
      $sink.report(${this.values(values, types)});"""

  /** As an array, once their code has run. */
  def values(values: Seq[ExprCode], types: Seq[DataType]): String = {
    val boxed = values.zip(types).map { case (value, dataType) =>
      val plain = if (CodeGenerator.isPrimitiveType(dataType))
        s"${CodeGenerator.boxedType(dataType)}.valueOf(${value.value})"
      else s"${value.value}"
      s"${value.isNull} ? null : (Object) $plain"
    }
    s"new Object[] {${boxed.mkString(", ")}}"
  }
}
