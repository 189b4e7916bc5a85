package org.apache.spark.sql.regions.ui.store

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** Actions that count: those that were applied, and of the reads those at places that ran. */
private[ui] object Applied {

  /** All that were applied, wherever they stand. */
  def apply(decision: JsonNode): Seq[JsonNode] = decision.items("actions").filterNot(refused)

  /** @param loads reads that ran in the query; where they do not name their nodes, every read counts */
  def apply(decision: JsonNode, loads: Seq[JsonNode]): Seq[JsonNode] = {
    val nodes = loads.flatMap(_.whole("node")).toSet
    val unknown = loads.nonEmpty && nodes.isEmpty
    apply(decision).filter { action =>
      action.text("kind") != "load" || unknown || nodes(action.whole("node").getOrElse(-1L))
    }
  }

  def refused(action: JsonNode): Boolean = action.path("refusal").isObject
}
