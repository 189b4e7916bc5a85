package org.apache.spark.sql.regions.ui.events

import java.util.{Map => JMap}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}

import org.apache.spark.sql.regions.{Decision, SignedNode}
import org.apache.spark.sql.regions.bridge.Frames
import org.apache.spark.sql.regions.ui.Trees.elements

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
      texts: Texts): SparkListenerRegionsDecided = {
    val bounded = decision.copy(
      actions = texts.first(decision.actions, mostActions),
      declines = texts.first(decision.declines, mostDeclines))
    val plan = array(texts.first(nodes, mostNodes).map { node =>
      val fields = Frames.json.createObjectNode()
      fields.put("id", node.id).put("operator", texts(node.operator))
      fields.set[JsonNode]("children", Frames.json.valueToTree[JsonNode](node.children))
      fields.put("label", texts(node.plan.simpleString(labelFields)))
      node.signature.foreach(signature => fields.put("lineage", signature.lineage))
      fields
    })
    val tree = texts(Frames.json.valueToTree[JsonNode](bounded))
    SparkListenerRegionsDecided(decision.query, executionId, decision.epochMillis, tree, plan, texts.truncated)
  }

  /**
   * @param message the `executed` event of docs/protocol.md
   * @param queries numbers of the plans that ran in the execution
   */
  def ran(
      message: JMap[String, Any],
      queries: Seq[Long],
      reads: Seq[RanLoad],
      executionId: Long,
      time: Long,
      texts: Texts): SparkListenerRegionsRan = {
    val tree = Frames.json.valueToTree[JsonNode](message)
    val nodes =
      texts.first(elements(tree.path("nodes")), mostNodes).map(copied(_, ranFacts))
    val loads = texts.first(reads, mostActions).map { load =>
      val fields = Frames.json.createObjectNode()
      fields.put("query", load.mark.query).put("node", load.mark.node).put("entry", load.mark.entry)
      load.observed.seconds.foreach(fields.put("seconds", _))
      load.observed.rows.foreach(fields.put("rows", _))
      load.observed.bytes.foreach(fields.put("bytes", _))
      load.predicted.foreach(fields.put("predicted", _))
      load.saved.foreach(fields.put("saved", _))
      fields
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
      Frames.json.valueToTree[JsonNode](texts.first(queries, mostActions)),
      texts.truncated
    )
  }

  /** The planner's entries and graph, kept within bounds whatever it sends. */
  def listed(answer: JsonNode, texts: Texts): (JsonNode, JsonNode) = {
    val entries = array(texts.first(elements(answer.path("entryList")), mostEntries))
    val graph = Frames.json.createObjectNode()
    graph.set[JsonNode]("nodes", array(texts.first(elements(answer.path("graph").path("nodes")), mostGraphNodes)))
    graph.set[JsonNode]("edges", array(texts.first(elements(answer.path("graph").path("edges")), mostGraphEdges)))
    (texts(entries), texts(graph))
  }

  private def copied(from: JsonNode, names: Seq[String]): ObjectNode = {
    val fields = Frames.json.createObjectNode()
    names.foreach(name => Option(from.get(name)).foreach(fields.set[JsonNode](name, _)))
    fields
  }

  def array(items: Seq[JsonNode]): ArrayNode = {
    val result = Frames.json.createArrayNode()
    items.foreach(result.add)
    result
  }
}
