package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.picture.{Arrow, Box, Picture, PictureScript}

/** The operators that jobs have in common, as the planner knows them, the most used first. */
private[pages] final class GraphPage(tab: RegionsTab) extends FactsPage(tab, "graph", "Operator graph") {
  import Html._

  override protected def facts(request: HttpServletRequest): ObjectNode = tab.facts.graph

  override protected def content(facts: ObjectNode, links: Links): NodeSeq = {
    val nodes = facts.items("nodes").toIndexedSeq
    val all = facts.whole("operators").getOrElse(0L)
    if (nodes.isEmpty) <p class="text-muted">No operator has been measured yet.</p> ++ links.toJson("graph")
    else {
      <p>Operators of this and earlier jobs: the {nodes.size.toString} most used of {
        math.max(all, nodes.size.toLong).toString
      }.
        An arrow leads from an operator to the one that it feeds. A strong border and the word “stored” mean that its rows are kept.</p> ++
        PictureScript.framed(
          "regions-graph", picture(nodes, facts.items("edges")), 620, nodes.count(_.flag("stored")), "stored result") ++
        heading("Most used operators", Some(nodes.size)) ++
        table(
          "regions-operators",
          "Operators, the most used first",
          Seq(
            "Operator" -> "",
            "Lineage" -> "Names the rows: equal on every machine, at any time",
            "Uses" -> "",
            "Computed" -> "Times that Spark computed it",
            "Task seconds" -> "Of the operator alone, a mean",
            "Rows" -> "",
            "Size" -> "",
            "Stored" -> ""
          ),
          nodes.map(row),
          filtered = true
        ) ++ links.toJson("graph")
    }
  }

  private def row(node: JsonNode): Seq[Cell] = Seq(
    Cell(
      <span id={s"op-${node.text("lineage")}"}><a href={s"#box-${node.text("lineage")}"}>{
        node.text("operator")
      }</a></span>),
    Cell(digest(node.text("lineage"))),
    count(node.whole("uses").getOrElse(0L)),
    count(node.whole("executions").getOrElse(0L)),
    known(node.number("seconds")),
    counted(node.whole("rows")),
    sized(node.number("bytes")),
    text(if (node.flag("stored")) "stored" else "")
  )

  private def picture(nodes: IndexedSeq[JsonNode], edges: Seq[JsonNode]): scala.xml.Node = {
    val number = nodes.zipWithIndex.map { case (node, i) => node.text("lineage") -> i }.toMap
    val most = nodes.flatMap(_.whole("uses")).maxOption.getOrElse(1L).max(1L)
    val boxes = nodes.map { node =>
      val uses = node.whole("uses").getOrElse(0L)
      val facts = Seq(
        Some(if (uses == 1) "1 use" else s"$uses uses"),
        node.number("seconds").map(shownSeconds),
        node.number("bytes").map(shownBytes)).flatten.mkString(" · ")
      // Four tones by use; the number beside says the same.
      val tone = if (uses * 2 > most) "most" else if (uses * 4 > most) "much" else if (uses > 1) "some" else ""
      val stored = node.flag("stored")
      Box(
        s"box-${node.text("lineage")}",
        Seq(node.text("operator"), facts),
        "",
        tone,
        if (stored) "■ stored" else "",
        if (stored) "kept" else "",
        idle = false,
        s"${node.text("operator")}, $facts, lineage ${node.text("lineage")}",
        s"#op-${node.text("lineage")}",
        weight = uses.toDouble
      )
    }
    val arrows = for {
      edge <- edges
      from <- number.get(edge.path(0).asText)
      to <- number.get(edge.path(1).asText)
    } yield Arrow(from, to, "", kept = boxes(from).kind == "kept")
    Picture(
      "regions-graph",
      s"Graph of the ${nodes.size} most used operators",
      "The table “Most used operators” below has the same facts in words.",
      boxes,
      arrows.toIndexedSeq
    )
  }
}
