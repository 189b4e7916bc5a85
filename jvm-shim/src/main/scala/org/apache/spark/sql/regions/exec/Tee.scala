package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics, UnaryNode}
import org.apache.spark.sql.regions.StoreOrder

/**
 * Passes its child's rows on and stores them on the way.
 *
 * @param order not serializable; transient, because operators above can drag their children into a task closure
 */
case class Tee(child: LogicalPlan, @transient order: StoreOrder) extends UnaryNode {
  override def output: Seq[Attribute] = child.output

  // Otherwise columns that nobody above reads are pruned through the tee.
  @transient override lazy val references: AttributeSet = AttributeSet(child.output)

  override def maxRows: Option[Long] = child.maxRows
  override def maxRowsPerPartition: Option[Long] = child.maxRowsPerPartition
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def stats: Statistics = child.stats

  override protected def stringArgs: Iterator[Any] = Iterator(Tee.label(order))

  override protected def withNewChildInternal(newChild: LogicalPlan): Tee = copy(child = newChild)
}

private[exec] object Tee {
  def label(order: StoreOrder): String = if (order == null) "[entry ?]" else s"[entry ${order.entry}]"
}
