package org.apache.spark.sql.regions.ui.events

import scala.collection.mutable

import org.apache.spark.sql.regions.{ActionKind, DecidedAction, Decision, EngineRun, wire}
import org.apache.spark.sql.regions.profile.{LoadMark, Observed, RanPlans}

/**
 * A read that ran, with the seconds of saving that were predicted, and estimated of it afterwards, where known.
 *
 * @param estimated what the operators in its place took in other runs, less what the read took
 */
final case class RanLoad(mark: LoadMark, observed: Observed, predicted: Option[Double], estimated: Option[Double])

/** An action that spared its query work, with its part of the query's measured saving. */
final case class Choice(query: Long, node: Int, kind: String, predicted: Double, saved: Double)

/**
 * What a query saved, as measured.
 *
 * @param state of the machine in which plain execution took `plain` seconds, in the mean of `runs`
 * @param saved seconds of the wall clock less than that, deciding included
 */
final case class MeasuredSaving(state: String, plain: Double, runs: Int, saved: Double, choices: Seq[Choice])

/** Of statements that another engine ran: their number, and sums. */
final case class Statements(count: Long, predictedSeconds: Double, seconds: Double, rows: Long, bytes: Long) {
  def +(run: EngineRun): Statements =
    Statements(count + 1, predictedSeconds + run.predictedSeconds, seconds + run.measuredSeconds.sum,
      rows + run.measuredRows.sum, bytes + run.measuredBytes.sum)
}

/** What is known of an action once it ran: one of the two at most. */
final case class Outcome(measured: Option[Double] = None, estimated: Option[Double] = None)

/**
 * What a decision adds to the sums of its application.
 *
 * @param done kinds of actions, with how many of each were applied at places that ran
 * @param declines codes, with how many operators were left alone for each
 * @param predicted seconds of saving
 */
final case class Sums(query: Long, done: Map[String, Int], declines: Map[String, Int], predicted: Double)

/** A part of a query that another engine computed. */
final case class RanStatement(query: Long, node: Int, engine: EngineRun)

/** What comes of an execution: each place that read, the sums of the plans that ran for the first time, and what that saved. */
final case class RanSums(
    loads: Seq[RanLoad],
    sums: Seq[Sums],
    saving: Option[MeasuredSaving] = None,
    statements: Seq[RanStatement] = Nil)

/**
 * The sums of an application, made here alone; the metrics, the tab and the event log have them from here. What was decided on a plan
 * counts when the plan has run, and once, with the places that ran: a plan that was only explained, a subquery that Spark planned once
 * more, and an exchange that it reuses, add nothing. A saving is measured against plain execution of the same query in the same state,
 * or else estimated. Thread-safe.
 */
final class Savings(parallelism: () => Int, limit: Int = 1000) {
  private case class Ran(
      execution: Long,
      loads: Set[Int],
      outcomes: Map[(Int, String), Outcome] = Map.empty,
      statements: Map[Int, EngineRun] = Map.empty)
  private val open = mutable.LinkedHashMap.empty[Long, Decision]
  private val closed = mutable.LinkedHashMap.empty[Long, Ran]
  private val stages = mutable.LinkedHashMap.empty[Long, Double]
  @volatile private var predicted = 0.0
  @volatile private var measured = 0.0
  @volatile private var estimated = 0.0
  @volatile private var readsRan = 0L
  @volatile private var choicesMeasured = 0L
  @volatile private var readsEstimated = 0L
  @volatile private var statements = Statements(0, 0, 0, 0, 0)

  def predictedSeconds: Double = predicted
  def measuredSeconds: Double = measured
  def estimatedSeconds: Double = estimated

  /** Reads that ran, from the store or from memory; those that are only estimated; choices that were measured. */
  def reads: Long = readsRan
  def estimatedReads: Long = readsEstimated
  def measuredChoices: Long = choicesMeasured

  /** What another engine computed. */
  def engine: Statements = statements

  /** What the decision adds at once: one on a stage, and what turned out, are told when they run. */
  def decided(decision: Decision): Option[Sums] = synchronized {
    if (decision.topic.nonEmpty || decision.session.isEmpty) {
      val sums = added(decision, _ => true)
      if (decision.topic == "skew")
        bounded(stages, decision.query, stages.getOrElse(decision.query, 0.0) + sums.predicted)
      Some(sums)
    } else {
      bounded(open, decision.query, decision)
      None
    }
  }

  /**
   * The reads of an execution. What was predicted and saved is told, and added, when a plan runs for the first time.
   *
   * @param event of its main query
   */
  def ran(plans: RanPlans, execution: Long, event: wire.Executed): RanSums = synchronized {
    val decisions = plans.queries.flatMap(query => open.remove(query).map(query -> _)).toMap
    val loaded = plans.loads.keySet.groupMap(_.query)(_.node)
    def stands(query: Long)(action: DecidedAction): Boolean =
      action.kind != "load" || loaded.get(query).exists(_(action.node))
    val ordered = plans.queries.flatMap(decisions.get)
    val sums = ordered.map(decision => added(decision, stands(decision.query)))
    val choices = for {
      decision <- ordered
      action <- decision.actions
      if action.refusal.isEmpty && ActionKind.spares(action.kind) && stands(decision.query)(action)
    } yield Choice(decision.query, action.node, action.kind, math.max(0, action.savingSeconds), 0)
    // What only orders tasks claims nothing.
    val spared = choices ++ stages.remove(event.query).filter(_ > 0).map(Choice(event.query, -1, "skew", _, 0))
    val failed = event.outcome != "ok"
    val saving = decisions.get(event.query).flatMap(_.baseline)
      .filter(_ => spared.nonEmpty && event.alone && !failed).flatMap(Savings.against(_, event.seconds, spared))
    saving.foreach { found =>
      measured += found.saved
      choicesMeasured += found.choices.size
    }
    val loads = plans.loads.toSeq.sortBy { case (mark, _) => (mark.query, mark.node) }.map { case (mark, observed) =>
      val action = decisions.get(mark.query).flatMap(
        _.actions.find(a => a.kind == "load" && a.node == mark.node && a.refusal.isEmpty))
      val found = for (a <- action; seconds <- observed.seconds; if a.insteadSeconds >= 0 && !failed)
        yield a.insteadSeconds - seconds / math.max(1, parallelism())
      if (saving.isEmpty) {
        estimated += found.sum
        readsEstimated += found.size
      }
      RanLoad(mark, observed, action.map(_.savingSeconds), found)
    }
    val outcomes =
      saving.toSeq.flatMap(_.choices).map(c => (c.query, c.node, c.kind) -> Outcome(measured = Some(c.saved))) ++
        loads.filter(_ => saving.isEmpty).map(load =>
          (load.mark.query, load.mark.node, "load") -> Outcome(estimated = load.estimated))
    val asked = for {
      told <- event.routes if told.refusal.isEmpty
      action <- decisions.get(told.query).flatMap(_.actions.find(a => a.kind == "route" && a.node == told.node))
      engine <- action.engine
    } yield RanStatement(told.query, told.node, engine.ran(told))
    statements = asked.foldLeft(statements)(_ + _.engine)
    plans.queries.filterNot(closed.contains).foreach { query =>
      val own = outcomes.collect { case ((`query`, node, kind), found) => (node, kind) -> found }.toMap
      val engines = asked.collect { case RanStatement(`query`, node, engine) => node -> engine }.toMap
      bounded(closed, query, Ran(execution, loaded.getOrElse(query, Set.empty), own, engines))
    }
    RanSums(loads, sums, saving, asked)
  }

  /** The decision with what its statements for another engine took. */
  def measured(decision: Decision): Decision = synchronized(closed.get(decision.query)).fold(decision)(ran =>
    decision.copy(
      actions = decision.actions.map(action =>
        action.copy(engine = action.engine.map(ran.statements.getOrElse(action.node, _))))))

  private def bounded[T](kept: mutable.LinkedHashMap[Long, T], query: Long, value: T): Unit = {
    kept(query) = value
    if (kept.size > limit) kept.remove(kept.head._1)
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

  /** What an action saved. */
  def outcome(query: Long, action: DecidedAction): Outcome = synchronized(
    closed.get(query).flatMap(_.outcomes.get((action.node, action.kind))).filter(_ => action.refusal.isEmpty)
      .getOrElse(Outcome()))
}

private object Savings {

  /** The saving divided over the choices by their predictions; evenly, where nothing was predicted. */
  def against(baseline: wire.Baseline, seconds: Double, choices: Seq[Choice]): Option[MeasuredSaving] =
    baseline.seconds.map { plain =>
      val (saved, whole) = (plain - seconds, choices.map(_.predicted).sum)
      def part(choice: Choice): Double = if (whole > 0) choice.predicted / whole else 1.0 / choices.size
      MeasuredSaving(baseline.state, plain, baseline.runs, saved, choices.map(c => c.copy(saved = saved * part(c))))
    }

  /** Of the actions on a skewed stage all but those that tell of a measurement; what turned out saves nothing once more. */
  def saves(decision: Decision, kind: String): Boolean =
    if (decision.topic == "skew") kind != "measured" else decision.session.nonEmpty && ActionKind.spares(kind)

  def often(names: Seq[String]): Map[String, Int] = names.groupMapReduce(identity)(_ => 1)(_ + _)
}
