package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils

/**
 * The rows of a stored entry; always inside a [[MaterializedRead]], which knows what to do when they are gone.
 *
 * @param columns for each output attribute the ordinal of the file's column
 * @param arranged whether the rows are wanted in the partitions that they were stored in
 */
case class MaterializedRelation(
    output: Seq[Attribute],
    @transient entry: StoredEntry,
    columns: Seq[Int],
    arranged: Boolean = false)
    extends LeafNode {
  require(output.size == columns.size)

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
}
