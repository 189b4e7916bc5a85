package org.apache.spark.sql.regions.platforms

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowConverters
import org.apache.spark.sql.types.StructType

/** What an engine would send. */
object EngineBatches {

  /** One for each of `batches`. */
  def apply(schema: StructType, batches: Seq[Seq[InternalRow]]): IndexedSeq[Array[Byte]] =
    batches.flatMap { rows =>
      val made = ArrowConverters.toBatchIterator(rows.iterator, schema, 0, "UTC", false, false, null)
      // To its end, which frees its memory.
      made.toList
    }.toIndexedSeq

  def rows(schema: StructType, batches: Seq[Seq[InternalRow]]): EngineRows = {
    val made = apply(schema, batches)
    EngineRows(made, schema, batches.map(_.size.toLong).sum, made.map(_.length.toLong).sum, 0.25, 0)
  }
}
