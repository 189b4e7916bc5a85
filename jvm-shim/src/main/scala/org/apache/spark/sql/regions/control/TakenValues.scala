package org.apache.spark.sql.regions.control

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.regions.BoundedMap
import org.apache.spark.sql.regions.wire.TaskAttempt

/**
 * The log of Amber §6.2, on the driver: what each attempt took at which row, for those that have to repeat it.
 *
 * A task is known by the partition and by what its stage writes: Spark gives the stage of a lost shuffle's output another number in a
 * later job. The first attempt that comes to its end is the one whose rows count.
 */
private[control] final class TakenValues {
  import TakenValues._

  private val attempts = BoundedMap[Long, Run](mostRuns)
  private val latest = BoundedMap[(String, Int), Run](mostRuns)

  /** @param skips whether a breakpoint may leave rows out from now on */
  def started(attempt: TaskAttempt, output: String, skips: Boolean): Earlier = synchronized {
    val task = (output, attempt.partition)
    val before = Option(latest.get(task))
    val found = before.fold(Earlier(None, Map.empty, whole = false, skips))(run =>
      Earlier(Some(run.attempt), run.tracks, run.whole, run.skipped || skips))
    val run = new Run(attempt.number, task, found.tracks, found.whole, found.skipped)
    attempts.put(run.attempt, run)
    latest.put(task, run)
    found
  }

  /** A value that is not repeated is another one than before, if there was any. */
  def took(message: Took): Unit = synchronized {
    for (run <- Option(attempts.get(message.attempt.number)) if !message.replayed) {
      val before = run.tracks.getOrElse(message.place, Track(Nil, run.whole)).values.takeWhile(_.row < message.row)
      run.tracks += message.place -> Track(before :+ Taken(message.row, message.value), whole = false)
    }
  }

  def ended(attempt: Long): Unit = synchronized {
    Option(attempts.get(attempt)).foreach { run =>
      run.whole = true
      run.tracks = run.tracks.map { case (place, track) => place -> track.copy(whole = true) }
      if (!Option(latest.get(run.task)).exists(_.whole)) latest.put(run.task, run)
    }
  }

  /** Tasks that run may leave rows out from now on. */
  def skip(): Unit = synchronized(attempts.values.asScala.filterNot(_.whole).foreach(_.skipped = true))
}

private object TakenValues {

  /** Of all queries; the eldest are forgotten. */
  val mostRuns = 100000

  final class Run(
      val attempt: Long,
      val task: (String, Int),
      var tracks: Map[Place, Track],
      var whole: Boolean,
      var skipped: Boolean)
}
