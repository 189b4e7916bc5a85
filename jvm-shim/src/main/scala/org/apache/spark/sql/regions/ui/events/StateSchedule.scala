package org.apache.spark.sql.regions.ui.events

/**
 * When to tell how things stand: at the start, when the planner's health changes, and some time after anything else
 * has changed. A large state waits longer, so that an event log grows by no more than a few megabytes an hour.
 */
private[ui] final class StateSchedule(intervalMillis: Long, now: () => Long = () => System.nanoTime() / 1000000) {

  /** An item takes about 250 bytes of the log: 2.5 kB a second at most. */
  private val millisPerItem = 100L
  private var pending = true
  private var lastHealth = ""
  private var next = now()

  def changed(): Unit = synchronized { pending = true }

  def due(health: String): Boolean = synchronized {
    val turned = health != lastHealth
    lastHealth = health
    if (turned) pending = true
    pending && (turned || now() >= next)
  }

  /** @param items entries, operators and edges of the state */
  def reported(items: Int): Unit = synchronized {
    pending = false
    next = now() + math.max(intervalMillis, items * millisPerItem)
  }
}
