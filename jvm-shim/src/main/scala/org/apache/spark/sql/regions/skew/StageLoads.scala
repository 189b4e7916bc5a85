package org.apache.spark.sql.regions.skew

import scala.collection.mutable

import org.apache.spark.scheduler._
import org.apache.spark.sql.regions.BoundedMap

/**
 * What a task of a stage read, and how long it ran.
 *
 * @param spilled bytes in memory that it put aside
 */
final case class TaskLoad(bytes: Long, rows: Long, millis: Long, spilled: Long)

/** Tells who asked for it what each task took of the stage that reads a shuffle; the newest `limit` are waited for. */
final class StageLoads(limit: Int) extends SparkListener {

  /** @param tasks as many as the stage has; another stage that reads the same shuffle would have others */
  private final class Awaited(val owner: StageKey, val tasks: Int, val told: Seq[TaskLoad] => Unit) {
    val loads = mutable.TreeMap.empty[Int, TaskLoad]
  }

  private val awaited = BoundedMap[Int, Awaited](limit)
  private val running = BoundedMap[Int, Awaited](limit)

  /** Of two stages that wait for one shuffle's reader at a time, neither is told: it could be either's. */
  def await(shuffle: Int, owner: StageKey, tasks: Int)(told: Seq[TaskLoad] => Unit): Unit = awaited.compute(
    shuffle,
    (_, before) =>
      if (before == null || before.owner == owner) new Awaited(owner, tasks, told)
      else new Awaited(owner, StageLoads.noStage, told))

  override def onJobStart(start: SparkListenerJobStart): Unit = {
    val shuffles = start.stageInfos.flatMap(stage => stage.shuffleDepId.map(stage.stageId -> _)).toMap
    for (stage <- start.stageInfos;
      shuffle <- stage.parentIds.flatMap(shuffles.get).distinct;
      found <- Option(awaited.get(shuffle)) if found.tasks == stage.numTasks) {
      awaited.remove(shuffle)
      running.put(stage.stageId, found)
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
    if (end.taskInfo.successful && end.taskMetrics != null) {
      Option(running.get(end.stageId)).foreach { stage =>
        val metrics = end.taskMetrics
        val read = metrics.shuffleReadMetrics
        val load =
          TaskLoad(read.totalBytesRead, read.recordsRead, metrics.executorRunTime, metrics.memoryBytesSpilled)
        stage.loads.getOrElseUpdate(end.taskInfo.index, load)
      }
    }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
    if (event.stageInfo.failureReason.isEmpty) {
      Option(running.remove(event.stageInfo.stageId)).filter(stage => stage.loads.size == stage.tasks)
        .foreach(stage => stage.told(stage.loads.values.toSeq))
    }
}

private object StageLoads {
  val noStage: Int = -1
}
