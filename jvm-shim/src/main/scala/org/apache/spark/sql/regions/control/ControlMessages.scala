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
 * @param params that were set, by name
 */
private[control] final case class Holding(
    version: Long,
    paused: Boolean,
    points: Map[Long, Seq[Point]],
    answers: Map[String, Answered],
    params: Map[String, String] = Map.empty)
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

/** A task computes with another value of a parameter, from the row on that it computes as its `row`th with it. */
private[control] final case class Took(attempt: wire.TaskAttempt, name: String, value: String, row: Long)
    extends ControlMessage

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
