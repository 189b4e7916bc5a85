package org.apache.spark.sql.regions.control

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, BoundReference, SortOrder}
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.types.StructType

/**
 * What a task knows of a probe.
 *
 * @param id other in each execution
 * @param operator that it stands above, by the name that users know
 * @param state that held when the execution was planned
 */
private[control] final case class ProbeInfo(id: Long, operator: String, schema: StructType, state: Option[Holding])

/**
 * Counts the rows of the operator below it, and stops the task before a row if it is told to. It passes on the very rows,
 * inside of generated code as well: a read of a volatile field for each.
 */
final case class ProbeExec(child: SparkPlan) extends UnaryExecNode with CodegenSupport {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "Probe"
  override def stringArgs: Iterator[Any] = Iterator.empty
  // Spark finds equal exchanges by this.
  override protected def doCanonicalize(): SparkPlan = child.canonicalized
  override protected def withNewChildInternal(newChild: SparkPlan): ProbeExec = copy(child = newChild)

  /** Of the latest execution; None before the first one. */
  @transient @volatile private[control] var registered: Option[ProbeInfo] = None

  private def register(): ProbeInfo = {
    val info = ControlDriver.current.fold(ProbeInfo(-1, nodeName, schema, None))(_.register(this))
    registered = Some(info)
    info
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val info = register()
    child.execute().mapPartitionsInternal { rows =>
      val probe = Probe.open(info)
      rows.filter(row => probe.passes() || probe.stopped(row))
    }
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()

  // Columns are computed where they were without us: the operators above say which.
  override def usedInputs: AttributeSet = AttributeSet.empty

  override protected def doProduce(ctx: CodegenContext): String = {
    register()
    child.asInstanceOf[CodegenSupport].produce(ctx, this)
  }

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val info = ctx.addReferenceObj("probeInfo", registered.get, classOf[ProbeInfo].getName)
    val name = classOf[Probe].getName
    val probe = ctx.addMutableState(name, "probe", variable => s"$variable = $name.open($info);")
    // One that is there already; making it takes code that the operators above may not need. Without columns Spark names
    // one that is not there.
    val whole = Option.when(row.code.isEmpty && output.nonEmpty)(row.value.toString)
    // Copies: Spark notes in the originals what has been computed, which is inside of our braces only.
    ctx.currentVars = input.map(_.copy())
    ctx.INPUT_ROW = null
    val columns = output.zipWithIndex.map { case (each, i) => BoundReference(i, each.dataType, each.nullable) }
    val made = if (whole.isDefined) ExprCode(EmptyBlock, FalseLiteral, row.value)
    else GenerateUnsafeProjection.createCode(ctx, columns, useSubexprElimination = false)
    s"""
       |do {
       |  if (!$probe.passes()) {
       |    ${made.code}
       |    if (!$probe.stopped(${made.value})) continue;
       |  }
       |  ${consume(ctx, input, whole.orNull)}
       |} while (false);
     """.stripMargin
  }
}
