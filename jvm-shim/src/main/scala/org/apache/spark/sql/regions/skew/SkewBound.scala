package org.apache.spark.sql.regions.skew

import scala.collection.mutable

/** Whether there could be anything to gain, without asking anybody: most stages end here. */
private[skew] object SkewBound {

  /**
   * Bytes or rows by which the core that ends last, of tasks that start in their order, exceeds a fair share.
   *
   * @param tasks bytes or rows
   */
  def gain(tasks: Seq[Double], cores: Int): Double = {
    val loads = mutable.PriorityQueue.fill(math.max(cores, 1))(0.0)(Ordering[Double].reverse)
    tasks.foreach(task => loads.enqueue(loads.dequeue() + task))
    loads.max - tasks.sum / math.max(cores, 1)
  }
}
