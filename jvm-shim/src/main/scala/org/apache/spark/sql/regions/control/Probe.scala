package org.apache.spark.sql.regions.control

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, Cast, Expression, Predicate}
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
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
    if (!keeps) dropped += 1
    else {
      if (counts.nonEmpty) executor.lock.synchronized(counts.values.foreach(_.passed()))
      rows += 1
    }
    keeps
  }

  /** Always true, once nothing is in the way any more. */
  private def stands(row: InternalRow): Boolean = executor.lock.synchronized {
    def used: Iterable[Counted] = counts.values.filter(_.used(row))
    if (executor.paused || used.nonEmpty) task.standingAt(info.operator, shown(row)) {
      while (executor.paused || used.nonEmpty) {
        used.foreach(_.report(finished = false))
        task.await()
      }
    }
    true
  }

  /** What holds for it has changed. The lock is held. */
  private[control] def arm(points: Seq[Point]): Unit = {
    val (counting, conditions) = points.partition(_.counts)
    counts.filterInPlace((number, _) => counting.exists(_.number == number))
    // Rows count from here on.
    counting.filterNot(point => counts.contains(point.number)).foreach(point =>
      counts(point.number) = new Counted(point))
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

  /** A share in a breakpoint that counts; the worker of Amber §5.3. All with the lock. */
  private[control] final class Counted(point: Point) {
    import point.number
    private var base = rows
    private var round = 0
    private var told = false
    private var sum = 0.0
    private var value = 0.0
    private var met = 0L
    private var broken = false
    private var amount = 0.0
    private var last = false
    private lazy val projection = UnsafeProjection.create(Seq(expression(point)))
    var joined = false
    var asked = false

    /** Rows that may have passed; none without a look, where the values of each are summed up. */
    var limit: Long = rows

    def target(round: Int, amount: Double, last: Boolean): Unit = {
      this.round = round
      this.amount = amount
      this.last = last
      sum = 0.0
      base = rows
      limit = rows + (if (summed) 0L else amount.toLong)
      told = false
      asked = false
    }

    private def summed: Boolean = point.condition.isDefined

    /** Whether the row at hand may not pass. */
    def used(row: InternalRow): Boolean = {
      if (summed && met != ordinal) {
        met = ordinal
        value = evaluated(row)
      }
      asked || (if (!summed) rows >= limit
                else !joined || told || (if (last) sum >= amount else sum + value > amount))
    }

    private def evaluated(row: InternalRow): Double =
      if (broken) 0.0
      else
        try {
          val made = projection(row)
          val found = if (made.isNullAt(0)) 0.0 else made.getDouble(0)
          if (java.lang.Double.isFinite(found)) found else 0.0
        } catch {
          case NonFatal(error) =>
            broken = true
            executor.tell(Broken(number, error.toString))
            0.0
        }

    def passed(): Unit = if (summed && met == ordinal) sum += value

    def ask(round: Int): Unit = if (joined && !told && round == this.round) asked = true

    def report(finished: Boolean): Unit =
      if (!joined || !told || finished) {
        val event = if (!joined) "joined" else if (finished) "finished" else "reported"
        tell(event, if (told || !joined) 0.0 else if (summed) sum else (rows - base).toDouble)
        joined = true
        told = true
        asked = false
        limit = rows
      }

    def lose(): Unit = tell("lost", 0.0)

    private def tell(event: String, produced: Double): Unit = executor.tell(
      Counts(executor.id, task.attempt, number, event, round, produced))
  }

  private def expression(point: Point): Expression =
    Utils.deserialize[Expression](point.condition.get, Utils.getContextOrSparkClassLoader)

  /** A condition on rows. */
  private final class Local(point: Point) {
    import point.sql
    val number: Int = point.number
    private var broken = false

    private lazy val predicate: BasePredicate = {
      val made = Predicate.create(expression(point))
      made.initialize(task.context.partitionId())
      made
    }

    def keeps(row: InternalRow): Boolean = !matches(row) || (point.action match {
      case "skip" => false
      case "fail" => task.fail(s"row $ordinal of ${info.operator}: $sql")
      case _ =>
        task.ask(WaitingRow(task.attempt, info.operator, ordinal, shown(row).toMap, sql)).action match {
          case "fail" => task.fail(s"row $ordinal of ${info.operator}: $sql")
          case action => action != "skip"
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
