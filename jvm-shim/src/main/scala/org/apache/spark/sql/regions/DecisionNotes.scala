package org.apache.spark.sql.regions

import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.databind.JsonNode

/** Gathers what is decided about one query while it is planned. */
final class DecisionNotes(val query: Long, session: String) {
  private val actions = ArrayBuffer.empty[DecidedAction]
  private val declines = ArrayBuffer.empty[DeclinedNode]
  private var refusal: Option[Refusal] = None
  private var regions: Option[JsonNode] = None

  var planningSeconds: Double = 0
  var plannerSeconds: Double = 0

  def action(node: SignedNode, action: JsonNode, failed: Option[Refusal]): Unit =
    actions += DecidedAction(
      action.path("kind").asText,
      node.id,
      node.operator,
      action.path("entry").asText(""),
      action.path("saving").asDouble(0),
      action.path("reason").asText(""),
      failed,
      action.path("detail").asText(""),
      action.path("instead").asDouble(-1)
    )

  def decline(node: Int, operator: String, why: Refusal): Unit =
    if (declines.size < DecisionNotes.declinesKept) declines += DeclinedNode(node, operator, why.code, why.detail)

  /** Keeps the region plan of an answer, if it has one. */
  def planned(answer: JsonNode): Unit = regions = Option(answer.get("regions")).filter(_.isObject)

  def refused(why: Refusal): Unit = refusal = Some(why)

  /** Seconds that what was read back, or is computed once, is expected to save. */
  def saving: Double =
    actions.iterator.filter(a => a.refusal.isEmpty && ActionKind.spares(a.kind)).map(_.savingSeconds).sum

  def decision: Decision = Decision(
    query,
    session,
    System.currentTimeMillis(),
    planningSeconds * 1000,
    plannerSeconds * 1000,
    actions.toSeq,
    declines.toSeq,
    refusal,
    regions)
}

object DecisionNotes {
  val declinesKept = 100
}
