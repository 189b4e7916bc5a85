package org.apache.spark.sql.regions.ui.pages

import scala.xml.NodeSeq

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** The stages of a query whose tasks would be uneven: how they were arranged, and the share of each heavy partition. */
private[pages] object SkewTable {
  import Html._

  def apply(query: JsonNode): NodeSeq = {
    val stages = query.items("decisions").filter(_.text("topic") == "skew")
    val rows = stages.flatMap(_.items("actions")).map { action =>
      Seq(
        text(action.text("operator")),
        text(action.text("kind").replace('_', ' ')),
        known(action.number("savingSeconds").filter(_ >= 0)),
        Cell(splits(action)),
        text(action.text("detail"))
      )
    } ++ stages.flatMap(_.items("declines")).map { decline =>
      Seq(
        text(decline.text("operator")),
        text(s"left alone: ${decline.text("code")}"),
        known(None),
        text(""),
        text(Reasons.told(decline.text("code"), decline.text("detail")))
      )
    }
    if (rows.isEmpty) NodeSeq.Empty
    else heading("Skewed stages", Some(rows.size)) ++
      table(
        s"regions-skew-${query.text("query")}",
        "Stages whose tasks are uneven",
        Seq("Stage of" -> "", "Arranged" -> "", "Predicted saving" -> "",
          "Heavy partitions" -> "Share of the input's bytes",
          "Detail" -> ""),
        rows
      )
  }

  private def splits(action: JsonNode): NodeSeq = action.items("splits").map { split =>
    val percent = 100 * split.number("share").getOrElse(0.0)
    <div><span class="regions-bar" style={f"width: ${percent * 1.2}%.0fpx"} aria-hidden="true"></span>
      {
      f"$percent%.0f %% of the ${split.text("side")} input (partition ${split.text("partition")}) to ${split.text(
          "tasks")} tasks, ${split.text("how")}"
    }</div>
  }
}
