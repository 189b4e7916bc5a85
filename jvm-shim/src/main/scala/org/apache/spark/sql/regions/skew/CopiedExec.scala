package org.apache.spark.sql.regions.skew

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/**
 * Reads a shuffle of the same stage, a partition once for each task that needs it.
 *
 * @param tasks partitions that each task reads
 */
final case class CopiedExec(child: SparkPlan, tasks: Seq[Seq[Int]]) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = UnknownPartitioning(tasks.length)
  override def supportsColumnar: Boolean = false

  override protected def doExecute(): RDD[InternalRow] = child match {
    case shuffle: ShuffleExchangeLike =>
      val specs = tasks.flatten.map(each => CoalescedPartitionSpec(each, each + 1, None): ShufflePartitionSpec)
      val starts = tasks.scanLeft(0)(_ + _.length)
      val blocks = tasks.zip(starts).map { case (task, start) =>
        task.indices.map(at => Block(start + at, None)).toArray
      }
      new SlicesRDD(shuffle.getShuffleRDD(specs.toArray).asInstanceOf[RDD[InternalRow]], blocks.toArray)
    case other => throw new IllegalStateException(s"copies of ${other.nodeName}, expected a shuffle")
  }

  override def stringArgs: Iterator[Any] =
    Iterator(s"${tasks.flatten.distinct.length} partitions for ${tasks.length} tasks")

  override protected def withNewChildInternal(newChild: SparkPlan): CopiedExec = copy(child = newChild)
}
