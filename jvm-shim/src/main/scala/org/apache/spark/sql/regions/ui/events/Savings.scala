package org.apache.spark.sql.regions.ui.events

import java.util.concurrent.atomic.{DoubleAdder, LongAdder}

import scala.collection.mutable

import org.apache.spark.sql.regions.{ActionKind, DecidedAction, Decision}
import org.apache.spark.sql.regions.profile.{LoadMark, Observed, RanPlans}

/** A read that ran, with the seconds of saving that were predicted and measured, where known. */
final case class RanLoad(mark: LoadMark, observed: Observed, predicted: Option[Double], saved: Option[Double])

/**
 * Seconds that were predicted to be saved, against those that were: of plans that ran, each place once. A plan that was only
 * explained, a subquery that Spark planned once more, and an exchange that it reuses, save nothing. Thread-safe.
 */
final class Savings(parallelism: () => Int, limit: Int = 1000) {
  private case class Ran(execution: Long, loads: Set[Int])
  private val open = mutable.LinkedHashMap.empty[Long, Seq[DecidedAction]]
  private val closed = mutable.LinkedHashMap.empty[Long, Ran]
  private val predictedSum = new DoubleAdder
  private val measuredSum = new DoubleAdder
  private val measuredCount = new LongAdder
  private val readCount = new LongAdder

  def predictedSeconds: Double = predictedSum.sum()
  def measuredSeconds: Double = measuredSum.sum()

  /** Reads that `measuredSeconds` is the sum of. */
  def measuredReads: Long = measuredCount.sum()

  /** Reads that ran, from the store or from memory. */
  def reads: Long = readCount.sum()

  def decided(decision: Decision): Unit = {
    val applied = decision.actions.filter(_.refusal.isEmpty)
    if (decision.topic == Savings.skew) {
      // Told when the stage runs.
      applied.filter(a => Savings.rearranges(a.kind)).foreach(a => predictedSum.add(math.max(0, a.savingSeconds)))
    } else if (decision.session.nonEmpty) synchronized {
      open(decision.query) = applied.filter(a => ActionKind.spares(a.kind))
      if (open.size > limit) open.remove(open.head._1)
    }
  }

  /** The reads of an execution. What was predicted and measured is told, and added, when a plan runs for the first time. */
  def ran(plans: RanPlans, execution: Long, failed: Boolean): Seq[RanLoad] = synchronized {
    val actions = plans.queries.flatMap(query => open.remove(query).map(query -> _)).toMap
    val loaded = plans.loads.keySet.groupMap(_.query)(_.node)
    plans.queries.filterNot(closed.contains).foreach { query =>
      closed(query) = Ran(execution, loaded.getOrElse(query, Set.empty))
      if (closed.size > limit) closed.remove(closed.head._1)
    }
    for ((query, all) <- actions; action <- all) {
      if (action.kind != "load" || loaded.get(query).exists(_(action.node))) {
        predictedSum.add(math.max(0, action.savingSeconds))
        if (ActionKind.reads(action.kind)) readCount.increment()
      }
    }
    plans.loads.toSeq.sortBy { case (mark, _) => (mark.query, mark.node) }.map { case (mark, observed) =>
      val action = actions.get(mark.query).flatMap(_.find(a => a.kind == "load" && a.node == mark.node))
      val saved = for (a <- action; seconds <- observed.seconds; if a.insteadSeconds >= 0 && !failed)
        yield a.insteadSeconds - seconds / math.max(1, parallelism())
      saved.foreach { seconds =>
        measuredSum.add(seconds)
        measuredCount.increment()
      }
      RanLoad(mark, observed, action.map(_.savingSeconds), saved)
    }
  }

  /** The execution in which a plan first ran; None where it has not, yet or at all. */
  def execution(query: Long): Option[Long] = synchronized(closed.get(query).map(_.execution))

  /** Whether an action stands at a place that ran. */
  def ran(query: Long, action: DecidedAction): Boolean = synchronized(
    closed.get(query).exists(ran => action.kind != "load" || action.refusal.isDefined || ran.loads(action.node)))
}

object Savings {
  private val skew = "skew"

  /** Of the actions on a skewed stage, those that tell of no measurement. */
  def rearranges(kind: String): Boolean = kind != "measured"
}
