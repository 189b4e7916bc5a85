package org.apache.spark.sql.regions.ui.events

import scala.collection.mutable

import org.apache.spark.sql.regions.{ActionKind, DecidedAction, Decision}
import org.apache.spark.sql.regions.profile.{LoadMark, Observed, RanPlans}

/** A read that ran, with the seconds of saving that were predicted and measured, where known. */
final case class RanLoad(mark: LoadMark, observed: Observed, predicted: Option[Double], saved: Option[Double])

/**
 * What a decision adds to the sums of its application.
 *
 * @param done kinds of actions, with how many of each were applied at places that ran
 * @param declines codes, with how many operators were left alone for each
 * @param predicted seconds of saving
 */
final case class Sums(query: Long, done: Map[String, Int], declines: Map[String, Int], predicted: Double)

/** What comes of an execution: each place that read, and the sums of the plans that ran for the first time. */
final case class RanSums(loads: Seq[RanLoad], sums: Seq[Sums])

/**
 * The sums of an application, made here alone; the metrics, the tab and the event log have them from here. What was decided on a plan
 * counts when the plan has run, and once, with the places that ran: a plan that was only explained, a subquery that Spark planned once more,
 * and an exchange that it reuses, add nothing. Thread-safe.
 */
final class Savings(parallelism: () => Int, limit: Int = 1000) {
  private case class Ran(execution: Long, loads: Set[Int])
  private val open = mutable.LinkedHashMap.empty[Long, Decision]
  private val closed = mutable.LinkedHashMap.empty[Long, Ran]
  @volatile private var predicted = 0.0
  @volatile private var measured = 0.0
  @volatile private var readsRan = 0L
  @volatile private var readsMeasured = 0L

  def predictedSeconds: Double = predicted
  def measuredSeconds: Double = measured

  /** Reads that ran, from the store or from memory; and those of them that `measuredSeconds` is the sum of. */
  def reads: Long = readsRan
  def measuredReads: Long = readsMeasured

  /** What the decision adds at once: one on a stage, and what turned out, are told when they run. */
  def decided(decision: Decision): Option[Sums] = synchronized {
    if (decision.topic.nonEmpty || decision.session.isEmpty) Some(added(decision, _ => true))
    else {
      open(decision.query) = decision
      if (open.size > limit) open.remove(open.head._1)
      None
    }
  }

  /** The reads of an execution. What was predicted and measured is told, and added, when a plan runs for the first time. */
  def ran(plans: RanPlans, execution: Long, failed: Boolean): RanSums = synchronized {
    val decisions = plans.queries.flatMap(query => open.remove(query).map(query -> _)).toMap
    val loaded = plans.loads.keySet.groupMap(_.query)(_.node)
    plans.queries.filterNot(closed.contains).foreach { query =>
      closed(query) = Ran(execution, loaded.getOrElse(query, Set.empty))
      if (closed.size > limit) closed.remove(closed.head._1)
    }
    val sums = plans.queries.flatMap(decisions.get).map { decision =>
      added(decision, action => action.kind != "load" || loaded.get(decision.query).exists(_(action.node)))
    }
    val loads = plans.loads.toSeq.sortBy { case (mark, _) => (mark.query, mark.node) }.map { case (mark, observed) =>
      val action = decisions.get(mark.query).flatMap(
        _.actions.find(a =>
          a.kind == "load" && a.node == mark.node && a.refusal.isEmpty))
      val saved = for (a <- action; seconds <- observed.seconds; if a.insteadSeconds >= 0 && !failed)
        yield a.insteadSeconds - seconds / math.max(1, parallelism())
      measured += saved.sum
      readsMeasured += saved.size
      RanLoad(mark, observed, action.map(_.savingSeconds), saved)
    }
    RanSums(loads, sums)
  }

  private def added(decision: Decision, stands: DecidedAction => Boolean): Sums = {
    val counted = decision.actions.filter(action => action.refusal.isEmpty && stands(action))
    val saving =
      counted.filter(action => Savings.saves(decision, action.kind)).map(a => math.max(0, a.savingSeconds)).sum
    predicted += saving
    readsRan += counted.count(action => ActionKind.reads(action.kind))
    Sums(decision.query, Savings.often(counted.map(_.kind)), Savings.often(decision.declines.map(_.code)), saving)
  }

  /** The execution in which a plan first ran; None where it has not, yet or at all. */
  def execution(query: Long): Option[Long] = synchronized(closed.get(query).map(_.execution))

  /** Whether an action stands at a place that ran. */
  def ran(query: Long, action: DecidedAction): Boolean = synchronized(
    closed.get(query).exists(ran => action.kind != "load" || action.refusal.isDefined || ran.loads(action.node)))
}

private object Savings {

  /** Of the actions on a skewed stage all but those that tell of a measurement; what turned out saves nothing once more. */
  def saves(decision: Decision, kind: String): Boolean =
    if (decision.topic == "skew") kind != "measured" else decision.session.nonEmpty && ActionKind.spares(kind)

  def often(names: Seq[String]): Map[String, Int] = names.groupMapReduce(identity)(_ => 1)(_ + _)
}
