package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.picture.{Picture, PictureScript}
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
      if (execution < 0) <p>Only planned: no SQL execution of Spark is known for it.</p>
      else <p><a id="regions-to-sql" href={links.sql(execution)}>Spark’s page of SQL execution {execution.toString}</a>{
        if (facts.text("description").isEmpty) "" else s": ${facts.text("description")}"
      }</p>
    val parameters =
      if (execution >= 0) s"?id=$execution" else queries.headOption.map(q => s"?query=${q.text("query")}").getOrElse("")
    up ++ whole(facts, queries) ++ (
      if (queries.isEmpty) {
        <p class="text-muted">Nothing is known of it: it was not planned by spark_regions, its plan has nothing to reuse
          (a command, a plain relation), or it is older than the queries that are kept
          (spark.sql.ui.retainedExecutions).</p>
      } else queries.zipWithIndex.flatMap { case (query, i) =>
        if (i == 0) shown(query, links) else folded(query, links)
      }
    ) ++ links.toJson("execution", parameters)
  }

  /** Of an execution with subqueries: what all of it saves. */
  private def whole(facts: JsonNode, queries: Seq[JsonNode]): NodeSeq = {
    val ran = queries.count(_.whole("partOf").exists(_ >= 0))
    if (ran < 2) NodeSeq.Empty
    else <p id="regions-whole">With its subqueries ({(ran - 1).toString}): saving predicted {
      shownSeconds(facts.number("predicted").getOrElse(0))
    }, {facts.number("saved").map(s => s"measured ${shownSeconds(s)}").getOrElse("not measured")}.</p>
  }

  /** A subquery, or a plan that was made on the way. */
  private def folded(query: JsonNode, links: Links): NodeSeq =
    <details class="mb-3"><summary>Query {query.text("query")}, {
      if (query.whole("partOf").exists(_ >= 0)) "a subquery" else "planned once more and not run"
    } ({query.text("operators")} operators)</summary>
      {shown(query, links)}</details>

  private def shown(query: JsonNode, links: Links): NodeSeq = {
    val drawn = new QueryPicture(query)
    val id = s"regions-plan-${query.text("query")}"
    val picture =
      if (drawn.nodes.isEmpty) <p class="text-muted">The plan is not known.</p>
      else PictureScript.framed(id, drawn.svg(id), drawn.height)
    summary(query, drawn) ++ legend(drawn) ++ picture ++ actions(query, drawn, links) ++ SkewTable(query, links) ++
      declines(query, drawn) ++ regions(drawn) ++ operators(drawn, id)
  }

  private def summary(query: JsonNode, drawn: QueryPicture): NodeSeq = {
    val note = drawn.main.path("regions")
    val refusal = drawn.main.path("refusal")
    val saved = query.number("saved")
    cards(
      Seq(
        Some(("Query", Text(query.text("query")), UIUtils.formatDate(query.whole("time").getOrElse(0L)))),
        Some(
          (
            "Decided in",
            Text(f"${query.number("planningMillis").getOrElse(0.0)}%.0f ms"),
            f"${drawn.main.number("plannerMillis").getOrElse(0.0)}%.0f ms of it by the planner")),
        Some(
          (
            "Ran for",
            query.number("seconds").map(s => Text(shownSeconds(s))).getOrElse(Text("–")),
            if (query.text("outcome").isEmpty) "not ended"
            else s"${query.text("outcome")}, ${shownSeconds(query.number("taskSeconds").getOrElse(0))} in tasks")),
        note.number("chosenSeconds").map(chosen =>
          (
            "Predicted",
            Text(shownSeconds(chosen)),
            s"Spark’s own plan ${shownSeconds(note.number("plainSeconds").getOrElse(0))}")),
        Some(
          (
            "Saving predicted",
            if (query.whole("partOf").exists(_ >= 0)) Text(shownSeconds(query.number("predicted").getOrElse(0)))
            else Text("–"),
            if (query.whole("partOf").forall(_ < 0)) "not run, or not ended"
            else saved.map(s => s"measured ${shownSeconds(s)}").getOrElse("not measured"))),
        note.whole("step").map(step =>
          ("Step of the job", Text(s"$step of ${note.text("steps")}"), "as in its last run")),
        if (!refusal.isObject) None
        else Some(
          (
            "Nothing decided",
            <span class="regions-bad">{refusal.text("code")}</span>,
            Reasons.told(refusal.text("code"), refusal.text("detail"))))
      ).flatten) ++
      (if (query.flag("truncated"))
         <p class="text-muted">Long texts or parts of this query were cut.</p>
       else NodeSeq.Empty)
  }

  private def legend(drawn: QueryPicture): NodeSeq =
    if (drawn.nodes.isEmpty) NodeSeq.Empty
    else <p class="mb-1">{
      drawn.regions.take(Picture.regionColours).map { region =>
        val number = region.path("id").asInt
        <span class={s"regions-key regions-key-${(number - 1) % Picture.regionColours + 1}"}>R{number.toString}</span>
      }
    }<span class="text-muted">{
      if (drawn.regions.isEmpty) ""
      else "regions in the order in which they run; a dashed thick arrow is kept or shuffled between two. "
    }
      ▲ kept, ▼ read from what was kept, ⇉ computed once for several places, ✕ left alone, ⚠ could not be done.
      Faint: not computed.</span></p>

  private def actions(query: JsonNode, drawn: QueryPicture, links: Links): NodeSeq = {
    val loads = query.items("loads").map(load => load.whole("node") -> load).toMap
    val rows = query.items("decisions").filterNot(_.text("topic") == "skew").flatMap(_.items("actions")).map { action =>
      val load = loads.get(action.whole("node")).filter(_ => QueryPicture.reads(action.text("kind")))
      val refusal = action.path("refusal")
      val code = if (refusal.isObject) refusal.text("code") else action.text("reason")
      val detail = if (refusal.isObject) refusal.text("detail") else action.text("detail")
      Seq(
        text(if (refusal.isObject) s"could not ${action.text("kind")}" else action.text("kind")),
        text(place(action)),
        Cell(digest(action.text("entry"))),
        known(action.number("savingSeconds").filter(_ >= 0)),
        known(load.flatMap(_.number("saved"))),
        text(code),
        text(Reasons.told(code, detail))
      )
    }
    heading("What was done", Some(rows.size)) ++
      table(
        s"regions-actions-${query.text("query")}",
        "Actions and what became of them",
        Seq("Action" -> "", "Operator" -> "", "Entry" -> "", "Predicted saving" -> "", "Measured saving" -> "",
          "Code" -> "", "Reason" -> ""),
        rows,
        empty = "Nothing was stored, read or shared."
      ) ++ <p><a href={links.page("cache")}>Recycling cache</a></p>
  }

  private def place(item: JsonNode): String = {
    val node = item.path("node").asInt(-1)
    if (node < 0) item.text("operator") else s"${item.text("operator")} ($node)"
  }

  private def declines(query: JsonNode, drawn: QueryPicture): NodeSeq =
    heading("What was left alone, and why", Some(drawn.declines.size)) ++
      table(
        s"regions-declines-${query.text("query")}",
        "Operators at which nothing was done, with the reason",
        Seq("Operator" -> "", "Code" -> "", "Meaning" -> "", "Detail" -> ""),
        drawn.declines.map(d =>
          Seq(text(place(d)), text(d.text("code")), text(Reasons.sentence(d.text("code"))), text(d.text("detail")))),
        empty = "Nothing was declined."
      )

  private def regions(drawn: QueryPicture): NodeSeq =
    if (drawn.regions.isEmpty) NodeSeq.Empty
    else {
      val spent = drawn.nodes.groupMapReduce(drawn.region)(_.number("seconds").getOrElse(0.0))(_ + _)
      heading("Regions", Some(drawn.regions.size)) ++
        table(
          "regions-list",
          "Regions in the order in which they run",
          Seq(
            "Region" -> "",
            "Rank" -> "Regions of one rank can run at the same time",
            "Operators" -> "",
            "Reads" -> "",
            "Predicted" -> "On all cores",
            "Task seconds" -> "Measured, of all tasks together"
          ),
          drawn.regions.map { region =>
            val number = region.path("id").asInt
            Seq(
              Cell(Text(s"R$number"), Some(number.toString)),
              count(region.whole("rank").getOrElse(0L)),
              text(region.items("operators").map(_.asText).mkString(", ")),
              text(region.items("inputs").map(i => s"${i.text("label")} of R${i.text("region")}").mkString(", ")),
              known(region.number("seconds")),
              seconds(spent.getOrElse(number, 0.0))
            )
          }
        )
    }

  private def operators(drawn: QueryPicture, id: String): NodeSeq =
    heading("Operators", Some(drawn.nodes.size)) ++
      table(
        s"$id-operators",
        "Operators of the plan",
        Seq("Id" -> "", "Operator" -> "", "Region" -> "", "Feeds on" -> "", "Rows" -> "", "Size" -> "",
          "Task seconds" -> "Of the operator alone", "Done" -> "", "Label" -> ""),
        drawn.nodes.map { node =>
          Seq(
            Cell(<span id={s"$id-node-${node.text("id")}"}>{node.text("id")}</span>, Some(node.text("id"))),
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
}
