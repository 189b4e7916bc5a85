package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.regions.{BoundedMap, wire}

/**
 * Loops in which the planner decided in vain, each until when it is not asked about them: an iteration of some tenths of a
 * second would wait for it as long as it may at most take longer than plain Spark's.
 */
private[regions] final class RestingLoops {
  private val until = BoundedMap[String, Long](limit = 200)

  /** Whether a query is to run as it is. */
  def apply(asked: wire.QueryShape): Boolean = {
    val end = until.getOrDefault(asked.shape, 0L)
    end != 0L && System.nanoTime() - end < 0
  }

  def rest(asked: wire.QueryShape, seconds: Double): Unit =
    if (seconds > 0) until.put(asked.shape, System.nanoTime() + (seconds * 1e9).toLong) else until.remove(asked.shape)

  /** Whatever follows is decided on. */
  def clear(): Unit = until.clear()
}
