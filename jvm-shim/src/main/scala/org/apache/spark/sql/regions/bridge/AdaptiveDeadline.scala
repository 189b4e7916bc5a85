package org.apache.spark.sql.regions.bridge

import org.apache.spark.sql.regions.Policy

/**
 * How long a decision is worth waiting for: a share of what decisions of late have saved.
 *
 * On a machine whose cores are all busy the planner may need longer than its deadline, and a query that could have read its
 * result then computes it. Where a deadline was missed nothing more is waited for until decisions have saved something
 * again, so that a planner that hangs costs one such wait.
 */
final class AdaptiveDeadline(
    share: Double = Policy.deadlineShare,
    mostMillis: Long = Policy.deadlineMostMillis.toLong) {
  private var saving = 0.0

  def millis: Long = synchronized(math.min(mostMillis, (share * saving * 1000).toLong))

  /** @param seconds that the decision is expected to save */
  def answered(seconds: Double): Unit = synchronized { saving = (saving + math.max(0.0, seconds)) / 2 }

  def missed(): Unit = synchronized { saving = 0 }
}
