package org.apache.spark.sql.regions.ui

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.regions.{DecidedAction, Decision, EngineRun, Refusal}
import org.apache.spark.sql.regions.ui.events.Outcome
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The rows of `spark_regions_decisions()`.
 *
 * `execution`: of Spark SQL, in which what was decided ran; null where it did not, or not yet: the plan was only explained, planned once
 * more, or what it reads is computed at another place already.
 */
object DecisionsTable {
  val schema: StructType = new StructType()
    .add("query", LongType, nullable = false)
    .add("node", IntegerType)
    .add("operator", StringType)
    .add("kind", StringType, nullable = false)
    .add("entry", StringType)
    .add("predicted_seconds", DoubleType)
    .add("code", StringType)
    .add("detail", StringType)
    .add("execution", LongType)
    .add("measured_seconds", DoubleType)
    .add("estimated_seconds", DoubleType)
    .add(
      "engine",
      StructType.fromDDL(
        "predicted_seconds DOUBLE, predicted_rows DOUBLE, predicted_bytes DOUBLE, " +
          "measured_seconds DOUBLE, measured_rows LONG, measured_bytes LONG")
    )

  /**
   * @param execution in which a plan ran
   * @param ran whether an action on a plan stands at a place that ran
   * @param outcome what an action on a plan saved
   */
  def apply(
      decisions: Seq[Decision],
      execution: Long => Option[Long],
      ran: (Long, DecidedAction) => Boolean,
      outcome: (Long, DecidedAction) => Outcome = (_, _) => Outcome()): LogicalPlan =
    LocalRelation(
      schema.map(f => AttributeReference(f.name, f.dataType, f.nullable)()),
      decisions.flatMap(decision =>
        rows(decision, execution(decision.query), ran(decision.query, _), outcome(decision.query, _)))
    )

  private def rows(
      decision: Decision,
      execution: Option[Long],
      ran: DecidedAction => Boolean,
      outcome: DecidedAction => Outcome): Seq[InternalRow] = {
    def row(
        node: Int,
        operator: String,
        kind: String,
        entry: String,
        seconds: Double,
        why: Refusal,
        in: Option[Long],
        saved: Outcome = Outcome(),
        engine: Option[EngineRun] = None) =
      InternalRow(
        decision.query,
        if (node >= 0) node else null,
        string(operator),
        string(kind),
        string(entry),
        if (seconds >= 0) seconds else null,
        string(why.code),
        string(why.detail),
        in.orNull,
        saved.measured.orNull,
        saved.estimated.orNull,
        engine.map(run =>
          InternalRow(run.predictedSeconds, run.predictedRows, run.predictedBytes, run.measuredSeconds.orNull,
            run.measuredRows.orNull, run.measuredBytes.orNull)).orNull
      )
    val refused = decision.refusal.map(row(-1, "", "refused", "", -1, _, execution))
    val actions = decision.actions.map { a =>
      val kind = if (a.refusal.isEmpty) a.kind else "decline"
      row(a.node, a.operator, kind, a.entry, a.savingSeconds, a.refusal.getOrElse(Refusal(a.reason, a.detail)),
        execution.filter(_ => ran(a)), outcome(a), a.engine)
    }
    val declines =
      decision.declines.map(d => row(d.node, d.operator, "decline", "", -1, Refusal(d.code, d.detail), execution))
    refused.toSeq ++ actions ++ declines
  }

  private def string(text: String): UTF8String = if (text.isEmpty) null else UTF8String.fromString(text)
}
