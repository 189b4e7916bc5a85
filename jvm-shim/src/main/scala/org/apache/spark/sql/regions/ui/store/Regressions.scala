package org.apache.spark.sql.regions.ui.store

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
    event.decision.items("actions").foreach { action =>
      val refusal = action.path("refusal")
      val kind = action.text("kind")
      if (refusal.isObject) {
        add(event, s"could not $kind", action.text("entry"), action.text("operator"), action.number("savingSeconds"),
          refusal.text("code"), refusal.text("detail"))
      } else if (kind == "fallback") {
        add(event, "computed after all", action.text("entry"), "", None, action.text("code"), action.text("detail"),
          action.text("reason"))
      }
    }
    event.decision.items("declines").filter(decline => withdrawn(decline.text("code"))).foreach { decline =>
      add(event, "withdrawn", s"node ${decline.text("node")}", decline.text("operator"), None, decline.text("code"),
        decline.text("detail"))
    }
  }

  private def add(
      event: SparkListenerRegionsDecided,
      what: String,
      entry: String,
      operator: String,
      predicted: Option[Double],
      code: String,
      detail: String,
      otherwise: String = ""): Unit =
    store.write(
      new RegressionRecord(
        id(event.query, entry, "failed"),
        event.query,
        event.executionId,
        event.time,
        what,
        entry,
        operator,
        predicted.filter(_ >= 0).getOrElse(Double.NaN),
        Double.NaN,
        if (code.isEmpty) otherwise else code,
        detail
      ),
      true
    )

  /** Loads that saved far less than predicted. */
  def ran(event: SparkListenerRegionsRan): Unit = elements(event.loads).foreach { load =>
    for (predicted <- load.number("predicted"); saved <- load.number("saved"); if contradicts(predicted, saved)) {
      val entry = load.text("entry")
      store.write(
        new RegressionRecord(id(event.query, entry, "measured"), event.query, event.executionId, event.time,
          "saved less than predicted", entry, "", predicted, saved, "CONTRADICTED", ""),
        true
      )
    }
  }

  /** Results that were written for nothing, or could not be read. */
  def entry(event: SparkListenerRegionsEntry): Unit =
    if (Set("abandoned", "invalid")(event.state)) {
      val known = id(event.query, event.entry, "failed")
      // The decision that could not be applied says the same with more words.
      if (kept.loss(known).isEmpty) {
        val execution = kept.query(event.query).map(_.executionId).getOrElse(-1L)
        store.write(
          new RegressionRecord(
            known,
            event.query,
            execution,
            event.time,
            if (event.state == "abandoned") "not stored" else "not readable",
            event.entry,
            "",
            Double.NaN,
            Double.NaN,
            event.code,
            event.detail
          ),
          true
        )
      }
    }
}

private[store] object Regressions {

  /** As the planner judges it (`contradicts` in spark_regions/recycle/admission.py). */
  def contradicts(predicted: Double, measured: Double): Boolean =
    measured < 0.2 * predicted && predicted - measured > 0.05

  def withdrawn(code: String): Boolean = code == "SHADOWED" || code == "DISAPPOINTED"

  private def id(query: Long, entry: String, what: String): String = s"$query/$entry/$what"
}
