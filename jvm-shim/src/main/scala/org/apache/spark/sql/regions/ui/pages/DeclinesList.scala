package org.apache.spark.sql.regions.ui.pages

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** What was left alone in an execution: the reasons with how often each was given, what only follows from another choice last. */
private[pages] object DeclinesList {
  import Html._
  private type Declined = (PlannedQuery, JsonNode)

  def apply(queries: Seq[PlannedQuery], facts: JsonNode): NodeSeq = {
    val all = for (query <- queries; decision <- query.decisions; decline <- decision.items("declines"))
      yield (query, decline)
    val (would, declined) = all.partition(_._2.text("code") == QueryPicture.observed)
    val byCode = declined.groupBy(_._2.text("code")).toSeq.sortBy { case (code, group) => (-group.size, code) }
    val (following, telling) = byCode.partition { case (code, _) => QueryPicture.follows(code) }
    val last =
      if (following.isEmpty) NodeSeq.Empty
      else folded(
        <span>Because of another choice — {following.map(_._2.size).sum.toString}</span>,
        following.flatMap { case (code, group) => reasons(code, group) })
    observed(would) ++ heading("What was left alone, and why", Some(declined.size)) ++
      <div id="regions-declines">{
        if (declined.isEmpty) <p class="text-muted">Nothing was declined.</p>
        else telling.flatMap { case (code, group) => reasons(code, group) } ++ last
      }</div>
  }

  /** In the mode observe nothing is done. */
  private def observed(would: Seq[Declined]): NodeSeq =
    if (would.isEmpty) NodeSeq.Empty
    else heading("What would have been done", Some(would.size)) ++
      <p class="text-muted">The mode is observe (spark.regions.mode): queries run as Spark planned them.</p> ++
      table(
        "regions-observed",
        "Actions that the mode observe held back",
        Seq("Operator" -> "", "Query" -> "", "Action" -> ""),
        would.map { case (query, decline) =>
          Seq(Cell(Words.place(query, decline)), text(query.number), text(decline.text("detail")))
        }
      )

  private def reasons(code: String, group: Seq[Declined]): NodeSeq = {
    val details = group.groupBy(_._2.text("detail")).toSeq.sortBy { case (detail, same) => (-same.size, detail) }
    folded(
      <span>{reason(code, "")} — {counted(group.size, "operator")}</span>,
      <ul class="mb-1">{
        details.map { case (detail, same) =>
          val places = same.map { case (query, decline) => Words.place(query, decline) }
          <li>{if (detail.isEmpty) "" else s"$detail: "}{
            places.reduce((before, next) => before ++ Text(", ") ++ next)
          }</li>
        }
      }</ul>
    )
  }
}
