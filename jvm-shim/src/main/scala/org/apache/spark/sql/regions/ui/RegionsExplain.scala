package org.apache.spark.sql.regions.ui

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.events.Outcome

/** The section that EXPLAIN shows below Spark's plan: what was decided about this query, and why. */
final class RegionsExplain extends ExtendedExplainGenerator {

  override def title: String = "spark_regions"

  override def generateExtendedInfo(plan: SparkPlan): String = Option(plan.session).map { session =>
    Guard(session.sparkContext.conf, "explain", "not available, see the driver's log") {
      val decisions = RegionsRuntime.current.toSeq.flatMap(runtime =>
        RegionsExplain.decisions(runtime, plan).map(runtime.events.savings.measured))
      SQLConf.get.getConf(RegionsConf.explainFormat) match {
        case "off" => ""
        case "json" => Frames.json.writeValueAsString(decisions)
        case _ =>
          val outcome = RegionsRuntime.current.map(_.events.savings)
          decisions.map(d => RegionsExplain.text(d, a => outcome.fold(Outcome())(_.outcome(d.query, a)))).mkString("\n")
      }
    }
  }.getOrElse("")
}

object RegionsExplain {

  /** The most declines of one query that are worth a reader's time. */
  private val declinesShown = 20

  def decisions(runtime: RegionsRuntime, plan: SparkPlan): Seq[Decision] = {
    val queries = this.queries(plan)
    runtime.decisions.last(Int.MaxValue).filter(d => queries.contains(d.query) && d.session.nonEmpty)
      .sortBy(d => queries.toSeq.indexOf(d.query))
  }

  /** The numbers under which the parts of a physical plan were decided, outermost first. */
  private def queries(plan: SparkPlan): Set[Long] = {
    val found = mutable.LinkedHashSet.empty[Long]
    def visit(p: SparkPlan): Unit = {
      p.logicalLink.foreach(_.foreach(_.getTagValue(Tags.query).foreach(found += _)))
      p match {
        case a: AdaptiveSparkPlanExec => visit(a.inputPlan)
        case s: QueryStageExec => visit(s.plan)
        case other => other.children.foreach(visit)
      }
      p.subqueries.foreach(visit)
    }
    visit(plan)
    found.toSet
  }

  /** @param outcome of each action, once it ran */
  def text(decision: Decision, outcome: DecidedAction => Outcome = _ => Outcome()): String = {
    val skew = decision.topic == "skew"
    val idle = if (skew) "left as it is" else "nothing stored or loaded"
    val nothing = decision.refusal.map(r => s"  nothing decided [${r.code}]${detail(r.detail)}").toSeq ++
      (if (decision.actions.isEmpty && decision.refusal.isEmpty) Seq(s"  $idle") else Nil)
    val hidden = decision.declines.size - declinesShown
    val head =
      f"query ${decision.query}${if (skew) ", a skewed stage" else ""}, decided in ${decision.planningMillis}%.0f ms"
    (Seq(head) ++ decision.regions.toSeq.flatMap(RegionLines(_)) ++ plain(decision) ++ nothing ++ decision.actions.map(
      a => action(a, outcome(a))) ++ decision.declines.take(declinesShown).map(decline) ++
      (if (hidden > 0) Seq(s"  … and $hidden more declined") else Nil)).mkString("\n")
  }

  /** What the savings of a decision are, once it ran: measured or estimated. */
  private def plain(decision: Decision): Option[String] =
    decision.baseline.filter(_ => decision.actions.exists(a => ActionKind.spares(a.kind))).map { known =>
      known.seconds match {
        case Some(seconds) =>
          f"  plain Spark took $seconds%.2f s (${known.state}, ${known.runs} run${if (known.runs == 1) "" else "s"}): savings are measured"
        case None => s"  no plain run is known (${known.state}): savings are estimated"
      }
    }

  private def saved(outcome: Outcome): String =
    outcome.measured.map(seconds => f", measured $seconds%.2f s")
      .orElse(outcome.estimated.map(seconds => f", estimated $seconds%.2f s")).getOrElse("")

  private def action(a: DecidedAction, outcome: Outcome): String = a.refusal match {
    case None if a.node < 0 => s"  ${a.kind} at ${a.operator} [${a.reason}]${detail(a.detail)}"
    case Some(r) => s"  could not ${a.kind} ${a.entry} at ${a.operator} (${a.node}) [${r.code}]${detail(r.detail)}"
    case None =>
      f"  ${a.kind} ${a.entry} at ${a.operator} (${a.node}), predicted saving ${a.savingSeconds}%.2f s${saved(outcome)} [${a.reason}]" +
        detail(a.detail) + a.engine.fold("")(run => s", ${run.text}")
  }

  private def decline(d: DeclinedNode): String =
    s"  declined ${d.operator}${if (d.node < 0) "" else s" (${d.node})"} [${d.code}]${detail(d.detail)}"

  private def detail(text: String): String = if (text.isEmpty) "" else s": $text"
}

/** A query's region plan as lines of text: predicted seconds, the regions by rank, and the edges between them. */
private object RegionLines {

  /** Of a long plan only so many regions are worth a reader's time. */
  private val shown = 12

  def apply(regions: JsonNode): Seq[String] = {
    val parts = regions.items("regions")
    val hidden = parts.size - shown
    seconds(regions).toSeq ++ parts.take(shown).map(region) ++
      (if (hidden > 0) Seq(s"  … and $hidden more regions") else Nil)
  }

  private def seconds(regions: JsonNode): Option[String] = {
    val step = regions.whole("step").map(n => s"query $n of ${regions.path("steps").asInt} of this job's last run, ")
    val chosen = regions.number("chosenSeconds").map { seconds =>
      f"predicted $seconds%.2f s, Spark's own plan ${regions.path("plainSeconds").asDouble}%.2f s"
    }
    if (step.isEmpty && chosen.isEmpty) None
    else Some(s"  plan: ${step.getOrElse("")}${chosen.getOrElse("no times known")}")
  }

  private def region(region: JsonNode): String = {
    val inputs = region.items("inputs").map(i => s"${i.path("label").asText} of region ${i.path("region").asInt}")
    val from = if (inputs.isEmpty) "" else inputs.mkString(", reads ", ", ", "")
    val time = region.number("seconds").map(s => f", $s%.2f s").getOrElse("")
    s"  region ${region.path("id").asInt} (rank ${region.path("rank").asInt}): " +
      s"${region.items("operators").map(_.asText).mkString(", ")}$from$time"
  }
}
