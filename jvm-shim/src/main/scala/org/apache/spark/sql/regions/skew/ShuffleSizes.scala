package org.apache.spark.sql.regions.skew

import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{QueryStageExec, ShuffleQueryStageExec}

/** What is known of a written shuffle: bytes of each partition and of each map task's block, rows of all together. */
final class ShuffleSizes(val stage: ShuffleQueryStageExec) {
  private val statistics = stage.mapStats.getOrElse(
    throw new IllegalArgumentException(s"${stage.name} has no map output statistics"))

  val shuffle: Int = statistics.shuffleId
  val bytes: Array[Long] = statistics.bytesByPartitionId
  val maps: Int = stage.shuffle.numMappers
  val rows: Option[Long] = stage.shuffle.runtimeStatistics.rowCount.map(_.toLong)

  /** Of all rows in memory, before they are compressed; 0 where unknown. */
  val dataBytes: Long = stage.shuffle.runtimeStatistics.sizeInBytes.min(Long.MaxValue).toLong

  /** Bytes from each map task; None where an output is gone. */
  def blocks(partition: Int): Option[Array[Long]] = {
    val tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
    tracker.shuffleStatuses.get(statistics.shuffleId).flatMap { status =>
      val sizes = status.withMapStatuses(_.map(found => if (found == null) -1L else found.getSizeForBlock(partition)))
      Some(sizes).filter(each => each.length == maps && each.forall(_ >= 0))
    }
  }

  /** Rows of each partition: by a sample of what was written, else as if all were of one width. */
  lazy val rowsByPartition: Array[Long] = {
    val weights = sampled.getOrElse(bytes)
    val total = math.max(weights.sum, 1L)
    weights.map(weight => (rows.getOrElse(0L).toDouble * weight / total).round)
  }

  /** What a partition's share of the work is told by. */
  def weights: Array[Long] = if (sampled.isDefined) rowsByPartition else bytes

  private def sampled: Option[Array[Long]] = stage.shuffle.child match {
    case counted: RowCountsExec => counted.sampled.filter(_.length == bytes.length)
    case _ => None
  }

  /** Whether a map task that runs again writes the same rows in the same order: it reads files, and row by row. */
  def repeatable: Boolean = ShuffleSizes.repeats(stage.shuffle.child)
}

object ShuffleSizes {

  /** Round robin reads the block of each map task by itself: only there do rows have a position. */
  def specs(slice: SliceRead, maps: Int): Seq[ShufflePartitionSpec] = slice match {
    case SliceRead(partition, None, None) => Seq(CoalescedPartitionSpec(partition, partition + 1, None))
    case SliceRead(partition, Some((start, end)), None) => Seq(PartialReducerPartitionSpec(partition, start, end, 0L))
    case SliceRead(partition, None, Some(_)) =>
      (0 until maps).map(map => PartialReducerPartitionSpec(partition, map, map + 1, 0L))
    case other => throw new IllegalArgumentException(s"$other is cut twice")
  }
  private def repeats(plan: SparkPlan): Boolean = plan match {
    case _: QueryStageExec => false
    case _: FileSourceScanExec | _: LocalTableScanExec | _: RangeExec => true
    case _: ProjectExec | _: FilterExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec |
        _: GenerateExec | _: CoalesceExec | _: UnionExec | _: RowCountsExec =>
      plan.expressions.forall(unchanging) && plan.children.forall(repeats)
    case _ => false
  }

  private def unchanging(expression: Expression): Boolean = expression.deterministic
}
