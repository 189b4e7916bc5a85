package org.apache.spark.sql.regions.control

import org.apache.spark.sql.regions.wire
import org.apache.spark.util.Utils

/**
 * What driver and executors say to each other. It goes as bytes, which Spark hands on where classes of ours are not known to
 * it: a jar that was added later is known to tasks only.
 */
private[control] sealed trait ControlMessage extends Serializable {
  def bytes: Array[Byte] = Utils.serialize(this)
}

private[control] object ControlMessage {
  def apply[M <: ControlMessage](bytes: Array[Byte]): M = Utils.deserialize[M](bytes, getClass.getClassLoader)
}

/**
 * All that holds; one of an earlier version is dropped.
 *
 * @param points by probe
 * @param answers by row
 * @param params that were set, by name; of functions which of `functions` holds, by [[ReplaceableFunctions.version]]
 * @param functions that took others' places, pickled; numbered from 1
 */
private[control] final case class Holding(
    version: Long,
    paused: Boolean,
    points: Map[Long, Seq[Point]],
    answers: Map[String, Answered],
    params: Map[String, String] = Map.empty,
    functions: Seq[Array[Byte]] = Nil)
    extends ControlMessage

private[control] object Holding {

  /** An answer to every row: nobody is left who could give one. */
  val everyRow = "*"

  def key(row: wire.WaitingRow): String =
    s"${row.attempt.number}/${row.operator}/${row.ordinal}/${row.error.nonEmpty}"
}

/**
 * What becomes of a row that waits.
 *
 * @param action `skip`, `null`, `fix`, `fail` or `pass`
 * @param values new ones, by name, of `fix`
 */
private[control] final case class Answered(action: String, values: Map[String, Option[String]] = Map.empty)
    extends Serializable

/**
 * @param condition of each row, or the value of it that is summed up; compiled where it is used. None where rows are counted
 * @param counts whether all rows together are waited for, not each
 */
private[control] final case class Point(
    number: Int,
    action: String,
    sql: String,
    condition: Option[Array[Byte]],
    counts: Boolean)
    extends Serializable

/** To a share in a breakpoint that counts: give so many rows, or stand and report; see CountOrder of docs/protocol.md. */
private[control] final case class Target(attempt: Long, number: Int, round: Int, amount: Double, last: Boolean)
    extends ControlMessage
private[control] final case class Ask(attempt: Long, number: Int, round: Int) extends ControlMessage

/** A task stands at a row; has gone on from it, or is lost; its job is to fail. */
private[control] final case class Held(row: wire.WaitingRow) extends ControlMessage
private[control] final case class Gone(attempt: wire.TaskAttempt) extends ControlMessage
private[control] final case class Failing(attempt: wire.TaskAttempt, why: String) extends ControlMessage

/** The condition of a breakpoint fails. */
private[control] final case class Broken(number: Int, error: String) extends ControlMessage

/**
 * A task computes with another value of a parameter, from the row on that it computes as its `row`th with it.
 *
 * @param replayed an earlier attempt took it there
 * @param reason why an attempt does not take what an earlier one took
 */
private[control] final case class Took(
    attempt: wire.TaskAttempt,
    place: Place,
    name: String,
    value: String,
    row: Long,
    replayed: Boolean,
    reason: String)
    extends ControlMessage

/**
 * An attempt that computes with parameters asks for an [[Earlier]].
 *
 * @param again whether there was another attempt of its stage or task
 */
private[control] final case class Starting(attempt: wire.TaskAttempt, again: Boolean) extends ControlMessage

/**
 * Where a task computes with a parameter; the same for each attempt of the task.
 *
 * @param param where in the plan
 * @param partition of the rows there: a task may have several of them
 * @param number of those in the task that have this partition, in their order
 */
private[control] final case class Place(param: Long, partition: Int, number: Int)

/** @param row the first one that was computed with it, from 1 */
private[control] final case class Taken(row: Long, value: String)

/**
 * @param values after the default
 * @param whole whether they are those of all rows that the task has there; else others may have followed
 */
private[control] final case class Track(values: Seq[Taken], whole: Boolean) {

  /** In whatever order its rows came, each was computed with the same. */
  def constant: Boolean = whole && values.forall(_.row == 1)
}

/**
 * What earlier attempts of a task took.
 *
 * @param attempt the last one of them; none before the first
 * @param whole of places that are not in `tracks`
 * @param skipped whether a breakpoint may have left rows out, then or now
 * @param forgotten whether there may have been one of which nothing is known any more
 */
private[control] final case class Earlier(
    attempt: Option[Long],
    tracks: Map[Place, Track],
    whole: Boolean,
    skipped: Boolean,
    forgotten: Boolean)
    extends ControlMessage {
  def at(place: Place): Track = tracks.getOrElse(place, Track(Nil, whole))
}

/** See CountRows of docs/protocol.md. */
private[control] final case class Counts(
    executor: String,
    attempt: wire.TaskAttempt,
    number: Int,
    event: String,
    round: Int = 0,
    produced: Double = 0)
    extends ControlMessage

/**
 * What the tasks of an executor do.
 *
 * @param passed rows of attempts that ended well, by probe
 * @param python its workers, and whether each is stopped
 */
private[control] final case class Snapshot(
    executor: String,
    tasks: Seq[TaskShown],
    passed: Map[Long, Long],
    python: Map[Long, Boolean])
    extends ControlMessage

/**
 * @param at the operator, or what else it stands at
 * @param row before which it stands, as Spark shows values
 * @param rows that have passed, by probe
 * @param memory bytes of what holds rows in it
 */
private[control] final case class TaskShown(
    stage: Int,
    partition: Int,
    attempt: Long,
    executor: String,
    stands: Boolean,
    at: String,
    row: Seq[(String, String)],
    rows: Map[Long, Long],
    stack: Seq[String],
    memory: Map[String, Long])
