package org.apache.spark.sql.regions.skew

import org.apache.spark.{Dependency, NarrowDependency, Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow

/**
 * Part of a shuffle that a task reads.
 *
 * @param roundRobin (i, n): only the rows whose position divided by n leaves i; the position within one map task's block
 * @param sampled whether its keys are to be counted
 */
final case class Block(index: Int, roundRobin: Option[(Int, Int)], sampled: Boolean = false)

/**
 * Tasks that read several blocks of `blocks` each, in any order.
 *
 * @param tasks for each partition of this RDD, partitions of `blocks`
 */
final class SlicesRDD(
    @transient private var blocks: RDD[InternalRow],
    tasks: Array[Array[Block]],
    sampler: Option[KeySampler] = None)
    extends RDD[InternalRow](blocks.sparkContext, Nil) {

  override protected def getPartitions: Array[Partition] = {
    val read = blocks.partitions
    tasks.zipWithIndex.map { case (task, at) => TaskBlocks(at, task.map(block => BlockRead(read(block.index), block))) }
  }

  override def getDependencies: Seq[Dependency[_]] = Seq(
    new NarrowDependency(blocks) {
      override def getParents(partition: Int): Seq[Int] = tasks(partition).map(_.index).toSeq
    })

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    split.asInstanceOf[TaskBlocks].blocks.headOption.toSeq.flatMap(part => blocks.preferredLocations(part.read))

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val parent = firstParent[InternalRow]
    val sampled = sampler.map(_.ofTask(context))
    split.asInstanceOf[TaskBlocks].blocks.iterator.flatMap { case BlockRead(partition, block) =>
      val rows = parent.iterator(partition, context)
      val mine = block.roundRobin.fold(rows) { case (first, count) => everyNth(rows, first, count) }
      sampled.filter(_ => block.sampled).fold(mine)(_(mine))
    }
  }

  private def everyNth(rows: Iterator[InternalRow], mine: Int, count: Int): Iterator[InternalRow] = {
    var next = -1
    rows.filter { _ =>
      next += 1
      if (next == count) next = 0
      next == mine
    }
  }

  override def clearDependencies(): Unit = {
    super.clearDependencies()
    blocks = null
  }
}

private final case class BlockRead(read: Partition, block: Block)
private final case class TaskBlocks(index: Int, blocks: Array[BlockRead]) extends Partition
