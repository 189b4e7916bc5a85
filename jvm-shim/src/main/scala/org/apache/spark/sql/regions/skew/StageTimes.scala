package org.apache.spark.sql.regions.skew

import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted, StageInfo}
import org.apache.spark.sql.regions.BoundedMap

/** Tells who asked for it how long the stages took that ran an RDD; the newest `limit` are waited for. */
final class StageTimes(limit: Int) extends SparkListener {
  private val awaited = BoundedMap[Int, StageInfo => Unit](limit)

  def await(rdd: Int)(told: StageInfo => Unit): Unit = awaited.put(rdd, told)

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
    if (event.stageInfo.failureReason.isEmpty) {
      event.stageInfo.rddInfos.foreach(rdd => Option(awaited.remove(rdd.id)).foreach(_.apply(event.stageInfo)))
    }
}
