package org.apache.spark.sql.regions.ui.pages

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** One plan of an execution, with its picture. */
private[pages] final class PlannedQuery(val facts: JsonNode) {
  val number: String = facts.text("query")

  /** Of its picture, and the beginning of the names of all that is in it. */
  val id: String = s"regions-plan-$number"
  val ran: Boolean = facts.whole("partOf").exists(_ >= 0)
  lazy val drawn = new QueryPicture(facts)
  val decisions: Seq[JsonNode] = facts.items("decisions")

  /** Actions that the mode observe held back. */
  def observed: Int = decisions.flatMap(_.items("declines")).count(_.text("code") == QueryPicture.observed)
}
