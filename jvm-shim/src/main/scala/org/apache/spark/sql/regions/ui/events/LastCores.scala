package org.apache.spark.sql.regions.ui.events

import org.apache.spark.SparkContext

/** Tasks that run at once; as they were last seen, once the context has stopped and cannot be asked any more. */
private[events] final class LastCores(sc: SparkContext) extends (() => Int) {
  @volatile private var seen = 1

  override def apply(): Int = {
    try seen = sc.defaultParallelism
    catch { case _: IllegalStateException if sc.isStopped => }
    seen
  }
}
