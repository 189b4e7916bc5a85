package org.apache.spark.sql.regions.ui.pages

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/**
 * One plan of an execution, with its picture.
 *
 * @param page where it is drawn, empty for the page of the execution
 */
private[pages] final class PlannedQuery(val facts: JsonNode, val page: String) {
  val number: String = facts.text("query")

  /** Of its picture, and the beginning of the names of all that is in it. */
  val id: String = s"regions-plan-$number"
  val ran: Boolean = facts.whole("partOf").exists(_ >= 0)
  lazy val drawn = new QueryPicture(facts)
  val decisions: Seq[JsonNode] = facts.items("decisions")

  /** Actions that the mode observe held back. */
  def observed: Int = decisions.flatMap(_.items("declines")).count(_.text("code") == QueryPicture.observed)
}

private[pages] object PlannedQuery {

  /** Operators that are drawn on one page, the first plan in any case. */
  private val mostOperators = 1000L

  def of(queries: Seq[JsonNode], links: Links): Seq[PlannedQuery] = {
    val upTo = queries.scanLeft(0L)((sum, query) => sum + query.whole("operators").getOrElse(0L)).tail
    queries.zip(upTo).zipWithIndex.map { case ((query, operators), i) =>
      val here = i == 0 || operators <= mostOperators
      new PlannedQuery(query, if (here) "" else links.query(query.whole("query").getOrElse(-1L), -1))
    }
  }
}
