package org.apache.spark.sql.regions.rules.actions

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
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
    answer: JsonNode) {

  private val byNode = Applying.elements(answer, "actions").groupBy(_.path("node").asInt(-1))
  private[actions] val reads = new Reads(this, signed)
  private[actions] val loads = ArrayBuffer.empty[LoadUse]
  private[actions] val stores = ArrayBuffer.empty[StoreUse]
  private[actions] val persists = ArrayBuffer.empty[PersistUse]

  /** Whether something is read in another order than plain Spark's, which nobody sees. */
  private[actions] var reordered = false

  def rewrite(): Applied = {
    Applying.elements(answer, "declines").foreach { d =>
      val node = d.path("node").asInt(0)
      val operator = signed.nodes.lift(node).map(_.operator).getOrElse("")
      notes.decline(node, operator, Refusal(d.path("code").asText, d.path("detail").asText("")))
    }
    val plan = if (byNode.keys.forall(_ < 0)) signed.nodes.head.plan else visit(signed.nodes.head)
    runtime.recycling.uses(notes.query, persists.toSeq)
    Applied(plan, loads.toSeq, stores.toSeq)
  }

  /** Actions at a node that read what is there. */
  private[actions] def readsAt(node: Int): Seq[(ReadingApplier, JsonNode)] =
    actionsAt(node).map(action => applier(action) -> action).collect { case (Some(a: ReadingApplier), action) =>
      (a, action)
    }

  private def actionsAt(node: Int): Seq[JsonNode] = byNode.getOrElse(node, Nil)

  private def applier(action: JsonNode): Option[ActionApplier] = ActionApplier.all.get(action.path("kind").asText)

  /** The node's plan with every action in it applied; the same object where there is none. */
  private def visit(node: SignedNode): LogicalPlan = {
    val actions = actionsAt(node.id)
    // Where nothing below runs, nothing there is worth rewriting.
    val visited = if (actions.exists(applier(_).exists(_.replaces))) node.plan else below(node)
    actions.foldLeft(visited)(applied(node, _, _))
  }

  private def below(node: SignedNode): LogicalPlan = {
    val (plans, subplans) = node.children.map(signed.nodes(_)).splitAt(node.plan.children.size)
    val children = plans.map(visit)
    val same = children.zip(node.plan.children).forall { case (after, before) => after eq before }
    val rebuilt = if (same) node.plan else node.plan.withNewChildren(children)
    val replaced = subplans.map(s => s.plan -> visit(s)).filter { case (before, after) => before ne after }
    if (replaced.isEmpty) rebuilt else Subplans.replace(rebuilt, replaced)
  }

  private def applied(node: SignedNode, plan: LogicalPlan, action: JsonNode): LogicalPlan = {
    val found = applier(action)
    val result = found match {
      case Some(applier) => applier(this, node, plan, action)
      case None => Left(Refusal("UNKNOWN_ACTION", action.path("kind").asText))
    }
    notes.action(node, action, result.left.toOption)
    result.left.foreach { refusal =>
      val event = found.flatMap(_.refused(refusal))
      event.foreach(runtime.recycling.tell(_, action.path("entry").asText(""), notes.query, refusal))
    }
    result.getOrElse(plan)
  }
}

private[rules] object Applying {
  val rowOrder = "ROW_ORDER"

  /** What an answer asks for that is no part of the query's plan. */
  def besides(session: SparkSession, runtime: RegionsRuntime, answer: JsonNode): Unit = {
    runtime.recycling.sweep(session, texts(answer, "sweep"))
    elements(answer, "actions").filter(_.path("kind").asText == "unpersist").foreach { action =>
      runtime.recycling.persisted.drop(action.path("entry").asText)
    }
  }

  def elements(node: JsonNode, field: String): Seq[JsonNode] = node.path(field).elements().asScala.toSeq

  def texts(node: JsonNode, field: String): Seq[String] = elements(node, field).map(_.asText)
}
