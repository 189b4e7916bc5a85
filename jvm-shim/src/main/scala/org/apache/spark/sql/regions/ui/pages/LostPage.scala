package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.NodeSeq

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._

/** What did not bring what it promised. */
private[pages] final class LostPage(tab: RegionsTab) extends FactsPage(tab, "lost", "Decisions that lost") {
  import Html._

  override protected def facts(request: HttpServletRequest): ObjectNode = tab.facts.lost

  override protected def content(facts: ObjectNode, links: Links): NodeSeq =
    <p>Reads that saved less than a fifth of what was predicted, results that were written for nothing, actions that
      could not be applied, and what was withdrawn because it had disappointed before.</p> ++
      table(
        "regions-lost",
        "Decisions that lost, the newest first",
        Seq(
          "Query" -> "",
          "SQL" -> "Spark's own page",
          "When" -> "",
          "What" -> "",
          "Entry or node" -> "",
          "Operator" -> "",
          "Predicted saving" -> "",
          "Measured saving" -> "",
          "Code" -> "",
          "Reason" -> ""
        ),
        facts.items("lost").map { loss =>
          val (query, execution) = (loss.whole("query").getOrElse(-1L), loss.whole("executionId").getOrElse(-1L))
          Seq(
            Cell(links.toQuery(query, execution), Some(query.toString)),
            Cell(links.toSql(execution), Some(execution.toString)),
            time(loss.whole("time").getOrElse(0L)),
            text(loss.text("what")),
            Cell(digest(loss.text("entry"))),
            text(loss.text("operator")),
            known(loss.number("predicted")),
            known(loss.number("measured")),
            text(loss.text("code")),
            text(Seq(loss.text("reason"), loss.text("detail")).filter(_.nonEmpty).mkString(": "))
          )
        },
        filtered = true,
        empty = "No decision has lost so far."
      ) ++ links.toJson("lost")
}
