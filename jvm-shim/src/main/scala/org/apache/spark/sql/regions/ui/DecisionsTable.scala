package org.apache.spark.sql.regions.ui

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.regions.{DecidedAction, Decision}
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

  /**
   * @param execution in which a plan ran
   * @param ran whether an action on a plan stands at a place that ran
   */
  def apply(
      decisions: Seq[Decision],
      execution: Long => Option[Long],
      ran: (Long, DecidedAction) => Boolean): LogicalPlan =
    LocalRelation(
      schema.map(f => AttributeReference(f.name, f.dataType, f.nullable)()),
      decisions.flatMap(decision => rows(decision, execution(decision.query), ran(decision.query, _)))
    )

  private def rows(decision: Decision, execution: Option[Long], ran: DecidedAction => Boolean): Seq[InternalRow] = {
    val refused = decision.refusal.map(r => row(decision, -1, "", "refused", "", -1, r.code, r.detail, execution))
    val actions = decision.actions.map { a =>
      val kind = if (a.refusal.isEmpty) a.kind else "decline"
      val detail = a.refusal.map(_.detail).getOrElse(a.detail)
      row(decision, a.node, a.operator, kind, a.entry, a.savingSeconds, a.refusal.map(_.code).getOrElse(a.reason),
        detail, execution.filter(_ => ran(a)))
    }
    val declines =
      decision.declines.map(d => row(decision, d.node, d.operator, "decline", "", -1, d.code, d.detail, execution))
    refused.toSeq ++ actions ++ declines
  }

  private def row(
      decision: Decision,
      node: Int,
      operator: String,
      kind: String,
      entry: String,
      seconds: Double,
      code: String,
      detail: String,
      execution: Option[Long]): InternalRow = InternalRow(
    decision.query,
    if (node >= 0) node else null,
    string(operator),
    string(kind),
    string(entry),
    if (seconds >= 0) seconds else null,
    string(code),
    string(detail),
    execution.orNull
  )

  private def string(text: String): UTF8String = if (text.isEmpty) null else UTF8String.fromString(text)
}
