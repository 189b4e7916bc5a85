package org.apache.spark.sql.regions.ui

import scala.collection.mutable

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.regions.{DecisionRecord, DecisionRow, RegionsConf, RegionsRuntime, Tags}
import org.apache.spark.sql.regions.rules.Faults

/** The section that EXPLAIN shows below Spark's plan: what was decided about this query, and why. */
final class RegionsExplain extends ExtendedExplainGenerator {

  override def title: String = "spark_regions"

  override def generateExtendedInfo(plan: SparkPlan): String = plan.session match {
    case session: SparkSession =>
      Faults.shielded(session, "RegionsExplain")(describe(session, plan))(fault => s"not available: $fault")
    case null => ""
  }

  private def describe(session: SparkSession, plan: SparkPlan): String = {
    val records = RegionsRuntime.of(session).toSeq.flatMap(r => RegionsExplain.queries(plan).flatMap(r.record))
    session.sessionState.conf.getConf(RegionsConf.EXPLAIN_FORMAT) match {
      case "off" => ""
      case "json" => RegionsExplain.json(records)
      case _ => records.map(RegionsExplain.text).mkString("\n")
    }
  }
}

object RegionsExplain {
  private val mapper = new ObjectMapper().registerModule(DefaultScalaModule)

  /** The most declines of one query that are worth a reader's time. */
  private val declinesShown = 20

  /** The numbers under which the parts of a physical plan were decided, outermost first. */
  def queries(plan: SparkPlan): Seq[Long] = {
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
    found.toSeq
  }

  def json(records: Seq[DecisionRecord]): String =
    mapper.writeValueAsString(records.flatMap(_.decisions))

  def text(record: DecisionRecord): String = {
    val (declines, actions) = record.decisions.partition(_.kind == "decline")
    val done = if (actions.isEmpty) Seq("  nothing stored or loaded") else actions.map(action)
    val hidden = declines.size - declinesShown
    val tail = if (hidden > 0) Seq(s"  … and $hidden more declined") else Nil
    val head = f"query ${record.query}, planned in ${record.planningSeconds * 1000}%.0f ms"
    (head +: done ++: declines.take(declinesShown).map(decline) ++: tail).mkString("\n")
  }

  private def action(row: DecisionRow): String = {
    val saving = if (row.seconds >= 0) f", predicted saving ${row.seconds}%.2f s" else ""
    val place = if (row.node >= 0) s" at ${row.operator} (${row.node})" else ""
    s"  ${row.kind} ${row.entry}$place$saving [${row.code}]${detail(row)}"
  }

  private def decline(row: DecisionRow): String =
    s"  declined ${row.operator} (${row.node}) [${row.code}]${detail(row)}"

  private def detail(row: DecisionRow): String = if (row.detail.isEmpty) "" else s": ${row.detail}"
}
