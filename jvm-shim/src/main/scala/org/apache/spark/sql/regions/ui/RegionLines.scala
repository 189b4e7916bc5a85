package org.apache.spark.sql.regions.ui

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** A query's region plan as lines of text: predicted seconds, the regions by rank, and the edges between them. */
private[ui] object RegionLines {

  /** Of a long plan only so many regions are worth a reader's time. */
  private val shown = 12

  def apply(regions: JsonNode): Seq[String] = {
    val parts = regions.items("regions")
    val hidden = parts.size - shown
    seconds(regions).toSeq ++ parts.take(shown).map(region) ++
      (if (hidden > 0) Seq(s"  … and $hidden more regions") else Nil)
  }

  private def seconds(regions: JsonNode): Option[String] = {
    val step = Option(regions.get("step")).filter(_.isInt).map { step =>
      s"query ${step.asInt} of ${regions.path("steps").asInt} of this job's last run, "
    }
    val chosen = Option(regions.get("chosenSeconds")).filter(_.isNumber).map { chosen =>
      f"predicted ${chosen.asDouble}%.2f s, Spark's own plan ${regions.path("plainSeconds").asDouble}%.2f s"
    }
    if (step.isEmpty && chosen.isEmpty) None
    else Some(s"  plan: ${step.getOrElse("")}${chosen.getOrElse("no times known")}")
  }

  private def region(region: JsonNode): String = {
    val inputs = region.items("inputs").map(i => s"${i.path("label").asText} of region ${i.path("region").asInt}")
    val from = if (inputs.isEmpty) "" else inputs.mkString(", reads ", ", ", "")
    val time = Option(region.get("seconds")).filter(_.isNumber).map(s => f", ${s.asDouble}%.2f s").getOrElse("")
    s"  region ${region.path("id").asInt} (rank ${region.path("rank").asInt}): " +
      s"${region.items("operators").map(_.asText).mkString(", ")}$from$time"
  }

}
