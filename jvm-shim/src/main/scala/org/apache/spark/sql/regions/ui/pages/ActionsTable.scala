package org.apache.spark.sql.regions.ui.pages

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ActionKind
import org.apache.spark.sql.regions.ui.Trees._

/** What was done in an execution, and what became of it: one row for each place, with links to the boxes and entries. */
private[pages] object ActionsTable {
  import Html._

  /** @param queries that ran, or the main one while it does; of subqueries several may share one place */
  def apply(queries: Seq[PlannedQuery], facts: JsonNode, links: Links): NodeSeq = {
    val several = queries.sizeIs > 1
    val counts = facts.flag("counted")
    val rows = queries.flatMap(query => actions(query).map(row(query, _, several, counts, links)))
    val again = queries.flatMap(before(_, queries, several, links))
    val counted = queries.flatMap(actions).count(action => action.flag("ran") || !counts)
    heading(if (counts) "What was done" else "What was decided", Some(counted)) ++
      table(
        "regions-actions",
        "Actions and what became of them",
        Seq("Action" -> "", "Operator" -> "") ++ (if (several) Seq("Query" -> "") else Nil) ++
          Seq("Entry" -> "", "Predicted saving" -> "", "Measured saving" -> "", "Reason" -> ""),
        rows ++ again,
        empty = "Nothing was stored, read or shared."
      )
  }

  private def actions(query: PlannedQuery): Seq[JsonNode] =
    query.decisions.filterNot(_.text("topic") == "skew").flatMap(_.items("actions"))

  private def row(
      query: PlannedQuery,
      action: JsonNode,
      several: Boolean,
      counts: Boolean,
      links: Links): Seq[Cell] = {
    val refusal = action.path("refusal")
    val load = query.facts.items("loads").find(_.whole("node") == action.whole("node"))
      .filter(_ => ActionKind.reads(action.text("kind")) && action.flag("ran"))
    val words =
      if (refusal.isObject) reason(refusal.text("code"), refusal.text("detail"))
      else reason(action.text("reason"), action.text("detail"))
    val idle = counts && !refusal.isObject && !action.flag("ran")
    Seq(
      text(if (refusal.isObject) s"could not ${action.text("kind")}" else action.text("kind")),
      Cell(Words.place(query, action))
    ) ++ (if (several) Seq(text(query.number)) else Nil) ++ Seq(
      Cell(entry(action.text("entry"), links)),
      known(action.number("savingSeconds").filter(_ >= 0 && !idle)),
      known(load.flatMap(_.number("saved"))),
      Cell(if (idle) <span class="text-muted">Not run: the same rows are computed at another place.</span> else words)
    )
  }

  /** Reads that stand in a plan since before it was decided on, one row for each entry. */
  private def before(
      query: PlannedQuery,
      queries: Seq[PlannedQuery],
      several: Boolean,
      links: Links): Seq[Seq[Cell]] = {
    val nodes = query.drawn.nodes.filterNot(query.drawn.isIdle)
    val reads = nodes.filter(_.text("operator") == "Recycled")
      .flatMap(node => QueryPicture.entry(node).map(_ -> node))
    reads.map(_._1).distinct.map { name =>
      val decided = queries.find(other => (other ne query) && actions(other).exists(_.text("entry") == name))
      val places = reads.filter(_._1 == name).map { case (_, node) => Words.place(query, node) }
      Seq(
        text("read"),
        Cell(places.reduce((before, next) => before ++ Text(", ") ++ next))
      ) ++ (if (several) Seq(text(query.number)) else Nil) ++ Seq(
        Cell(entry(name, links)),
        known(None),
        known(None),
        Cell(
          <span class="text-muted">{
            decided.map(other => s"As decided on query ${other.number}, and counted there.")
              .getOrElse("Decided on before: on a DataFrame or subquery that this plan is built on.")
          }</span>)
      )
    }
  }

  private def entry(name: String, links: Links): NodeSeq =
    if (name.isEmpty) NodeSeq.Empty else <a href={links.entry(name)}>{digest(name)}</a>
}
