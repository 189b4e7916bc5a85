package org.apache.spark.sql.regions.ui

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.regions.Decision
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The rows of `spark_regions_decisions()`. */
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

  def apply(decisions: Seq[Decision]): LogicalPlan =
    LocalRelation(schema.map(f => AttributeReference(f.name, f.dataType, f.nullable)()), decisions.flatMap(rows))

  private def rows(decision: Decision): Seq[InternalRow] = {
    val refused = decision.refusal.map(r => row(decision, -1, "", "refused", "", -1, r.code, r.detail))
    val actions = decision.actions.map { a =>
      val kind = if (a.refusal.isEmpty) a.kind else "decline"
      val detail = a.refusal.map(_.detail).getOrElse(a.detail)
      row(
        decision, a.node, a.operator, kind, a.entry, a.savingSeconds, a.refusal.map(_.code).getOrElse(a.reason), detail)
    }
    val declines = decision.declines.map(d => row(decision, d.node, d.operator, "decline", "", -1, d.code, d.detail))
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
      detail: String): InternalRow = InternalRow(
    decision.query,
    if (node >= 0) node else null,
    string(operator),
    string(kind),
    string(entry),
    if (seconds >= 0) seconds else null,
    string(code),
    string(detail))

  private def string(text: String): UTF8String = if (text.isEmpty) null else UTF8String.fromString(text)
}
