package org.apache.spark.sql.regions.control

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.sql.regions.BoundedMap

/**
 * The log of Amber §6.2, on the driver: what each attempt took at which row, for those that have to repeat it.
 *
 * A task is known by the partition and by what its stage writes: Spark gives the stage of a lost shuffle's output another number in a
 * later job. The first attempt that Spark takes the rows of is the one whose rows count.
 *
 * @param most attempts that are known, of all queries; the eldest are forgotten
 */
private[control] final class TakenValues(most: Int) extends Logging {
  import TakenValues._

  private val attempts = BoundedMap[Long, Run](most)
  private val latest = BoundedMap[(String, Int), Run](most, byUse = true)
  private var forgot = false

  /** @param skips whether a breakpoint may leave rows out from now on */
  def started(starting: Starting, output: String, skips: Boolean): Earlier = synchronized {
    val attempt = starting.attempt
    val task = (output, attempt.partition)
    val before = Option(latest.get(task))
    val found = before.fold(Earlier(None, Map.empty, whole = false, skips, forgot && starting.again))(run =>
      Earlier(Some(run.attempt), run.tracks, run.whole, run.skipped || skips, forgotten = false))
    val run = new Run(attempt.number, task, found.tracks, found.whole, found.skipped)
    if (latest.size == most && before.isEmpty && !forgot) {
      forgot = true
      logWarning(s"more than $most tasks have computed with parameters: what the first ones took is not known any more")
    }
    attempts.put(run.attempt, run)
    // Spark may have given up the one that asks.
    if (before.forall(_.attempt < run.attempt)) latest.put(task, run)
    found
  }

  /** A value that is not repeated is another one than before, if there was any. */
  def took(message: Took): Unit = synchronized {
    for (run <- Option(attempts.get(message.attempt.number)) if !message.replayed) {
      val before = run.tracks.getOrElse(message.place, Track(Nil, run.whole)).values.takeWhile(_.row < message.row)
      run.tracks += message.place -> Track(before :+ Taken(message.row, message.value), run.done)
    }
  }

  /** Spark takes the rows of an attempt. */
  def ended(attempt: Long): Unit = synchronized {
    Option(attempts.get(attempt)).foreach { run =>
      run.whole = true
      run.done = true
      run.tracks = run.tracks.map { case (place, track) => place -> track.copy(whole = true) }
      if (!Option(latest.get(run.task)).exists(_.whole)) latest.put(run.task, run)
    }
  }

  /** Tasks that run may leave rows out from now on. */
  def skip(): Unit = synchronized(attempts.values.asScala.filterNot(_.done).foreach(_.skipped = true))
}

private object TakenValues {

  /**
   * @param whole whether `tracks` have all that the rows which count were computed with, also if it is this attempt that repeats them
   * @param done whether it has no more rows
   */
  final class Run(
      val attempt: Long,
      val task: (String, Int),
      var tracks: Map[Place, Track],
      var whole: Boolean,
      var skipped: Boolean,
      var done: Boolean = false)
}
