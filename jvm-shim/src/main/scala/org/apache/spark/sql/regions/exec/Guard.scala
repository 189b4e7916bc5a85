package org.apache.spark.sql.regions.exec

/** Tells our own optimizer rule to leave a plan alone, on this thread: set while a fall-back plans the original. */
object Guard {
  private val depth = ThreadLocal.withInitial[Int](() => 0)

  def active: Boolean = depth.get() > 0

  def bypass[T](body: => T): T = {
    depth.set(depth.get() + 1)
    try body
    finally depth.set(depth.get() - 1)
  }
}
