package org.apache.spark.sql.regions.ui.events

import java.util.{Map => JMap}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.{Decision, SignedNode}
import org.apache.spark.sql.regions.bridge.Frames
import org.apache.spark.sql.regions.profile.Observed
import org.apache.spark.sql.regions.ui.Trees._

/** Events out of what the shim knows; each bounded, each with redacted texts. */
object EventBodies {
  val mostNodes = 2000
  val mostActions = 500
  val mostDeclines = 100
  val mostEntries = 500
  val mostGraphNodes = 500
  val mostGraphEdges = 2000
  private val labelFields = 10
  private val ranFacts = Seq("id", "rows", "bytes", "seconds", "region", "exchange", "exchangeBytes")

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
   * @param message the `executed` event of docs/protocol.md
   * @param queries numbers of the plans that ran in the execution
   * @param came what the execution adds to the sums
   */
  def ran(
      message: JMap[String, Any],
      queries: Seq[Long],
      came: RanSums,
      executionId: Long,
      time: Long,
      redaction: Redaction): SparkListenerRegionsRan = {
    val tree = Frames.json.valueToTree[JsonNode](message)
    val nodes = redaction.first(tree.items("nodes"), mostNodes)
      .map(node => present(ranFacts.map(name => name -> Option(node.get(name))): _*))
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
        "saved" -> load.saved
      )
    }
    SparkListenerRegionsRan(
      tree.path("query").asLong,
      executionId,
      time,
      tree.path("outcome").asText,
      tree.path("seconds").asDouble,
      tree.path("taskSeconds").asDouble,
      array(nodes),
      array(loads),
      Frames.json.valueToTree[JsonNode](redaction.first(queries, mostActions)),
      redaction.truncated,
      Frames.json.valueToTree[JsonNode](came.sums)
    )
  }

  /** The planner's entries and graph, kept within bounds whatever it sends. */
  def listed(answer: JsonNode, redaction: Redaction): (JsonNode, JsonNode) = {
    val graph = record(
      "nodes" -> redaction.first(answer.path("graph").items("nodes"), mostGraphNodes),
      "edges" -> redaction.first(answer.path("graph").items("edges"), mostGraphEdges)
    )
    (redaction(array(redaction.first(answer.items("entryList"), mostEntries))), redaction(graph))
  }

}
