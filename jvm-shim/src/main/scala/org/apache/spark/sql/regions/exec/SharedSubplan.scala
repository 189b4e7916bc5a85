package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types.{DataType, MapType, VariantType}

/**
 * A subplan that stands in several places of a query and is computed once: an exchange is planned here, and Spark reuses equal
 * exchanges. Nothing is pushed or pruned through it, so that the places stay equal.
 */
case class SharedSubplan(child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  @transient override lazy val references: AttributeSet = AttributeSet(child.output)
  override def maxRows: Option[Long] = child.maxRows
  override def stats: Statistics = child.stats
  override protected def withNewChildInternal(newChild: LogicalPlan): SharedSubplan = copy(child = newChild)

  /** By as many columns as can be hashed, so that the partitions are even; a round robin would sort the rows first. */
  def partitioning(partitions: Int): HashPartitioning =
    HashPartitioning(output.filter(attribute => SharedSubplan.hashable(attribute.dataType)), partitions)
}

private[regions] object SharedSubplan {
  def hashable(dataType: DataType): Boolean = !dataType.existsRecursively {
    case _: MapType | _: VariantType => true
    case _ => false
  }
}
