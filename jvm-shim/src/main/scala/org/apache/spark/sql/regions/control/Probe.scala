package org.apache.spark.sql.regions.control

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Cast, BoundReference, Expression, Predicate}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.wire.WaitingRow
import org.apache.spark.sql.types.StringType
import org.apache.spark.util.Utils

/**
 * A probe in a task: of one thread, which counts; others say by `stopAt` where it stops next.
 *
 * Before a row that would be beyond `stopAt`, the thread looks for why: a pause, a breakpoint that counts rows and has
 * given it no more of them, or one with a condition.
 */
final class Probe private[control] (val info: ProbeInfo, task: ControlledTask, executor: ControlledExecutor) {

  /** That have passed. */
  private[control] var rows = 0L
  private var dropped = 0L

  /** Of the row at hand, from 1. */
  private def ordinal: Long = rows + dropped + 1
  @volatile private var stopAt = Long.MaxValue
  @volatile private var locals = Seq.empty[Local]
  private[control] val counts = mutable.LinkedHashMap.empty[Int, Counted]

  /** Whether the next row passes without a look. */
  def passes(): Boolean =
    if (rows >= stopAt) false
    else {
      rows += 1
      true
    }

  /** Whether the row passes; returns once it is known. */
  def stopped(row: InternalRow): Boolean = {
    val keeps = (!executor.paused && counts.isEmpty || stands(row)) && locals.forall(_.keeps(row))
    if (keeps) rows += 1 else dropped += 1
    keeps
  }

  /** Always true, once nothing is in the way any more. */
  private def stands(row: InternalRow): Boolean = executor.lock.synchronized {
    def used: Iterable[Counted] = counts.values.filter(count => rows >= count.limit || count.asked)
    if (executor.paused || used.nonEmpty) task.standingAt(this, row) {
      while (executor.paused || used.nonEmpty) {
        used.foreach(_.report(finished = false))
        task.await()
      }
    }
    true
  }

  /** What holds for it has changed. The lock is held. */
  private[control] def arm(points: Seq[Point]): Unit = {
    val (conditions, counting) = points.partition(_.condition.isDefined)
    val numbers = counting.map(_.number)
    counts.filterInPlace((number, _) => numbers.contains(number))
    // Rows count from here on.
    numbers.filterNot(counts.contains).foreach(number => counts(number) = new Counted(number))
    val known = locals.map(local => local.number -> local).toMap
    locals = conditions.map(point => known.getOrElse(point.number, new Local(point)))
    aim()
  }

  private[control] def aim(): Unit =
    stopAt =
      if (executor.paused || locals.nonEmpty || counts.values.exists(_.asked)) 0L
      else counts.values.map(_.limit).minOption.getOrElse(Long.MaxValue)

  /** The attempt has no more rows, or is lost. The lock is held. */
  private[control] def ended(lost: Boolean): Unit =
    counts.values.filter(_.joined).foreach(count => if (lost) count.lose() else count.report(finished = true))

  /** As Spark shows values, by column. */
  private[control] def shown(row: InternalRow): Seq[(String, String)] =
    info.schema.fields.toSeq.zipWithIndex.map { case (field, i) =>
      val text = Cast(BoundReference(i, field.dataType, nullable = true), StringType,
        Some(SQLConf.get.sessionLocalTimeZone)).eval(row)
      field.name -> (if (text == null) "NULL" else text.toString)
    }

  /** A share in a breakpoint that counts; the worker of Amber §5.3. */
  private[control] final class Counted(number: Int) {
    private var base = rows
    private var round = 0
    private var told = false
    var joined = false
    var asked = false

    /** Rows that may have passed. */
    var limit: Long = rows

    def target(round: Int, amount: Long): Unit = {
      this.round = round
      base = rows
      limit = rows + amount
      told = false
      asked = false
    }

    def ask(round: Int): Unit = if (joined && !told && round == this.round) asked = true

    def report(finished: Boolean): Unit =
      if (!joined || !told || finished) {
        val event = if (!joined) "joined" else if (finished) "finished" else "reported"
        tell(event, if (told) 0 else rows - base)
        joined = true
        told = true
        asked = false
        limit = rows
      }

    def lose(): Unit = tell("lost", 0)

    private def tell(event: String, produced: Long): Unit = executor.tell(
      Counts(executor.id, task.attempt, number, event, round, produced))
  }

  /** A condition on rows. */
  private final class Local(point: Point) {
    import point.sql
    val number: Int = point.number
    private var broken = false

    private lazy val predicate: BasePredicate = {
      val expression = Utils.deserialize[Expression](point.condition.get, Utils.getContextOrSparkClassLoader)
      val made = Predicate.create(expression)
      made.initialize(task.context.partitionId())
      made
    }

    def keeps(row: InternalRow): Boolean = !matches(row) || (point.action match {
      case "skip" => false
      case "fail" => task.fail(s"row $ordinal of ${info.operator}: $sql")
      case _ =>
        val key = Holding.key(task.attempt.number, info.operator, ordinal)
        executor.lock.synchronized {
          task.standingAt(Probe.this, row) {
            executor.tell(Held(WaitingRow(task.attempt, info.operator, ordinal, shown(row).toMap, sql)))
            while (executor.paused || !executor.answered(key)) task.await()
          }
        }
        executor.answer(key) match {
          case "skip" =>
            executor.tell(Gone(task.attempt))
            false
          case "fail" => task.fail(s"row $ordinal of ${info.operator}: $sql")
          case _ =>
            executor.tell(Gone(task.attempt))
            true
        }
    })

    private def matches(row: InternalRow): Boolean =
      try !broken && predicate.eval(row)
      catch {
        // The breakpoint ends, and says why; the job does not.
        case NonFatal(error) =>
          broken = true
          executor.tell(Broken(number, error.toString))
          false
      }
  }
}

object Probe {

  /** Called by generated code, in the task's thread; that of a task which meets the operator again is the same. */
  def open(info: ProbeInfo): Probe = TaskContext.get() match {
    case context if context != null && info.id >= 0 => ControlledExecutor.of(SparkEnv.get).probe(info, context)
    case _ => new Probe(info, null, null)
  }
}
