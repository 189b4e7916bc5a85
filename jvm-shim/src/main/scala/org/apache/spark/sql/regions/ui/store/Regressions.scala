package org.apache.spark.sql.regions.ui.store

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.Policy
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.events._
import org.apache.spark.util.kvstore.KVStore
import org.apache.spark.status.ElementTrackingStore

/** Keeps the decisions that did not bring what they promised. */
private[store] final class Regressions(store: ElementTrackingStore) {
  import Regressions._
  private val kept = new RegionsStore(store: KVStore)

  /** What could not be applied, what a query fell back from, and what was withdrawn for having lost before. */
  def decided(event: SparkListenerRegionsDecided): Unit = {
    val base = RegressionRecord("", event.query, event.executionId, event.time)
    event.decision.items("actions").foreach { action =>
      val refusal = action.path("refusal")
      val known = base.copy(entry = action.text("entry"), operator = action.text("operator"))
      if (refusal.isObject) {
        val predicted = action.number("savingSeconds").filter(_ >= 0).getOrElse(Double.NaN)
        add(known.copy(what = s"could not ${action.text("kind")}", predicted = predicted, code = refusal.text("code"),
            detail = refusal.text("detail")))
      } else if (action.text("kind") == "fallback") {
        val code = Seq("code", "reason").map(action.text).find(_.nonEmpty).getOrElse("")
        add(known.copy(what = "computed after all", operator = "", code = code, detail = action.text("detail")))
      } else if (action.text("kind") == "differs") {
        add(
          known.copy(what = "other rows than plain Spark", code = "DIFFERS", detail = action.text("detail")), "differs")
      }
    }
    event.decision.items("declines").filter(decline => withdrawn(decline.text("code"))).foreach { decline =>
      add(base.copy(what = "withdrawn", entry = s"node ${decline.text("node")}", operator = decline.text("operator"),
          code = decline.text("code"), detail = decline.text("detail")))
    }
  }

  /** Choices that saved far less than predicted, as measured, or of loads by an estimate. */
  def ran(event: SparkListenerRegionsRan): Unit = {
    val measured = Option(event.saving).map(_.items("choices"))
    def entry(choice: JsonNode): String = elements(event.loads)
      .find(load => load.whole("query") == choice.whole("query") && load.whole("node") == choice.whole("node"))
      .fold("")(_.text("entry"))
    val told = measured match {
      case Some(choices) =>
        choices.map(c => (c, c.number("saved"), if (c.text("kind") == "load") entry(c) else c.text("kind")))
      case None => elements(event.loads).map(load => (load, load.number("estimated"), load.text("entry")))
    }
    for ((each, found, name) <- told; predicted <- each.number("predicted"); saved <- found
      if contradicts(predicted, saved)) {
      val what = if (measured.isDefined) "saved less than predicted" else "saved less than predicted, by an estimate"
      add(RegressionRecord("", event.query, event.executionId, event.time, what, name, predicted = predicted,
          measured = saved, code = "CONTRADICTED"), "measured")
    }
  }

  /** Results that were written for nothing, or could not be read. */
  def entry(event: SparkListenerRegionsEntry): Unit =
    // The decision that could not be applied says the same with more words.
    if (Set("abandoned", "invalid")(event.state) && event.code != "NOT_EXECUTED" && kept.regression(id(event.query,
          event.entry, "failed")).isEmpty) {
      val execution = kept.query(event.query).map(_.executionId).getOrElse(-1L)
      val what = if (event.state == "abandoned") "not stored" else "not readable"
      add(RegressionRecord("", event.query, execution, event.time, what, event.entry, code = event.code,
          detail = event.detail))
    }

  private def add(record: RegressionRecord, how: String = "failed"): Unit =
    store.write(record.copy(id = id(record.query, record.entry, how)), true)
}

private[store] object Regressions {

  /** As the planner judges it (`contradicts` in spark_regions/store/admission.py). */
  def contradicts(predicted: Double, measured: Double): Boolean =
    measured < Policy.contradictionShare * predicted && predicted - measured > Policy.contradictionSeconds

  def withdrawn(code: String): Boolean = Set("SHADOWED", "DISAPPOINTED", "LOST", "DIFFERS")(code)

  private def id(query: Long, entry: String, what: String): String = s"$query/$entry/$what"
}
