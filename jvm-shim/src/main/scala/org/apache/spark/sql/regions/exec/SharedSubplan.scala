package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types.{DataType, MapType, VariantType}

/**
 * A subplan that stands in several places of a query and is computed once: an exchange is planned here, where the subplan does
 * not end with one, and Spark reuses equal exchanges. Nothing is pushed or pruned through it, so that the places stay equal.
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

  /**
   * Whether the plan is an aggregate that Spark computes in two phases with an exchange in between: to merge the few rows of the
   * first phase at each place costs less than an exchange more. None is planned where a join or an aggregate below has left the
   * rows of a group together.
   */
  def endsWithExchange(plan: LogicalPlan): Boolean = plan match {
    case Project(_, child) => endsWithExchange(child)
    case Filter(_, child) => endsWithExchange(child)
    case Aggregate(grouping, _, child, _) =>
      val keys = AttributeSet(grouping.flatMap(_.references))
      def together(partitioned: Seq[Expression]): Boolean =
        partitioned.nonEmpty && partitioned.forall(_.references.subsetOf(keys))
      grouping.nonEmpty && !child.exists {
        case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => together(left) || together(right)
        case below: Aggregate => together(below.groupingExpressions) || below.groupingExpressions.isEmpty
        case below: Window => together(below.partitionSpec)
        case _: Project | _: Filter | _: Union | _: LeafNode | _: Generate | _: Expand => false
        case _ => true
      }
    case _ => false
  }
}
