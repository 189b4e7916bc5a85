package org.apache.spark.sql.regions.exec

import java.util

import org.apache.spark.sql.regions.Refusal
import org.apache.spark.util.AccumulatorV2

/**
 * What one pass over one partition did.
 *
 * @param file name of the file written, empty if there were no rows, or if they are `held`
 * @param nanos time spent in encoding and writing, sampled
 * @param others what else the task took since it has rows
 * @param held rows that the driver is to write, see [[PackedRows]]
 * @param problem why the file is missing; the partition is stored if None
 */
private[exec] final case class PartitionReport(
    partition: Int,
    stageAttempt: Int,
    attempt: Int,
    file: String,
    rows: Long,
    bytes: Long,
    nanos: Long,
    others: Long,
    problem: Option[Refusal],
    held: Option[Array[Byte]] = None)

/**
 * Carries reports of successful tasks to the driver. Spark merges them before it tells that a job ended, and drops
 * those of failed attempts.
 */
private[exec] final class StoreReports(@transient private val run: StoreRun)
    extends AccumulatorV2[PartitionReport, util.List[PartitionReport]] {
  private val reports = new util.ArrayList[PartitionReport]()

  override def isZero: Boolean = synchronized(reports.isEmpty)
  override def copy(): StoreReports = synchronized {
    val other = new StoreReports(null)
    other.reports.addAll(reports)
    other
  }
  override def copyAndReset(): StoreReports = new StoreReports(null)
  override def reset(): Unit = synchronized(reports.clear())
  override def add(report: PartitionReport): Unit = synchronized(reports.add(report))
  override def value: util.List[PartitionReport] = synchronized(new util.ArrayList(reports))

  // On the driver the run takes the reports over, so that nothing grows here.
  override def merge(other: AccumulatorV2[PartitionReport, util.List[PartitionReport]]): Unit =
    if (run != null) run.accept(other.value)
    else {
      val added = other.value
      synchronized(reports.addAll(added))
    }
}
