package org.apache.spark.sql.regions.ui.pages

import jakarta.servlet.http.HttpServletRequest

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._

/** What is kept, where it came from, and what it has been good for. */
private[pages] final class CachePage(tab: RegionsTab) extends FactsPage(tab, "cache", "Recycling cache") {
  import Html._

  override protected def facts(request: HttpServletRequest): ObjectNode = tab.facts.cache

  override protected def content(facts: ObjectNode, links: Links): NodeSeq = {
    val entries = facts.items("entries")
    val asOf = facts.whole("asOf").getOrElse(0L)
    val cut =
      if (facts.flag("truncated")) <p class="text-muted">Only the results that were used last are listed.</p>
      else NodeSeq.Empty
    <p>Results that are kept for later queries, those of other jobs included. Press a column's head to sort.</p> ++ cut ++
      table("regions-cache", "Kept results", columns, entries.map(row(_, asOf, links)), filtered = true,
        empty = "Nothing is kept.") ++ links.toJson("cache")
  }

  private val columns = Seq(
    "Entry" -> "",
    "State" -> "committed: can be read; pending: being written; persisted: in the memory of this application",
    "Operator" -> "What the rows are the result of",
    "Made by" -> "Application; and the query, where it is this one",
    "Query" -> "That computed it, if in this application",
    "Read by" -> "Queries of this application, the last ones",
    "Why" -> "",
    "Rows" -> "",
    "Size" -> "",
    "Columns" -> "",
    "Uses" -> "Loads that were reported",
    "Expected per use" -> "Saving of one read, as estimated when it was stored; unknown where the operators had not been measured by then",
    "Saved, measured" -> "By all reads, each measured when it ran",
    "Saved, predicted" -> "By all reads, each predicted when it was decided on",
    "Last used" -> "",
    "Age" -> ""
  )

  private def row(e: JsonNode, asOf: Long, links: Links): Seq[Cell] = {
    val here = e.flag("here")
    val created = e.number("created").getOrElse(0.0)
    val why = Seq(e.text("reason"), e.text("code")).filter(_.nonEmpty).distinct.mkString(", ")
    val used = e.whole("uses").exists(_ > 0)
    val name = if (e.text("name").isEmpty) e.text("application") else e.text("name")
    Seq(
      Cell(<span id={s"entry-${e.text("entry")}"}>{digest(e.text("entry"))}</span>, Some(e.text("entry"))),
      text(e.text("state")),
      text(e.text("operator")),
      Cell(<span title={e.text("application")}>{if (here && name.isEmpty) "this application" else name}</span>),
      Cell(
        if (here) links.toQuery(e.whole("query").getOrElse(-1L), e.whole("executionId").getOrElse(-1L))
        else NodeSeq.Empty,
        Some(if (here) e.text("query") else "-1")),
      Cell(readers(e, links)),
      Cell(
        <span title={Reasons.told(why, e.text("detail"))}>{why}</span>),
      count(e.whole("rows").getOrElse(0L)),
      size(e.number("bytes").getOrElse(0.0)),
      counted(e.whole("columns").filter(_ > 0)),
      count(e.whole("uses").getOrElse(0L)),
      e.number("benefit").filter(_ > 0).map(seconds)
        .getOrElse(Cell(<span class="text-muted">unknown</span>, Some("-1"))),
      known(e.number("measured").filter(_ => used)),
      known(e.number("predicted").filter(_ => used)),
      time((e.number("used").getOrElse(0.0) * 1000).toLong),
      age(math.max(0.0, asOf / 1000.0 - created))
    )
  }

  private def readers(e: JsonNode, links: Links): NodeSeq = e.items("readBy").flatMap { reader =>
    links.toQuery(reader.whole("query").getOrElse(-1L), reader.whole("executionId").getOrElse(-1L)) ++ Text(" ")
  }

  private def age(seconds: Double): Cell = Cell(line(shownLong(seconds)), Some(seconds.toString))
}
