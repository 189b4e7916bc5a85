package org.apache.spark.sql.regions.profile

import org.apache.spark.executor.TaskMetrics
import org.apache.spark.scheduler.{SparkListenerTaskEnd, StageInfo}
import org.apache.spark.sql.regions.Ring

/** Times in milliseconds, sizes in bytes; the names are sparkMeasure's, so that its users' queries keep working. */
final case class MeasuredTask(
    executorRunTime: Long,
    executorCpuTime: Long,
    executorDeserializeTime: Long,
    executorDeserializeCpuTime: Long,
    resultSerializationTime: Long,
    jvmGCTime: Long,
    resultSize: Long,
    diskBytesSpilled: Long,
    memoryBytesSpilled: Long,
    peakExecutionMemory: Long,
    recordsRead: Long,
    bytesRead: Long,
    recordsWritten: Long,
    bytesWritten: Long,
    shuffleFetchWaitTime: Long,
    shuffleTotalBytesRead: Long,
    shuffleTotalBlocksFetched: Long,
    shuffleLocalBlocksFetched: Long,
    shuffleRemoteBlocksFetched: Long,
    shuffleLocalBytesRead: Long,
    shuffleRemoteBytesRead: Long,
    shuffleRemoteBytesReadToDisk: Long,
    shuffleRecordsRead: Long,
    shuffleWriteTime: Long,
    shuffleBytesWritten: Long,
    shuffleRecordsWritten: Long)

object MeasuredTask {
  private val nanosPerMilli = 1000000L

  def of(metrics: TaskMetrics): MeasuredTask = {
    val read = metrics.shuffleReadMetrics
    val write = metrics.shuffleWriteMetrics
    MeasuredTask(
      executorRunTime = metrics.executorRunTime,
      executorCpuTime = metrics.executorCpuTime / nanosPerMilli,
      executorDeserializeTime = metrics.executorDeserializeTime,
      executorDeserializeCpuTime = metrics.executorDeserializeCpuTime / nanosPerMilli,
      resultSerializationTime = metrics.resultSerializationTime,
      jvmGCTime = metrics.jvmGCTime,
      resultSize = metrics.resultSize,
      diskBytesSpilled = metrics.diskBytesSpilled,
      memoryBytesSpilled = metrics.memoryBytesSpilled,
      peakExecutionMemory = metrics.peakExecutionMemory,
      recordsRead = metrics.inputMetrics.recordsRead,
      bytesRead = metrics.inputMetrics.bytesRead,
      recordsWritten = metrics.outputMetrics.recordsWritten,
      bytesWritten = metrics.outputMetrics.bytesWritten,
      shuffleFetchWaitTime = read.fetchWaitTime,
      shuffleTotalBytesRead = read.totalBytesRead,
      shuffleTotalBlocksFetched = read.totalBlocksFetched,
      shuffleLocalBlocksFetched = read.localBlocksFetched,
      shuffleRemoteBlocksFetched = read.remoteBlocksFetched,
      shuffleLocalBytesRead = read.localBytesRead,
      shuffleRemoteBytesRead = read.remoteBytesRead,
      shuffleRemoteBytesReadToDisk = read.remoteBytesReadToDisk,
      shuffleRecordsRead = read.recordsRead,
      shuffleWriteTime = write.writeTime / nanosPerMilli,
      shuffleBytesWritten = write.bytesWritten,
      shuffleRecordsWritten = write.recordsWritten
    )
  }
}

final case class StageRecord(
    stageId: Int,
    attemptNumber: Int,
    name: String,
    submissionTime: Long,
    completionTime: Long,
    stageDuration: Long,
    numTasks: Int,
    failed: Boolean,
    metrics: MeasuredTask)

final case class TaskRecord(
    stageId: Int,
    stageAttempt: Int,
    index: Int,
    taskId: Long,
    attempt: Int,
    launchTime: Long,
    finishTime: Long,
    duration: Long,
    executorId: String,
    host: String,
    speculative: Boolean,
    successful: Boolean,
    metrics: MeasuredTask)

/** What Spark measured of the newest stages and tasks. Writing and reading threads differ; the rings are synchronized. */
final class StageMetrics(stageLimit: Int = 1000, taskLimit: Int = 10000) {
  val stages = new Ring[StageRecord](stageLimit)
  val tasks = new Ring[TaskRecord](taskLimit)

  def add(stage: StageInfo): Unit = if (stage.taskMetrics != null) {
    val submitted = stage.submissionTime.getOrElse(0L)
    val completed = stage.completionTime.getOrElse(submitted)
    stages.add(
      StageRecord(
        stage.stageId,
        stage.attemptNumber(),
        stage.name,
        submitted,
        completed,
        completed - submitted,
        stage.numTasks,
        stage.failureReason.isDefined,
        MeasuredTask.of(stage.taskMetrics)
      ))
  }

  def add(end: SparkListenerTaskEnd): Unit = if (end.taskMetrics != null) {
    val info = end.taskInfo
    tasks.add(
      TaskRecord(
        end.stageId,
        end.stageAttemptId,
        info.index,
        info.taskId,
        info.attemptNumber,
        info.launchTime,
        info.finishTime,
        info.duration,
        info.executorId,
        info.host,
        info.speculative,
        info.successful,
        MeasuredTask.of(end.taskMetrics)
      ))
  }
}
