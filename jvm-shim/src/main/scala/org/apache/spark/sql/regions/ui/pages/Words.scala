package org.apache.spark.sql.regions.ui.pages

import scala.jdk.CollectionConverters._
import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** What was done, in words that every page uses. */
private[pages] object Words {
  private val verbs: Map[String, String] = Map(
    "load" -> "loaded",
    "recall" -> "recalled",
    "store" -> "storing",
    "persist" -> "persisting",
    "share" -> "shared",
    "committed" -> "stored",
    "abandoned" -> "gave up",
    "fallback" -> "fell back"
  )

  /** @param execution its `done`, or why nothing was decided at all */
  def done(execution: JsonNode): String =
    done(
      execution.path("done").fields().asScala.map(f => f.getKey -> f.getValue.asInt).toSeq, execution.text("refusal"))

  private def done(counts: Seq[(String, Int)], refusal: String): String =
    (counts.filter(_._1 != "measured").map { case (kind, n) =>
      verbs.getOrElse(kind, kind.replace('_', ' ')) + (if (n > 1) s" ×$n" else "")
    } ++ Some(refusal).filter(_.nonEmpty)).mkString(", ")

  /** "loaded ×3, 69 left alone" */
  def summary(execution: Execution): String = {
    val words = done(execution.done.toSeq.sortBy { case (kind, n) => (-n, kind) }, execution.main.refusal)
    s"${if (words.isEmpty) "nothing was done" else words}, ${leftAlone(execution.declined)}"
  }

  /** The operator of an action, a decline or a node, as a link to its box. */
  def place(query: PlannedQuery, item: JsonNode): NodeSeq = {
    val node = item.whole("node").orElse(item.whole("id")).getOrElse(-1L)
    if (node < 0) Text(item.text("operator"))
    else <a href={query.drawn.link(query.id, node.toString)}>{item.text("operator")} ({node.toString})</a>
  }

  def leftAlone(declined: Int): String = s"${Html.counted(declined, "operator")} left alone"
}
