package org.apache.spark.sql.regions.skew

import java.util.{Collections, LinkedHashMap => JLinkedMap, Map => JMap}

import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted, StageInfo}

/** Tells who asked for it how long the stages took that ran an RDD; the newest `limit` are waited for. */
final class StageTimes(limit: Int) extends SparkListener {
  private val awaited: JMap[Int, StageInfo => Unit] =
    Collections.synchronizedMap(new JLinkedMap[Int, StageInfo => Unit]() {
      override def removeEldestEntry(eldest: JMap.Entry[Int, StageInfo => Unit]): Boolean = size > limit
    })

  def await(rdd: Int)(told: StageInfo => Unit): Unit = awaited.put(rdd, told)

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
    if (event.stageInfo.failureReason.isEmpty) {
      event.stageInfo.rddInfos.foreach(rdd => Option(awaited.remove(rdd.id)).foreach(_.apply(event.stageInfo)))
    }
}
