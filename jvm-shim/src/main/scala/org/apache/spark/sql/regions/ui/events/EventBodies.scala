package org.apache.spark.sql.regions.ui.events

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.{Decision, SignedNode, wire}
import org.apache.spark.sql.regions.profile.Observed
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.wire.Frames

/** Events out of what the shim knows; each bounded, each with redacted texts. */
object EventBodies {
  val mostNodes = 2000
  val mostActions = 500
  val mostDeclines = 100
  val mostEntries = 500
  val mostGraphNodes = 500
  val mostGraphEdges = 2000

  /** In one event; Python tells of 1,000 and those that are kept. */
  val mostBranches = 2000
  private val labelFields = 10

  def decided(
      decision: Decision,
      nodes: Seq[SignedNode],
      executionId: Long,
      redaction: Redaction,
      sums: Option[Sums] = None): SparkListenerRegionsDecided = {
    val bounded = decision.copy(
      actions = redaction.first(decision.actions, mostActions),
      declines = redaction.first(decision.declines, mostDeclines))
    val plan = array(redaction.first(nodes, mostNodes).map { node =>
      val label = redaction(node.plan.simpleString(labelFields))
      present("id" -> node.id, "operator" -> redaction(node.operator), "children" -> node.children, "label" -> label,
        "lineage" -> node.signature.toOption.map(_.lineage))
    })
    val tree = redaction(Frames.json.valueToTree[JsonNode](bounded))
    SparkListenerRegionsDecided(decision.query, executionId, decision.epochMillis, tree, plan, redaction.truncated,
      sums.map(Frames.json.valueToTree[JsonNode](_)).orNull)
  }

  /**
   * @param queries numbers of the plans that ran in the execution
   * @param came what the execution adds to the sums
   */
  def ran(
      event: wire.Executed,
      queries: Seq[Long],
      came: RanSums,
      executionId: Long,
      time: Long,
      redaction: Redaction): SparkListenerRegionsRan = {
    // Without what names the node, which the decision's event has.
    val nodes = redaction.first(event.nodes, mostNodes).map(node =>
      Frames.tree(wire.RanNode(node.id, rows = node.rows, bytes = node.bytes, seconds = node.seconds,
          region = node.region, exchange = node.exchange, exchangeBytes = node.exchangeBytes)))
    val loads = redaction.first(came.loads, mostActions).map { load =>
      val Observed(rows, bytes, seconds) = load.observed
      present(
        "query" -> load.mark.query,
        "node" -> load.mark.node,
        "entry" -> load.mark.entry,
        "seconds" -> seconds,
        "rows" -> rows,
        "bytes" -> bytes,
        "predicted" -> load.predicted,
        "estimated" -> load.estimated
      )
    }
    SparkListenerRegionsRan(
      event.query,
      executionId,
      time,
      event.outcome,
      event.seconds,
      event.taskSeconds,
      array(nodes),
      array(loads),
      Frames.json.valueToTree[JsonNode](redaction.first(queries, mostActions)),
      redaction.truncated,
      Frames.json.valueToTree[JsonNode](came.sums),
      came.saving.map(saving =>
        Frames.json.valueToTree[JsonNode](saving.copy(choices = redaction.first(saving.choices, mostActions)))).orNull,
      Frames.json.valueToTree[JsonNode](redaction.first(came.statements, mostActions))
    )
  }

  /**
   * What Python tells of an exploration.
   *
   * @param bytes that are held for branches, by their numbers
   */
  def explored(
      told: JsonNode,
      bytes: Map[Int, Long],
      time: Long,
      redaction: Redaction): SparkListenerRegionsExploration = {
    val branches = redaction.first(told.items("branches"), mostBranches).collect { case branch: ObjectNode =>
      bytes.get(branch.path("branch").asInt).foreach(branch.put("bytes", _))
      redaction(branch)
    }
    SparkListenerRegionsExploration(told.path("exploration").asLong, time, redaction(told.path("facts")),
      array(branches), redaction.truncated)
  }

  /** The planner's entries and graph, kept within bounds whatever it sends. */
  def listed(answer: wire.StatusAnswer, redaction: Redaction): (JsonNode, JsonNode) = {
    val all = answer.graph.getOrElse(wire.EntryGraph())
    val graph =
      wire.EntryGraph(redaction.first(all.nodes, mostGraphNodes), redaction.first(all.edges, mostGraphEdges))
    (
      redaction(array(redaction.first(answer.entryList.getOrElse(Nil), mostEntries))),
      redaction(Frames.tree(graph)))
  }

}
