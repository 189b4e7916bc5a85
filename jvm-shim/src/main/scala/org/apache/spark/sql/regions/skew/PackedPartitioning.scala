package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical._

/**
 * Hash partitions, several of them in one task and in any order; rows of a key are still together. Like Spark's
 * `CoalescedHashPartitioning`, which knows ranges of neighbours only.
 *
 * @param tasks hash partitions of each task, each in exactly one
 */
final case class PackedPartitioning(from: HashPartitioning, tasks: Seq[Seq[Int]]) extends HashPartitioningLike {
  override def expressions: Seq[Expression] = from.expressions
  override val numPartitions: Int = tasks.length

  override def createShuffleSpec(distribution: ClusteredDistribution): ShuffleSpec =
    PackedShuffleSpec(from.createShuffleSpec(distribution), tasks)

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): PackedPartitioning =
    copy(from = from.copy(expressions = newChildren))
}

final case class PackedShuffleSpec(from: ShuffleSpec, tasks: Seq[Seq[Int]]) extends ShuffleSpec {
  override def numPartitions: Int = tasks.length
  override def canCreatePartitioning: Boolean = false

  override def isCompatibleWith(other: ShuffleSpec): Boolean = other match {
    case SinglePartitionShuffleSpec => numPartitions == 1
    case PackedShuffleSpec(otherFrom, otherTasks) => tasks == otherTasks && from.isCompatibleWith(otherFrom)
    case ShuffleSpecCollection(specs) => specs.exists(isCompatibleWith)
    case _ => false
  }
}
