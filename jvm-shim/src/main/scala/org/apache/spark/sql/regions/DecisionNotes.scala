package org.apache.spark.sql.regions

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.wire.Frames

/** Gathers what is decided about one query while it is planned. */
final class DecisionNotes(val query: Long, session: String) {
  private val actions = ArrayBuffer.empty[DecidedAction]
  private val declines = ArrayBuffer.empty[DeclinedNode]
  private var refusal: Option[Refusal] = None
  private var regions: Option[JsonNode] = None
  private var answered: Option[wire.Decision] = None

  /** Whether the query is to run both ways. */
  def verify: Boolean = answered.exists(_.verify)

  private val laps = mutable.LinkedHashMap.empty[String, Double]

  var planningSeconds: Double = 0
  var plannerSeconds: Double = 0

  def action(node: SignedNode, action: wire.NodeAction, failed: Option[Refusal]): Unit = {
    val decided = DecidedAction(action.kind, node.id, node.operator, "", action.saving, action.reason, failed)
    actions += (action match {
      case load: wire.Load => decided.copy(entry = load.entry, insteadSeconds = load.instead, detail = load.rule)
      case read: wire.ReadPersisted => decided.copy(entry = read.entry, detail = read.rule)
      case store: wire.Store => decided.copy(entry = store.entry, detail = store.detail)
      case persist: wire.Persist => decided.copy(entry = persist.entry, detail = persist.detail)
      case share: wire.Share => decided.copy(detail = share.detail)
      case route: wire.Route =>
        val expected = EngineRun(route.predictedSeconds, route.rows, route.bytes)
        decided.copy(insteadSeconds = route.instead, detail = route.platform, engine = Some(expected))
    })
  }

  def decline(node: Int, operator: String, why: Refusal): Unit =
    if (declines.size < DecisionNotes.declinesKept) declines += DeclinedNode(node, operator, why.code, why.detail)

  /** Keeps the region plan of an answer, if it has one. */
  def planned(answer: wire.Decision): Unit = {
    regions = answer.regions.map(Frames.tree(_))
    answered = Some(answer)
  }

  /** Counts what `body` takes. */
  def lap[T](name: String)(body: => T): T = {
    val start = System.nanoTime()
    try body
    finally took(name, (System.nanoTime() - start) / 1e6)
  }

  def took(name: String, millis: Double): Unit = laps(name) = laps.getOrElse(name, 0.0) + millis

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
    regions,
    laps = laps.toMap,
    baseline = answered.flatMap(_.baseline)
  )
}

object DecisionNotes {
  val declinesKept = 100
}
