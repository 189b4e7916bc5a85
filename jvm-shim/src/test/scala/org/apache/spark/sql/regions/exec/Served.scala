package org.apache.spark.sql.regions.exec

import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.regions.{InputListing, Refusal}
import org.apache.spark.sql.regions.rules.OptimizerRuns

/** Stands in a query where the optimizer is to find something stored; carries what a decision would have brought. */
final case class Served(
    output: Seq[Attribute],
    entry: String,
    @transient original: LogicalPlan,
    @transient source: () => LogicalPlan,
    @transient inputs: Seq[InputListing],
    @transient check: MaterializedRead.Check,
    @transient onInvalid: Refusal => Unit)
    extends LeafNode
    with MultiInstanceRelation {
  override def newInstance(): Served = copy(output = output.map(_.newInstance()))
}

/** Puts in a [[MaterializedRead]] at the same time and in the same shape as the real rule, with no planner to ask. */
object ServedRule extends Rule[LogicalPlan] {
  def register(extensions: SparkSessionExtensions): Unit = extensions.injectPreCBORule(_ => this)

  /** How often an optimizer run of our own passed by. */
  val bypassed = new AtomicInteger

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!OptimizerRuns.bypassed) rewritten(plan)
    else {
      bypassed.incrementAndGet()
      plan
    }

  private def rewritten(plan: LogicalPlan): LogicalPlan = plan.transformDownWithSubqueries {
    case node @ ScanOperation(_, _, _, served: Served) if node.deterministic => recycled(node, served)
    case served: Served => recycled(served, served)
  }

  private def recycled(node: LogicalPlan, served: Served): MaterializedRead = {
    def over(source: LogicalPlan) = {
      val renamed = source.output.zip(served.output).map { case (from, to) => Alias(from, to.name)(to.exprId) }
      val (same, wanted) = (source.output.map(_.exprId), served.output.map(_.exprId))
      node.transformUp { case s: Served => if (same == wanted) source else Project(renamed, source) }
    }
    MaterializedRead(
      served.entry, node.output, over(served.source()), over(served.original), served.inputs, served.check,
      served.onInvalid)
  }
}
