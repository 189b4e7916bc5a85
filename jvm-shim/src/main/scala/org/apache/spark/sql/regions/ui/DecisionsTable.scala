package org.apache.spark.sql.regions.ui

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.regions.DecisionRecord
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
    .add("code", StringType, nullable = false)
    .add("detail", StringType)

  def apply(records: Seq[DecisionRecord]): LogicalPlan = {
    val rows = records.flatMap(_.decisions).map { d =>
      InternalRow(
        d.query,
        if (d.node >= 0) d.node else null,
        string(d.operator),
        string(d.kind),
        string(d.entry),
        if (d.seconds >= 0) d.seconds else null,
        string(d.code),
        string(d.detail))
    }
    LocalRelation(schema.map(f => AttributeReference(f.name, f.dataType, f.nullable)()), rows)
  }

  private def string(text: String): UTF8String = if (text.isEmpty) null else UTF8String.fromString(text)
}
