package org.apache.spark.sql.regions.rules

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.control.badrows.BadRows
import org.apache.spark.sql.regions.exec.{MaterializedRead, RecordedWrite, SharedSubplan, Stores, Tee}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.regions.platforms.TypedPlan
import org.apache.spark.sql.regions.profile.{LoadUse, ProfileTags, StoreUse, Took, Weights}
import org.apache.spark.sql.regions.rules.actions.Applying

/**
 * Signs the optimized plan of a query, asks the planner, and applies what it decided.
 *
 * Runs once for a query, after pruning and push-down and before the cost-based rules, so that what is stored is what the query
 * computes anyway. Subquery plans come first, each by itself, from inside `OptimizeSubqueries`.
 */
final class LineageRule(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = session match {
    case known: classic.SparkSession if !OptimizerRuns.bypassed && !Trivial(plan) => applied(known, plan)
    case _ => plan
  }

  private def applied(session: classic.SparkSession, plan: LogicalPlan): LogicalPlan = {
    def within(plan: LogicalPlan)(act: (RegionsRuntime, LogicalPlan) => LogicalPlan): LogicalPlan =
      Guard(session.sparkContext.conf, "a decision", plan)(
        RegionsRuntime.of(session)
          .filterOrElse(!_.recycling.altered, Refusal("EDITED")).fold(_ => plan, act(_, plan)))
    plan match {
      case subquery: Subquery if OptimizerRuns.capturing =>
        subquery.mapChildren(
          within(_) { (runtime, child) =>
            SubquerySignature.leave(child, runtime.recycling.sign(session, child))
            child
          })
      case _ if OptimizerRuns.capturing => OptimizerRuns.offer(plan)
      case _ if !OptimizerRuns.ofQuery => plan
      case subquery: Subquery =>
        subquery.mapChildren(within(_)((runtime, child) => new Deciding(session, runtime, subquery = true)(child)))
      case _ =>
        val alike = within(plan)((_, plan) => SubqueryCopies(plan))
        within(alike)((runtime, plan) => new Deciding(session, runtime, subquery = false)(plan))
    }
  }
}

/** Plans with nothing to reuse: no relation below them that holds data of the user's, or nothing but one. */
private object Trivial {
  def apply(plan: LogicalPlan): Boolean =
    plan.isStreaming || (if (plan.children.isEmpty) plan.subqueries.isEmpty else !holdsRows(plan))

  /** Of the leaves, those of subqueries included. A generator makes any number of rows from one. */
  private def holdsRows(plan: LogicalPlan): Boolean = plan.exists {
    case _: Generate => true
    case p => p.children.isEmpty && !empty(p) || p.subqueries.exists(holdsRows)
  }

  private def empty(leaf: LogicalPlan): Boolean = leaf match {
    case local: LocalRelation => local.data.isEmpty
    case _: OneRowRelation => true
    case _ => false
  }
}

/** One query's way from the optimized plan to the rewritten one. */
private final class Deciding(session: classic.SparkSession, runtime: RegionsRuntime, subquery: Boolean) {
  private val query = runtime.nextQuery()
  private val notes = new DecisionNotes(query, session.sessionUUID)
  private val conf = session.sessionState.conf

  /** Whether the query runs; what is only explained does not. */
  private val inside = session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) != null

  /** Rows that fail end the query, so that the rows it gives are all of them. */
  private val whole = !BadRows.handled(conf)
  private val frames = {
    val taken = if (subquery) Nil else SharedDataFrames.taken()
    if (whole) taken else Nil
  }

  def apply(plan: LogicalPlan): LogicalPlan = {
    val waited = runtime.verifier.await()
    val started = System.nanoTime()
    val signed = notes.lap("sign")(runtime.recycling.sign(session, plan, subquery))
    leave(plan, signed)
    noteRefusals(signed)
    // Before the plan is rewritten: the nodes above a load or a store are copies, which take the marks along.
    runtime.queries.register(query, signed, Nil, Nil)
    val order = notes.lap("order") {
      val order = new RowOrder(session, signed, runtime.hasEngine(conf), !subquery && OptimizerRuns.ofRowsSeenLater)
      order.mark()
      order
    }
    val shape = notes.lap("shape") {
      Option.when(!subquery && conf.getConf(RegionsConf.sweepsEnabled))(signed).flatMap(QueryShape(_))
    }
    val rests = inside && shape.exists(runtime.resting(_))
    val typed = if (rests) None else notes.lap("typed")(typedPlan(signed, order))
    val applied =
      if (rests) {
        notes.refused(Refusal("IN_VAIN"))
        None
      } else if (typed.isEmpty && !signed.nodes.exists(n => n.signature.isRight && n.children.nonEmpty)) None
      else if (conf.getConf(RegionsConf.plannerDeadline) == 0) {
        notes.refused(Refusal("PLANNER_DEADLINE", "spark.regions.planner.deadline is 0"))
        None
      } else ask(signed, order, typed, shape)
    applied.foreach(a => runtime.queries.register(query, signed, a.loads, a.stores))
    val rewritten = applied.map(_.plan).getOrElse(plan)
    notes.lap("written")(recorded(rewritten, signed))
    // A root that was replaced has no mark yet, and may be all that is left of a subquery.
    if (rewritten ne plan) {
      // What is around a subquery, or computed from what is cached, would lose its identity with it.
      leave(rewritten, signed)
      rewritten.setTagValue(Tags.query, query)
      rewritten.setTagValue(ProfileTags.part, query)
      // What a read stands in for takes the subqueries with it that were decided on before.
      Stores.finishAll(Deciding.stores(plan) -- Deciding.stores(rewritten))
    }
    notes.planningSeconds = (System.nanoTime() - started) / 1e9
    runtime.queries.decided(query, Took(notes.planningSeconds, waited, inside))
    if (notes.verify && inside && (rewritten ne plan)) {
      signed.nodes.head.signature.foreach(runtime.verifier.choose(session, query, rewritten, _, notes.planningSeconds))
    }
    runtime.metrics.planned(notes.planningSeconds * 1000)
    runtime.recycling.decided(notes.decision, signed.nodes, changed = rewritten ne plan)
    rewritten
  }

  /** What the root was signed as, for whoever meets it as a part. */
  private def leave(root: LogicalPlan, signed: SignedQuery): Unit =
    if (subquery) SubquerySignature.leave(root, signed) else CachedPlan.leave(session, root, signed, whole)

  /** For another engine, where there is one; without it a query is decided on as before. */
  private def typedPlan(signed: SignedQuery, order: RowOrder): Option[TypedPlan] =
    if (!runtime.anyEngine(conf)) None
    else {
      val typed = Guard(session.sparkContext.conf, "a typed plan", Option.empty[TypedPlan])(
        TypedPlan.of(session, signed, order.unread))
      if (inside && typed.exists(_.inputs.nonEmpty) && signed.nodes.exists(Deciding.moves)) runtime.engines.prepare()
      typed
    }

  private def ask(
      signed: SignedQuery,
      order: RowOrder,
      typed: Option[TypedPlan],
      shape: Option[wire.QueryShape]): Option[Applied] = {
    val cores = signed.nodes.flatMap(_.signature.toOption.map(_.core)).toSet
    notes.lap("commits")(Stores.awaitCommits(Deciding.commitMillis, cores))
    val repeated = notes.lap("repeated")(repeatedIn(signed, order))
    if (conf.getConf(RegionsConf.recycleEnabled) && conf.getConf(RegionsConf.recycleStrategy) != "off") {
      val deadline = DecideRequest.deadlineMillis(session, signed)
      val refused = notes.lap("grown")(Growths.find(runtime.planner, runtime.recycling.sources, signed, deadline))
      refused.foreach { case (node, refusal) => notes.decline(node.id, node.operator, refusal) }
    }
    val question = new Deciding.Question(session, runtime, signed, order, frames, repeated, typed, shape)
    ask(question, 0, Nil, Policy.mostAsks)
  }

  /**
   * @param offers how many DataFrames the planner wants to see
   * @param unordered choices of earlier answers that would change the order of rows, or not fail where plain Spark does
   */
  @annotation.tailrec
  private def ask(
      question: Deciding.Question,
      offers: Int,
      unordered: Seq[(Int, String)],
      asks: Int): Option[Applied] = {
    import question._
    val shared = notes.lap("frames")(points(offers).filterNot(misfits(question)))
    if (points.misfit && told.add(0)) decline(signed.nodes.head)
    // The planner has the plan from the first time on.
    val whole = Option.unless(sent)(
      notes.lap("request") {
        val grown = signed.grown.toSeq.groupMap(_._1._1)(_._2.told(signed.nodes))
        DecideRequest(session, runtime, query, signed, shared, offers, repeated, subquery, grown, typed, shape)
      })
    val began = System.nanoTime()
    val deadline = DecideRequest.deadlineMillis(session, signed, typed.isDefined)
    val answer = whole match {
      case Some(request) => runtime.planner.request(request, deadline)
      case None =>
        val frames = shared.map(DecideRequest.frame(_, signed, typed.isDefined))
        runtime.planner.request(wire.DecideAgain(query, offers, frames, unordered), deadline)
    }
    sent = true
    val asked = (System.nanoTime() - began) / 1e9
    notes.plannerSeconds += asked
    notes.took("planner", asked * 1000)
    answer.foreach(_.millis.foreach { case (name, millis) => notes.took(s"planner.$name", millis) })
    answer.foreach(
      _.weights.foreach { told =>
        runtime.profile.weights = Weights(told.fitted, told.micros, told.expressions, told.others)
      })
    answer.foreach(told => runtime.recycling.ties.add(told.tied))
    answer match {
      case Left(refusal) =>
        notes.refused(refusal)
        None
      case Right(decision) if math.min(decision.offer, Policy.mostOffers) > offers =>
        // The planner knows this job, and wants to see more of what the query is built on.
        ask(question, math.min(decision.offer, Policy.mostOffers), unordered, asks)
      case Right(decision) if decision.again && asks > 0 =>
        // It is still planning the whole job, which is worth more than this query's start.
        ask(question, offers, unordered, asks - 1)
      case Right(decision) =>
        Applying.besides(session, runtime, decision)
        val refused = notes.lap("check") {
          new OrderCheck(runtime, signed, order, opened, shared, unordered.nonEmpty).refused(decision)
            .filterNot { case (node, why) => unordered.contains(node -> why.detail) }
        }
        if (refused.nonEmpty && unordered.size < Deciding.mostUnordered) {
          refused.foreach { case (node, why) => notes.decline(node, signed.nodes(node).operator, why) }
          ask(question, offers, unordered ++ refused.map { case (node, why) => node -> why.detail }, asks)
        } else {
          decision.declines.find(_.code == "UNKNOWN_STRATEGY").foreach(d => Deciding.warnOnce(d.detail))
          notes.planned(decision)
          shape.foreach(runtime.resting.rest(_, decision.unasked))
          val applied = notes.lap("apply") {
            new Applying(session, runtime, notes, signed, shared, repeated, order, opened, typed, decision).rewrite()
          }
          runtime.patience.answered(notes.saving)
          Some(applied)
        }
    }
  }

  private def misfits(question: Deciding.Question)(point: SharedPoint): Boolean = {
    val node = question.signed.nodes(point.node)
    val found = question.order.misfits(node, point.plan)
    if (found && question.told.add(point.node)) decline(node)
    found
  }

  private def decline(node: SignedNode): Unit =
    notes.decline(node.id, node.operator, Refusal(Applying.rowOrder, "a DataFrame in its place"))

  private def repeatedIn(signed: SignedQuery, order: RowOrder): Seq[RepeatedSubplan] =
    if (!whole || !conf.getConf(RegionsConf.sharingEnabled)) Nil
    else {
      val (found, refused) = new RepeatedSubplans(signed, runtime.recycling.sign(session, _))()
      refused.foreach { case (node, why) => notes.decline(node, signed.nodes(node).operator, why) }
      val (free, seen) = found.partition(_.nodes.forall(n => order.free(signed.nodes(n))))
      seen.foreach { group =>
        val node = signed.nodes(group.nodes.head)
        notes.decline(node.id, node.operator, Refusal(Applying.rowOrder, "computed once"))
      }
      free
    }

  private def recorded(plan: LogicalPlan, signed: SignedQuery): Unit =
    if (whole && conf.getConf(RegionsConf.sourcesWritten) && conf.getConf(RegionsConf.mode) == "apply")
      WriteIdentity.of(session, query, signed, plan, runtime.recycling.signExactly(session, signed)).foreach {
        case Right(write) =>
          plan.setTagValue(RecordedWrite.tag, write)
          runtime.recycling.written.begin(write)
        case Left(why) =>
          notes.decline(0, signed.nodes.head.operator, Refusal("NOT_REGISTERED", s"${why.code}: ${why.detail}"))
      }

  private def noteRefusals(signed: SignedQuery): Unit = {
    if (!whole) notes.decline(0, signed.nodes.head.operator, Refusal("BAD_ROWS"))
    val parts = signed.nodes.filter(n => n.plan.isInstanceOf[GlobalLimit] && n.signature.isRight).flatMap(_.children)
    signed.nodes.filterNot(node => parts.contains(node.id)).foreach(noteRefusal)
  }

  private def noteRefusal(node: SignedNode): Unit = {
    node.signature.left.foreach { refusal =>
      if (refusal.code != "CHILD_REFUSED" && !Deciding.ours(node.plan))
        notes.decline(node.id, node.operator, refusal)
    }
    // What is above and below it would repeat it.
    if (node.onePlaceOfSeveral && AggregateDigest.rounds(node.plan))
      node.notStorable.foreach(notes.decline(node.id, node.operator, _))
  }
}

private object Deciding extends Logging {
  private val warned = ConcurrentHashMap.newKeySet[String]()

  private def warnOnce(text: String): Unit = if (warned.add(text)) logWarning(text)

  /** A scan alone is left to Spark. */
  private def moves(node: SignedNode): Boolean = node.plan match {
    case _: Aggregate | _: Join | _: Sort | _: Window => true
    case _ => false
  }

  /** What stays the same however often the planner is asked about a query. */
  final class Question(
      session: classic.SparkSession,
      runtime: RegionsRuntime,
      val signed: SignedQuery,
      val order: RowOrder,
      frames: Seq[LogicalPlan],
      val repeated: Seq[RepeatedSubplan],
      val typed: Option[TypedPlan],
      val shape: Option[wire.QueryShape]) {
    private val changed =
      shape.fold(Set.empty[String])(s => runtime.changed(s.shape, QueryShape.conditions(signed.nodes.map(_.plan))))
    val points = new SharedPoints(session, runtime, signed, order, frames, changed)
    val opened = new OpenedEntries(session)
    var sent = false

    /** Nodes that a DataFrame does not fit. */
    val told = mutable.HashSet.empty[Int]
  }

  /** Choices that the planner is told of; after that, what does not fit is left out. */
  val mostUnordered = 64

  /** What was put into a subquery, which was decided on before. */
  def ours(plan: LogicalPlan): Boolean = plan match {
    case _: MaterializedRead | _: Tee | _: SharedSubplan => true
    case _ => false
  }

  /** Entries that the plan would write. */
  private def stores(plan: LogicalPlan): Set[String] =
    plan.collectWithSubqueries { case Tee(_, order) if order != null => order.entry }.toSet

  /** How long a query waits for the commit of a store whose last row has already been written. */
  val commitMillis = 200L
}

/** A plan with the planner's actions in it. */
private[rules] final case class Applied(plan: LogicalPlan, loads: Seq[LoadUse], stores: Seq[StoreUse])
