package org.apache.spark.sql.regions.bridge

import org.apache.spark.sql.regions.Policy

/**
 * How long a decision is worth waiting for: a share of what decisions of late have saved.
 *
 * On a machine whose cores are all busy the planner may need longer than its deadline, and a query that could have read its
 * result then computes it. What the first decision saves is not known, and the planner is cold: it is waited for as for one
 * that saves much. Where a deadline was missed nothing more is waited for until decisions have saved something again, so
 * that a planner that hangs costs one such wait.
 */
final class AdaptiveDeadline(
    share: Double = Policy.deadlineShare,
    mostMillis: Long = Policy.deadlineMostMillis.toLong) {
  private var saving = Option.empty[Double]

  def millis: Long = synchronized(saving.fold(mostMillis)(each => math.min(mostMillis, (share * each * 1000).toLong)))

  /** @param seconds that the decision is expected to save */
  def answered(seconds: Double): Unit = synchronized {
    saving = Some((saving.getOrElse(0.0) + math.max(0.0, seconds)) / 2)
  }

  def missed(): Unit = synchronized { saving = Some(0) }
}
