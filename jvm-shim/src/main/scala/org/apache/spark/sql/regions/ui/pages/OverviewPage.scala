package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.jdk.CollectionConverters._
import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.ui.UIUtils
import org.apache.spark.util.Utils

/** What was saved, what is kept, whether the planner is well, and the last queries. */
private[pages] final class OverviewPage(tab: RegionsTab) extends FactsPage(tab, "", "Regions") {
  import Html._

  override protected def facts(request: HttpServletRequest): ObjectNode =
    tab.facts.overview(number(request, "limit").getOrElse(OverviewPage.rows).max(1).min(100000).toInt)

  override protected def content(facts: ObjectNode, links: Links): NodeSeq =
    summary(facts, links) ++ queries(facts, links) ++ reasons(facts) ++ planner(facts) ++ confs(facts) ++
      links.toJson("")

  private def summary(facts: ObjectNode, links: Links): NodeSeq = {
    val saved = facts.path("saved")
    val measured = saved.whole("loadsMeasured").getOrElse(0L)
    val planner = facts.path("planner")
    val healthy = planner.flag("healthy")
    val actions = facts.path("actions")
    def did(kind: String): Long = actions.whole(kind).getOrElse(0L)
    val ended = facts.path("asOf").asLong(0)
    cards(
      Seq(
        (
          "Seconds saved, measured",
          <span id="regions-saved">{shownSeconds(saved.number("measured").getOrElse(0))}</span>,
          s"over $measured loads"),
        (
          "Seconds saved, predicted",
          <span id="regions-predicted">{shownSeconds(saved.number("predicted").getOrElse(0))}</span>,
          s"${did("load")} loads, ${did("recall")} recalls, ${did("share")} shared"),
        (
          "Bytes held",
          <span id="regions-held">{Utils.bytesToString(facts.path("held").path("bytes").asLong(0))}</span>,
          s"in ${facts.path("held").path("entries").asLong(0)} entries"),
        (
          "Planner",
          if (healthy) Text("healthy") else <span class="regions-bad">{planner.text("state")}</span>,
          if (healthy) s"${planner.whole("restarts").getOrElse(0L)} restarts" else planner.text("reason")),
        (
          "Mode",
          Text(facts.text("mode")),
          s"strategy ${facts.text("strategy")}"),
        (
          "Decisions that lost",
          <a href={links.page("lost")} id="regions-lost">{facts.path("lost").asText}</a>,
          s"of ${facts.path("queriesDecided").asText} queries")
      )
    ) ++ (if (ended > 0) <p class="text-muted small">Planner and cache as of {UIUtils.formatDate(ended)}.</p>
          else NodeSeq.Empty)
  }

  private def queries(facts: ObjectNode, links: Links): NodeSeq = {
    val shown = facts.items("queries")
    val kept = facts.path("queriesKept").asInt(0)
    val more =
      if (shown.size >= kept) NodeSeq.Empty
      else <p><a href={links.page("") + s"?limit=$kept"}>Show all {kept.toString}</a></p>
    heading("Queries", Some(kept)) ++
      table(
        "regions-queries",
        "Queries that were planned, the newest first",
        Seq(
          "Query" -> "Number of the plan; a page with its picture",
          "SQL" -> "Spark's own page of the execution; empty for a plan that was only explained",
          "Description" -> "",
          "Planned" -> "",
          "Decided in" -> "",
          "Done" -> "Actions that were applied",
          "Declined" -> "",
          "Predicted saving" -> "",
          "Measured saving" -> "Of results that were read; what Spark would have spent, less the read",
          "Duration" -> "",
          "Outcome" -> ""
        ),
        shown.map(row(_, links)),
        filtered = true,
        empty = "No query has been planned yet."
      ) ++ more
  }

  private def row(q: JsonNode, links: Links): Seq[Cell] = {
    val (query, execution) = (q.whole("query").getOrElse(-1L), q.whole("executionId").getOrElse(-1L))
    Seq(
      Cell(links.toQuery(query, execution), Some(query.toString)),
      Cell(links.toSql(execution), Some(execution.toString)),
      text(q.text("description")),
      time(q.whole("time").getOrElse(0L)),
      Cell(Text(f"${q.number("planningMillis").getOrElse(0.0)}%.0f ms"), q.number("planningMillis").map(_.toString)),
      text(done(q)),
      count(q.whole("declined").getOrElse(0L)),
      seconds(q.number("predicted").filter(_ > 0).getOrElse(Double.NaN)),
      known(q.number("saved")),
      known(q.number("seconds")),
      text(q.text("outcome"))
    )
  }

  private def done(q: JsonNode): String = {
    val applied = q.path("applied").fields().asScala.filter(f => OverviewPage.verbs.contains(f.getKey))
      .map(f => OverviewPage.verbs(f.getKey) + (if (f.getValue.asInt > 1) s" ×${f.getValue.asInt}" else ""))
    (applied.toSeq ++ Some(q.text("refusal")).filter(_.nonEmpty)).mkString(", ")
  }

  private def reasons(facts: ObjectNode): NodeSeq = {
    val rows = facts.path("declines").fields().asScala.toSeq.map { field =>
      Seq(text(field.getKey), text(Reasons.sentence(field.getKey)), count(field.getValue.asLong))
    }
    heading("Why operators were left alone") ++
      table("regions-reasons", "Reason codes with how often each was given",
        Seq("Code" -> "", "Meaning" -> "", "Times" -> ""), rows)
  }

  private def planner(facts: ObjectNode): NodeSeq = {
    val told = facts.path("planner").fields().asScala.toSeq.filterNot(_.getValue.isContainerNode) ++
      facts.path("counters").fields().asScala.toSeq
    heading("Planner and counters") ++
      table(
        "regions-planner",
        "State of the planner process and counters of the application",
        Seq("Name" -> "", "Value" -> ""),
        told.map(field => Seq(text(field.getKey), text(field.getValue.asText)))
      )
  }

  private def confs(facts: ObjectNode): NodeSeq =
    heading("Settings in force") ++
      table(
        "regions-confs",
        "Settings of spark_regions",
        Seq("Key" -> "", "Value" -> ""),
        facts.path("confs").fields().asScala.toSeq.map(f => Seq(text(f.getKey), text(f.getValue.asText)))
      )
}

private[pages] object OverviewPage {
  val rows = 200L

  val verbs: Map[String, String] = Map(
    "load" -> "loaded",
    "recall" -> "recalled",
    "store" -> "storing",
    "persist" -> "persisting",
    "share" -> "shared",
    "committed" -> "stored",
    "abandoned" -> "gave up",
    "fallback" -> "fell back"
  ) ++ Seq("split_by_records", "split_by_keys", "two_phases", "range_boundaries", "longest_first",
    "spread_ties").map(k =>
    k -> k.replace('_', ' '))
}
