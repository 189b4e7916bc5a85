package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.regions.{InputListing, Refusal}

/**
 * The rows of a stored entry in the place of the plan that would compute them.
 *
 * @param columns for each output attribute the ordinal of the file's column
 * @param original what computes the same rows; its output matches `output` by position. Used when the entry is unusable
 * @param onInvalid told why, when that happens
 * @param inputs the source files that the entry was computed from, asked again at each execution
 */
case class RecycledRelation(
    output: Seq[Attribute],
    @transient entry: StoredEntry,
    columns: Seq[Int],
    @transient original: LogicalPlan,
    @transient onInvalid: Refusal => Unit,
    @transient inputs: Seq[InputListing] = Nil)
    extends LeafNode
    with MultiInstanceRelation {
  require(output.size == columns.size && output.size == original.output.size)

  override def newInstance(): RecycledRelation = copy(output = output.map(_.newInstance()))

  // Small files of many rows must not look broadcastable, so never less than the rows take by Spark's own estimate.
  override def computeStats(): Statistics = {
    val widths = entry.schema.fields.map(_.dataType.defaultSize.toLong)
    val share = (columns.map(widths(_)).sum + 1).toDouble / (widths.sum + 1)
    val stored = BigInt((entry.bytes * share).toLong)
    val inMemory = EstimationUtils.getOutputSize(output, BigInt(entry.rows))
    Statistics(sizeInBytes = stored.max(inMemory).max(1), rowCount = Some(BigInt(entry.rows)))
  }

  override def maxRows: Option[Long] = Some(entry.rows)

  override protected def stringArgs: Iterator[Any] = Iterator(s"[entry ${entry.entry}]", output)

  /** `original` with exactly the attributes of `output`. */
  private[exec] def recomputed: LogicalPlan = {
    val plan = original.clone()
    val list = plan.output.zip(output).map { case (from, to) =>
      if (from.exprId == to.exprId) from else Alias(from, to.name)(exprId = to.exprId, qualifier = to.qualifier)
    }
    Project(list, plan)
  }
}
