package org.apache.spark.sql.regions.profile

import scala.collection.mutable

import org.apache.spark.Success
import org.apache.spark.scheduler.SparkListenerTaskEnd

/**
 * What the tasks of one stage added to each SQL metric, and how long they ran. Spark's own sums over a query count a
 * row twice where a stage runs twice (sampling before a range exchange) or a partition does (speculation).
 */
final class StageSums(val stageId: Int) {
  private val sums = mutable.LongMap.empty[Long]
  private val partitions = mutable.BitSet.empty
  private var runMillis, cpuNanos = 0L
  private var attempts = 0

  def add(end: SparkListenerTaskEnd): Unit = {
    // Failed and duplicate attempts cost time, but bring no rows.
    attempts += 1
    if (end.taskMetrics != null) {
      runMillis += end.taskMetrics.executorRunTime
      cpuNanos += end.taskMetrics.executorCpuTime
    }
    val partition = end.taskInfo.partitionId
    if (end.reason == Success && (partition < 0 || partitions.add(partition))) {
      end.taskInfo.accumulables.foreach { accumulable =>
        accumulable.update match {
          case Some(value: Long) => sums(accumulable.id) = sums.getOrElse(accumulable.id, 0L) + value
          case _ =>
        }
      }
    }
  }

  def seconds: Double = runMillis / 1000.0
  def cpuSeconds: Double = cpuNanos / 1e9
  def tasks: Int = attempts
  def apply(metric: Long): Option[Long] = sums.get(metric)
  def metrics: Iterator[Long] = sums.keysIterator
}
