package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}

/**
 * A written shuffle and the node of the stage that reads it.
 *
 * @param tasks partitions of each task, as adaptive execution has it
 */
final case class ReduceInput(read: SparkPlan, stage: ShuffleQueryStageExec, tasks: Seq[Range])

/** Reads of whole partitions; others are a skew split or a local read of Spark's own. */
object ReduceInput {
  def unapply(plan: SparkPlan): Option[(ShuffleQueryStageExec, Seq[Range])] = plan match {
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if written(stage) =>
      val ranges = specs.collect { case CoalescedPartitionSpec(start, end, _) => start until end }
      Some((stage, ranges)).filter(_ => ranges.length == specs.length)
    case stage: ShuffleQueryStageExec if written(stage) =>
      Some((stage, (0 until stage.shuffle.numPartitions).map(each => each to each)))
    case _ => None
  }

  private def written(stage: ShuffleQueryStageExec): Boolean = stage.isMaterialized && stage.mapStats.isDefined
}
