package org.apache.spark.sql.regions.control.badrows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.execution._

/**
 * A projection that leaves out rows on which an expression of it fails. All are evaluated before a row is passed on, also
 * those that Spark puts off until somebody needs them.
 */
final case class CheckedProjectExec(projectList: Seq[NamedExpression], child: SparkPlan)(val sink: BadRowSink)
    extends UnaryExecNode with CodegenSupport with PartitioningPreservingUnaryExecNode
    with OrderPreservingUnaryExecNode {
  override protected def otherCopyArgs: Seq[AnyRef] = sink :: Nil
  override def output: Seq[Attribute] = projectList.map(_.toAttribute)
  override protected def outputExpressions: Seq[NamedExpression] = projectList
  override protected def orderingExpressions: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "CheckedProject"
  override def usedInputs: AttributeSet = AttributeSet.fromAttributeSets(projectList.map(Fallible.read))
  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()
  override protected def withNewChildInternal(newChild: SparkPlan): CheckedProjectExec = copy(child = newChild)(sink)
  override protected def doProduce(ctx: CodegenContext): String = child.asInstanceOf[CodegenSupport].produce(ctx, this)

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val bound = BindReferences.bindReferences[Expression](projectList, child.output)
    val (common, results) =
      if (!conf.subexpressionEliminationEnabled) ("", bound.map(_.genCode(ctx)))
      else {
        val found = ctx.subexpressionEliminationForWholeStageCodegen(bound)
        val codes = ctx.withSubExprEliminationExprs(found.states)(bound.map(_.genCode(ctx)))
        (evaluateVariables(found.exprCodesNeedEvaluate) + ctx.evaluateSubExprEliminationState(found.states.values),
          codes)
      }
    val evaluated = evaluateVariables(results)
    val told = ctx.addReferenceObj("badRows", sink)
    val shown = sink.positions.map(input)
    val report = Reporting.code(told, shown.map(e => ExprCode(e.code, e.isNull, e.value)), sink.types)
    s"""
       |do {
       |  $common
       |  $evaluated
       |  if ($told.failed()) {
       |    $report
       |    continue;
       |  }
       |  ${consume(ctx, results)}
       |} while (false);
     """.stripMargin
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val (list, input, told) = (projectList, child.output, sink)
    child.execute().mapPartitionsWithIndexInternal { (index, rows) =>
      val project = UnsafeProjection.create(list, input)
      project.initialize(index)
      rows.map { row =>
        val result = project(row)
        if (!told.failed) result
        else {
          told.report(told.values(row))
          null
        }
      }.filter(_ != null)
    }
  }
}
