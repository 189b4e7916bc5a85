package org.apache.spark.sql.regions.ui.pages

import scala.jdk.CollectionConverters._
import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** What was done, in words that every page uses. */
private[pages] object Words {
  private val verbs = Seq(
    "load" -> "loaded",
    "recall" -> "recalled",
    "share" -> "shared",
    "committed" -> "stored",
    "persist" -> "persisting",
    "store" -> "storing",
    "abandoned" -> "gave up",
    "fallback" -> "fell back"
  )

  /** @param execution its `done`, or why nothing was decided at all */
  def done(execution: JsonNode): String =
    done(
      execution.path("done").fields().asScala.map(f => f.getKey -> f.getValue.asInt).toMap, execution.text("refusal"))

  private def done(counts: Map[String, Int], refusal: String): String = {
    // What was stored, or given up, is not being stored any more.
    val storing = Seq("store").flatMap(counts.get).sum - Seq("committed", "abandoned").flatMap(counts.get).sum
    val open = counts.updated("store", math.max(0, storing)) - "measured"
    val others = (open.keySet -- verbs.map(_._1)).toSeq.sorted.map(kind => kind -> kind.replace('_', ' '))
    val told = (verbs ++ others).flatMap { case (kind, verb) =>
      open.get(kind).filter(_ > 0).map(n => if (n > 1) s"$verb ×$n" else verb)
    }
    (told ++ Some(refusal).filter(_.nonEmpty)).mkString(", ")
  }

  /** "loaded ×3, 69 left alone" */
  def summary(execution: Execution): String = {
    val words = done(execution.done, execution.main.refusal)
    s"${if (words.isEmpty) "nothing was done" else words}, ${leftAlone(execution.declined)}"
  }

  /** The operator of an action, a decline or a node, as a link to its box. */
  def place(query: PlannedQuery, item: JsonNode): NodeSeq = {
    val node = item.whole("node").orElse(item.whole("id")).getOrElse(-1L)
    if (node < 0) Text(item.text("operator"))
    else <a href={query.page + query.drawn.link(query.id, node.toString)}>{item.text("operator")} ({node.toString})</a>
  }

  def leftAlone(declined: Int): String = s"${Html.counted(declined, "operator")} left alone"
}
