package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.jdk.CollectionConverters._
import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.ui.UIUtils

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
          <span id="regions-held">{shownBytes(facts.path("held").path("bytes").asDouble(0))}</span>,
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
    val shown = facts.items("executions")
    val kept = facts.path("executionsKept").asInt(0)
    val more =
      if (shown.size >= kept) NodeSeq.Empty
      else <p><a href={links.page("") + s"?limit=$kept"}>Show all {kept.toString}</a></p>
    heading("Queries", Some(kept)) ++
      table(
        "regions-queries",
        "Queries, the newest first: SQL executions with their subqueries, and plans that were only explained",
        Seq(
          "Query" -> "Number of the plan; a page with its picture",
          "SQL" -> "Spark's own page of the execution; empty for a plan that was only explained",
          "Description" -> "",
          "Started" -> "",
          "Status" -> "",
          "Duration" -> "",
          "Decided in" -> "Of the query and its subqueries that ran",
          "Done" -> "Actions at places that ran",
          "Left alone" -> "Operators at which nothing was done",
          "Predicted saving" -> "",
          "Measured saving" -> "Of results that were read; what Spark would have spent, less the read"
        ),
        shown.map(row(_, links)),
        filtered = true,
        empty = "No query has been planned yet."
      ) ++ more
  }

  private def row(e: JsonNode, links: Links): Seq[Cell] = {
    val (query, execution) = (e.whole("query").getOrElse(-1L), e.whole("executionId").getOrElse(-1L))
    val counts = e.flag("counted")
    val subqueries = e.whole("subqueries").getOrElse(0L).toInt
    Seq(
      Cell(links.toQuery(query, execution), Some(query.toString)),
      Cell(links.toSql(execution), Some(execution.toString)),
      Cell(Text(e.text("description")) ++ (
        if (subqueries == 0) NodeSeq.Empty
        else <div class="small text-muted">with {counted(subqueries, "subquery", "subqueries")}</div>
      )),
      time(e.whole("time").getOrElse(0L)),
      Cell(
        badge(e.text("status"), e.number("sinceStart")) ++ (
          if (e.text("error").isEmpty) NodeSeq.Empty
          else <div class="small regions-error" title={e.text("error")}>{e.text("error")}</div>
        ),
        Some(e.text("status"))
      ),
      known(e.number("seconds")),
      Cell(
        line(shownMillis(e.number("planningMillis").getOrElse(0.0))),
        e.number("planningMillis").map(_.toString)),
      Cell(Text(Words.done(e)) ++ (
        if (counts || e.path("done").isEmpty) NodeSeq.Empty
        else <span class="text-muted"> (decided)</span>
      )),
      count(e.whole("declined").getOrElse(0L)),
      seconds(e.number("predicted").filter(_ > 0).getOrElse(Double.NaN)),
      known(e.number("saved"))
    )
  }

  private def reasons(facts: ObjectNode): NodeSeq = {
    val rows = facts.path("declines").fields().asScala.toSeq.map { field =>
      Seq(text(Reasons.sentence(field.getKey)), count(field.getValue.asLong), Cell(<code>{field.getKey}</code>))
    }
    foldedSection(
      "Why operators were left alone",
      rows.size,
      table("regions-reasons", "Reasons with how often each was given",
        Seq("Reason" -> "", "Times" -> "", "Code" -> ""), rows)
    )
  }

  private def planner(facts: ObjectNode): NodeSeq = {
    val told = facts.path("planner").fields().asScala.toSeq.filterNot(_.getValue.isContainerNode) ++
      facts.path("counters").fields().asScala.toSeq
    foldedSection(
      "Planner and counters",
      told.size,
      table(
        "regions-planner",
        "State of the planner process and counters of the application",
        Seq("Name" -> "", "Value" -> ""),
        told.map(field => Seq(text(field.getKey), value(field.getKey, field.getValue.asText)))
      )
    )
  }

  private def confs(facts: ObjectNode): NodeSeq = {
    val confs = facts.path("confs").fields().asScala.toSeq
    foldedSection(
      "Settings in force",
      confs.size,
      table(
        "regions-confs",
        "Settings of spark_regions",
        Seq("Key" -> "", "Value" -> ""),
        confs.map(f => Seq(text(f.getKey), value(f.getKey, f.getValue.asText)))
      )
    )
  }

  private def value(name: String, raw: String): Cell = {
    val shown = shownValue(name, raw)
    Cell(if (shown == raw) Text(raw) else <span title={raw}>{shown}</span>, Some(raw))
  }
}

private[pages] object OverviewPage {
  val rows = 200L
}
