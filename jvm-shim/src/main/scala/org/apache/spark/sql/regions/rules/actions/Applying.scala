package org.apache.spark.sql.regions.rules.actions

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.platforms.{EngineInput, TypedPlan}
import org.apache.spark.sql.regions.profile.{LoadUse, PersistUse, StoreUse}
import org.apache.spark.sql.regions.rules._

/** Turns the planner's answer into plan surgery; what cannot be applied becomes a decline. */
private[rules] final class Applying(
    val session: SparkSession,
    val runtime: RegionsRuntime,
    val notes: DecisionNotes,
    val signed: SignedQuery,
    val shared: Seq[SharedPoint],
    val repeated: Seq[RepeatedSubplan],
    val order: RowOrder,
    val opened: OpenedEntries,
    typed: Option[TypedPlan],
    answer: wire.Decision) {

  private val byNode = answer.actions.collect {
    case action: wire.NodeAction if !Applying.inFrame(action) => action
  }.groupBy(_.node)
  private[actions] val reads = new Reads(this, signed)

  /** By the id of its node, each relation that an engine can read. */
  private[actions] val inputs: Map[Int, EngineInput] = typed.fold(Map.empty[Int, EngineInput])(_.inputs)
  private[actions] val loads = ArrayBuffer.empty[LoadUse]
  private[actions] val stores = ArrayBuffer.empty[StoreUse]
  private[actions] val persists = ArrayBuffer.empty[PersistUse]

  /** Nodes whose rows come in another order than plain Spark's, which nobody sees. */
  private val reordered = ArrayBuffer.empty[SignedNode]

  /** By its node, where the query has to look for ties: with some, that order would be seen. */
  private val checks = mutable.HashMap.empty[Int, TiePlace]

  /** What comes in the node's place is in another order. */
  private[actions] def reorder(node: SignedNode): Either[Refusal, Unit] =
    if (order.free(node)) {
      unordered(node)
      checks ++= order.checks(node).map(place => place.top.id -> place)
      Right(())
    } else Left(Refusal(Applying.rowOrder, node.operator))

  /** The same, where nothing has to be checked for it. */
  private[actions] def unordered(node: SignedNode): Unit = reordered += node

  /** Whether the node's rows come in plain Spark's order, with all that is applied so far. */
  private[actions] def inOrder(node: SignedNode): Boolean =
    !order.any && !reordered.exists(order.shows(_, node))

  def rewrite(): Applied = {
    answer.declines.foreach { d =>
      val operator = signed.nodes.lift(d.node).map(_.operator).getOrElse("")
      notes.decline(d.node, operator, Refusal(d.code, d.detail))
    }
    val plan = if (byNode.isEmpty) signed.nodes.head.plan else visit(signed.nodes.head)
    runtime.recycling.uses(notes.query, persists.toSeq)
    Applied(plan, loads.toSeq, stores.toSeq)
  }

  /** Actions at a node that read what is there. */
  private[actions] def readsAt(node: Int): Seq[(ReadingApplier[wire.NodeAction], wire.NodeAction)] =
    actionsAt(node).map(action => ActionApplier.of(action) -> action).collect {
      case (applier: ReadingApplier[wire.NodeAction @unchecked], action) => (applier, action)
    }

  /** Parts of a DataFrame that another engine computes, where that is computed in the place of a node. */
  private[actions] def routesIn(frame: String): Seq[wire.Route] =
    answer.actions.collect { case route: wire.Route if route.ref.contains(frame) => route }

  /** What comes in the node's place first: what is stored of it is what comes. */
  private def actionsAt(node: Int): Seq[wire.NodeAction] =
    byNode.getOrElse(node, Nil).sortBy(action => !ActionApplier.of(action).replaces)

  /** The node's plan with every action in it applied; the same object where there is none. */
  private def visit(node: SignedNode): LogicalPlan = {
    val actions = actionsAt(node.id)
    // Where nothing below runs, nothing there is worth rewriting.
    val visited = if (actions.exists(ActionApplier.of(_).replaces)) node.plan else checked(node, below(node))
    actions.foldLeft(visited)(applied(node, _, _))
  }

  /** Where the check cannot be made, nothing below is rewritten. */
  private def checked(node: SignedNode, plan: LogicalPlan): LogicalPlan = checks.get(node.id).fold(plan) { place =>
    def tied(refusal: Refusal): Unit = {
      runtime.recycling.ranInSpark(notes.query, "a tie check", refusal)
      runtime.recycling.tied(notes.query, place.digest)
    }
    place.over(plan, runtime.recycling.ties, tied).getOrElse(node.plan)
  }

  private def below(node: SignedNode): LogicalPlan = {
    val (plans, subplans) = node.children.map(signed.nodes(_)).splitAt(node.plan.children.size)
    val children = plans.map(visit)
    val same = children.zip(node.plan.children).forall { case (after, before) => after eq before }
    val rebuilt = if (same) node.plan else node.plan.withNewChildren(children)
    val replaced = subplans.map(s => s.plan -> visit(s)).filter { case (before, after) => before ne after }
    if (replaced.isEmpty) rebuilt else Subplans.replace(rebuilt, replaced)
  }

  private def applied(node: SignedNode, plan: LogicalPlan, action: wire.NodeAction): LogicalPlan = {
    val applier = ActionApplier.of(action)
    val result = applier(this, node, plan, action)
    notes.action(node, action, result.left.toOption)
    result.left.foreach(applier.refused(action, notes.query, _).foreach(runtime.recycling.tell))
    result.getOrElse(plan)
  }
}

private[rules] object Applying {
  val rowOrder = "ROW_ORDER"

  private def inFrame(action: wire.NodeAction): Boolean = action match {
    case route: wire.Route => route.ref.isDefined
    case _ => false
  }

  /** What an answer asks for that is no part of the query's plan. */
  def besides(session: SparkSession, runtime: RegionsRuntime, answer: wire.Decision): Unit = {
    runtime.recycling.sweep(session, answer.sweep)
    answer.actions.foreach {
      case wire.Unpersist(entry) => runtime.recycling.persisted.drop(entry)
      case _ =>
    }
  }
}
