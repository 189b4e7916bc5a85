package org.apache.spark.sql.regions.bridge

/**
 * Stops asking after `misses` missed deadlines in a row, for `openMillis`; then one request is let through on trial.
 * With 3 and 5,000: a planner that hangs costs three deadlines, then one in five seconds.
 */
final class Breaker(misses: Int = 3, openMillis: Long = 5000, clock: () => Long = () => System.nanoTime() / 1000000) {
  private var missed = 0
  private var openUntil = Long.MinValue

  def allows: Boolean = synchronized {
    val now = clock()
    if (missed < misses) true
    else if (now < openUntil) false
    else {
      openUntil = now + openMillis
      true
    }
  }

  def succeeded(): Unit = synchronized { missed = 0 }

  def failed(): Unit = synchronized {
    missed += 1
    if (missed >= misses) openUntil = clock() + openMillis
  }
}

/** Delays between restarts: 0.5 s doubling to 60 s, and at most `limit` restarts in `windowMillis`. */
final class Backoff(
    limit: Int = 5,
    windowMillis: Long = 10 * 60 * 1000,
    firstMillis: Long = 500,
    mostMillis: Long = 60000,
    clock: () => Long = () => System.nanoTime() / 1000000) {
  private var restarts = Vector.empty[Long]

  /** Milliseconds to wait before the next restart, None to give up. */
  def next(): Option[Long] = synchronized {
    val now = clock()
    restarts = restarts.filter(now - _ < windowMillis)
    if (restarts.size >= limit) None
    else {
      val delay = math.min(firstMillis << restarts.size, mostMillis)
      restarts :+= now
      Some(delay)
    }
  }
}
