package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.events.{EventBodies, Texts}
import org.apache.spark.sql.regions.ui.picture.PictureScript
import org.apache.spark.ui.UIUtils

/** What was decided on one SQL execution, why, and what that brought. */
private[pages] final class QueryPage(tab: RegionsTab) extends FactsPage(tab, "execution", "Regions of a query") {
  import Html._

  override protected def facts(request: HttpServletRequest): ObjectNode = {
    val (execution, query) = (number(request, "id"), number(request, "query"))
    if (execution.isEmpty && query.isEmpty) {
      throw new FactsPage.WrongRequest("id (of a SQL execution) or query is missing")
    }
    tab.facts.execution(execution, query)
  }

  override protected def titleOf(facts: ObjectNode): String = {
    val execution = facts.whole("executionId").getOrElse(-1L)
    if (execution >= 0) s"Regions of SQL execution $execution"
    else s"Regions of query ${facts.items("queries").headOption.map(_.text("query")).getOrElse("")}"
  }

  override protected def content(facts: ObjectNode, links: Links): NodeSeq = {
    val execution = facts.whole("executionId").getOrElse(-1L)
    val queries = facts.items("queries")
    val up =
      if (execution < 0) <p>{badge("planned")} No SQL execution of Spark is known for it.</p>
      else <p>{
        if (queries.isEmpty) NodeSeq.Empty else badge(facts.text("status"), facts.number("sinceStart")) ++ Text(" ")
      }<a id="regions-to-sql" href={links.sql(execution)}>Spark’s page of SQL execution {execution.toString}</a>{
        if (facts.text("description").isEmpty) "" else s": ${facts.text("description")}"
      }</p>
    val parameters =
      if (execution >= 0) s"?id=$execution" else queries.headOption.map(q => s"?query=${q.text("query")}").getOrElse("")
    up ++ (
      if (queries.isEmpty) {
        <p class="text-muted">Nothing is known of it: it was not planned by spark_regions, its plan has nothing to reuse
          (a command, a plain relation), or it is older than the queries that are kept
          (spark.sql.ui.retainedExecutions).</p>
      } else whole(facts, PlannedQuery.of(queries, links), links)
    ) ++ links.toJson("execution", parameters)
  }

  private def whole(facts: ObjectNode, all: Seq[PlannedQuery], links: Links): NodeSeq = {
    val (main, others) = (all.head, all.tail)
    val (subqueries, rest) = others.partition(_.ran)
    val error =
      if (facts.text("error").isEmpty) NodeSeq.Empty
      else <p class="regions-bad" id="regions-failed">{facts.text("error")}</p>
    error ++ summary(facts, main +: subqueries) ++ cut(main +: subqueries) ++ picture(main) ++
      ActionsTable(main +: subqueries, facts, links) ++ DeclinesList(main +: subqueries, facts) ++
      tables(main, links) ++ subqueries.flatMap(subquery(_, links)) ++ notRun(rest, facts, links)
  }

  private def summary(facts: ObjectNode, queries: Seq[PlannedQuery]): NodeSeq = {
    val main = queries.head
    val notes = queries.map(_.drawn.main.path("regions"))
    val chosen = notes.flatMap(_.number("chosenSeconds"))
    val refusal = main.drawn.main.path("refusal")
    val counts = facts.flag("counted")
    val plannerMillis = queries.flatMap(_.drawn.main.number("plannerMillis")).sum
    val notRun = facts.whole("notRun").getOrElse(0L).toInt
    val subqueries = facts.whole("subqueries").getOrElse(0L).toInt
    val words = Words.done(facts)
    val held = queries.map(_.observed).sum
    cards(
      Seq(
        Some(
          (
            "Query",
            Text(main.number),
            UIUtils.formatDate(facts.whole("time").getOrElse(0L)) +
              (if (subqueries == 0) "" else s", with ${counted(subqueries, "subquery", "subqueries")}"))),
        Some(
          (
            if (counts) "Done" else "Decided",
            <span id="regions-done">{if (words.isEmpty) "nothing" else words}</span>,
            Words.leftAlone(facts.whole("declined").getOrElse(0L).toInt) +
              (if (held == 0) "" else s", $held of them as the mode is observe"))),
        Some(
          (
            "Saving measured",
            Text(facts.number("saved").map(shownSeconds).getOrElse("–")),
            if (counts) s"predicted ${shownSeconds(facts.number("predicted").getOrElse(0))}"
            else "counted once it has run")),
        Some(
          (
            "Decided in",
            Text(shownMillis(facts.number("planningMillis").getOrElse(0.0))),
            s"${shownMillis(plannerMillis)} of it by the planner" + (
              if (notRun == 0 || !counts) ""
              else s"; ${shownMillis(facts.number("notRunMillis").getOrElse(0.0))} more on ${counted(notRun, "plan")} not run"
            ))),
        facts.number("seconds").map(s => ("Ran for", Text(shownSeconds(s)), wall(facts))),
        if (chosen.isEmpty) None
        else Some(
          (
            "Run time predicted",
            Text(shownSeconds(chosen.sum)),
            s"Spark’s own plan ${shownSeconds(notes.flatMap(_.number("plainSeconds")).sum)}")),
        notes.head.whole("step").map(step =>
          ("Step of the job", Text(s"$step of ${notes.head.text("steps")}"), "as in its last run")),
        if (!refusal.isObject) None
        else Some(("Nothing decided", <span class="regions-bad">{refusal.text("code")}</span>,
            Reasons.told(refusal.text("code"), refusal.text("detail"))))
      ).flatten)
  }

  /** Where the wall time went. */
  private def wall(facts: ObjectNode): String = {
    val parts = facts.path("wall")
    val split = for (before <- parts.number("beforeJobs"); busy <- parts.number("inJobs"); rest <- parts.number("rest"))
      yield s"${shownSeconds(before)} to plan, ${shownSeconds(busy)} in jobs, ${shownSeconds(rest)} between"
    (split ++ facts.number("taskSeconds").map(s => s"${shownSeconds(s)} of tasks")).mkString("; ")
  }

  /** What the page lacks, as far as the bounds of an event tell. */
  private def cut(queries: Seq[PlannedQuery]): NodeSeq = {
    val truncated = queries.filter(_.facts.flag("truncated"))
    if (truncated.isEmpty) NodeSeq.Empty
    else {
      val nodes = truncated.exists(_.drawn.nodes.sizeIs >= EventBodies.mostNodes)
      val actions = truncated.exists(_.decisions.exists(_.items("actions").sizeIs >= EventBodies.mostActions))
      val declines = truncated.exists(_.decisions.exists(_.items("declines").sizeIs >= EventBodies.mostDeclines))
      val labels = truncated.map(_.drawn.nodes.count(_.text("label").endsWith("…"))).sum
      val told = Seq(
        if (nodes) Some(s"operators after the first ${EventBodies.mostNodes} of a plan") else None,
        if (actions) Some(s"actions after the first ${EventBodies.mostActions}") else None,
        if (declines) Some(s"reasons after the first ${EventBodies.mostDeclines}") else None,
        if (labels > 0) Some(s"the labels of ${counted(labels, "operator")} after ${Texts.longest} characters")
        else None
      ).flatten
      <p class="text-muted small">Left out: {
        if (told.isEmpty) s"texts after ${Texts.longest} characters" else told.mkString(", ")
      }.</p>
    }
  }

  private def picture(query: PlannedQuery): NodeSeq =
    if (query.drawn.nodes.isEmpty) <p class="text-muted">The plan is not known.</p>
    else PictureScript.framed(query.id, query.drawn.svg(query.id), query.drawn.height, query.drawn.decided) ++
      legend(query)

  private def legend(query: PlannedQuery): NodeSeq =
    <p class="mb-1 small"><span class="regions-key regions-key-kept">▲ kept</span>
      <span class="regions-key regions-key-read">▼ read from what was kept</span>
      <span class="regions-key regions-key-shared">⇉ computed once for several places</span>
      {
      if (query.observed == 0) NodeSeq.Empty
      else <span class="regions-key regions-key-would">◇ would be done</span>
    }
      <span class="text-muted">✕ left alone, ⚠ could not be done, faint: not computed; the bar is a box’s part of the task
        time.{
      if (query.drawn.regions.isEmpty) ""
      else
        " R: regions, which run as one stage, in an order in which they can run; over a dashed thick arrow Spark materializes rows."
    }</span></p>

  private def tables(query: PlannedQuery, links: Links): NodeSeq =
    SkewTable(query.facts, links) ++ regions(query.drawn, query.id) ++ operators(query.drawn, query.id)

  private def subquery(query: PlannedQuery, links: Links): NodeSeq = {
    val facts = query.facts
    val saved = facts.number("saved").map(s => s", measured ${shownSeconds(s)}").getOrElse("")
    folded(
      <h4 class="d-inline">Subquery {query.number}</h4> ++ <span class="text-muted"> {
        counted(facts.whole("operators").getOrElse(0L).toInt, "operator")
      }, decided in {shownMillis(facts.number("planningMillis").getOrElse(0.0))}, saving predicted {
        shownSeconds(facts.number("predicted").getOrElse(0.0)) + saved
      }</span>,
      if (query.page.isEmpty) picture(query) ++ tables(query, links)
      else <p><a href={query.page}>Its plan has a page of its own.</a></p>
    )
  }

  /** Plans that Spark made on the way, with a page of their own each. */
  private def notRun(queries: Seq[PlannedQuery], facts: ObjectNode, links: Links): NodeSeq =
    if (queries.isEmpty) NodeSeq.Empty
    else folded(
      <h4 class="d-inline">{
        if (facts.flag("counted")) s"${counted(queries.size, "plan")} planned once more and not run"
        else s"${counted(queries.size, "plan")} so far of its subqueries"
      }</h4>,
      table(
        "regions-not-run",
        "Plans of this execution that did not run",
        Seq("Query" -> "", "Operators" -> "", "Decided in" -> "", "Left alone" -> ""),
        queries.map { query =>
          Seq(
            Cell(links.toQuery(query.facts.whole("query").getOrElse(-1L), -1), Some(query.number)),
            count(query.facts.whole("operators").getOrElse(0L)),
            Cell(line(shownMillis(query.facts.number("planningMillis").getOrElse(0.0)))),
            count(query.facts.whole("declined").getOrElse(0L))
          )
        }
      )
    )

  private def regions(drawn: QueryPicture, id: String): NodeSeq =
    if (drawn.regions.isEmpty) NodeSeq.Empty
    else {
      val spent = drawn.nodes.groupMapReduce(drawn.region)(_.number("seconds").getOrElse(0.0))(_ + _)
      foldedSection(
        "Regions",
        drawn.regions.size,
        table(
          s"$id-regions",
          "Regions in the order in which they run",
          Seq(
            "Region" -> "",
            "Operators" -> "",
            "Reads" -> "What Spark materialized between this one and others",
            if (drawn.ran) "Task seconds" -> "Measured, of all tasks together"
            else "Predicted" -> "Seconds on all cores"
          ),
          drawn.regions.map { region =>
            Seq(
              Cell(Text(s"R${region.number}"), Some(region.number.toString)),
              text(region.operators.mkString(", ")),
              text(region.reads.mkString(", ")),
              if (drawn.ran) seconds(spent.getOrElse(region.number, 0.0)) else known(region.predicted)
            )
          }
        )
      )
    }

  private def operators(drawn: QueryPicture, id: String): NodeSeq =
    foldedSection(
      "Operators",
      drawn.nodes.size,
      table(
        s"$id-operators",
        "Operators of the plan",
        Seq("Id" -> "", "Operator" -> "", "Region" -> "", "Feeds on" -> "", "Rows" -> "", "Size" -> "",
          "Task seconds" -> "Of the operator alone", "Done" -> "", "Label" -> ""),
        drawn.nodes.map { node =>
          Seq(
            Cell(
              <a id={QueryPicture.rowId(id, node.text("id"))} href={drawn.link(id, node.text("id"))}>{
                node.text("id")
              }</a>,
              Some(node.text("id"))),
            text(node.text("operator")),
            text(if (drawn.region(node) > 0) s"R${drawn.region(node)}" else ""),
            text(node.items("children").map(_.asText).mkString(", ")),
            counted(node.whole("rows")),
            sized(node.number("bytes")),
            known(node.number("seconds")),
            text(if (drawn.isIdle(node)) "not computed" else drawn.done(node)._1),
            text(node.text("label"))
          )
        }.toSeq,
        filtered = drawn.nodes.size > 20
      )
    )
}
