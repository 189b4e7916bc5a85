package org.apache.spark.sql.regions.exec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.regions.{InputListing, Refusal}
import org.apache.spark.sql.regions.rules.OptimizerRuns

/**
 * A result that is read back, and the plan that it stands for.
 *
 * A query can be planned long before it runs (explain, a DataFrame collected twice), so what is read is checked again when it is
 * planned and when it runs; where the source files have changed since, or the stored files are gone, `original` runs instead.
 *
 * @param read yields `output` from what was stored
 * @param original yields `output` from the sources
 * @param inputs the source files that the stored rows depend on
 * @param stored whether what is stored is still whole
 */
final case class Recycled(
    output: Seq[Attribute],
    read: LogicalPlan,
    original: LogicalPlan,
    inputs: Seq[InputListing],
    stored: Recycled.Check,
    onInvalid: Recycled.OnInvalid)
    extends LeafNode {

  def refusal(session: SparkSession): Option[Refusal] =
    stored
      .refusal(session)
      .orElse(inputs.find(!_.unchanged()).map(i => Refusal("INPUT_CHANGED", i.describe)))

  override def computeStats(): Statistics = read.stats
  override def maxRows: Option[Long] = read.maxRows
  override def innerChildren: Seq[LogicalPlan] = Seq(read)
  override def nodeName: String = s"Recycled ${stored.entry}"
  override def simpleString(maxFields: Int): String = s"$nodeName ${output.mkString("[", ", ", "]")}"
}

object Recycled {
  trait Check extends Serializable {
    def entry: String
    def refusal(session: SparkSession): Option[Refusal]
  }
  type OnInvalid = Refusal => Unit
}

/** Runs `child`, or `original` where the stored rows may not be used any more. */
final case class RecycledExec(child: SparkPlan, @transient node: Recycled) extends UnaryExecNode {
  override def output: Seq[Attribute] = node.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = node.nodeName
  override def simpleString(maxFields: Int): String = node.simpleString(maxFields)

  override protected def doExecute(): RDD[InternalRow] = node.refusal(session) match {
    case None => child.execute()
    case Some(refusal) =>
      node.onInvalid(refusal)
      RecycledExec.instead(session, node.original).execute()
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

object RecycledExec {

  /** The physical plan of an optimized logical plan that only lacks the optimizer's last batches. */
  def instead(session: SparkSession, original: LogicalPlan): SparkPlan = OptimizerRuns.bypass {
    val plan = original.clone()
    plan.setAnalyzed()
    new QueryExecution(session, plan).executedPlan
  }
}
