package org.apache.spark.sql.regions.exec

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream}

import org.apache.spark.{SparkEnv, SparkException}
import org.apache.spark.io.CompressionCodec
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.columnar.{CachedBatch, CachedBatchSerializer}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.columnar.{InMemoryRelation, InMemoryTableScanExec}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.storage.StorageLevel

/**
 * Rows in Spark's own binary format, one behind the other, compressed.
 *
 * @param rawBytes of the rows and their lengths, before compression
 */
final case class RowBatch(numRows: Int, rawBytes: Int, compressed: Array[Byte]) extends CachedBatch {
  override def sizeInBytes: Long = compressed.length
}

/**
 * Keeps rows as they come. Spark's columnar format takes less memory and is pruned by column, but building it costs about as much as
 * many a query that it saves: what is kept for two or three readers has to be cheap to keep.
 *
 * @param keepTime what copying and compressing took, sampled
 */
final class RowBatches(@transient private val keepTime: SQLMetric) extends CachedBatchSerializer {
  import RowBatches._

  override def supportsColumnarInput(schema: Seq[Attribute]): Boolean = false
  override def supportsColumnarOutput(schema: StructType): Boolean = false

  override def convertInternalRowToCachedBatch(
      input: RDD[InternalRow],
      schema: Seq[Attribute],
      storageLevel: StorageLevel,
      conf: SQLConf): RDD[CachedBatch] = {
    val time = keepTime
    input.mapPartitionsInternal { rows =>
      val codec = RowBatches.codec
      val unsafe = UnsafeProjection.create(schema, schema)
      new Writing(rows.map {
          case row: UnsafeRow => row
          case row => unsafe(row)
        }, time, codec)
    }
  }

  override def convertCachedBatchToInternalRow(
      input: RDD[CachedBatch],
      cacheAttributes: Seq[Attribute],
      selectedAttributes: Seq[Attribute],
      conf: SQLConf): RDD[InternalRow] = {
    val whole = selectedAttributes.map(_.exprId) == cacheAttributes.map(_.exprId)
    input.mapPartitionsInternal { batches =>
      val codec = RowBatches.codec
      val rows = batches.flatMap(batch => read(batch.asInstanceOf[RowBatch], cacheAttributes.size, codec))
      if (whole) rows
      else {
        val selected = UnsafeProjection.create(selectedAttributes, cacheAttributes)
        rows.map(selected)
      }
    }
  }

  /** Every batch may have rows that pass: nothing is known of its columns. */
  override def buildFilter(
      predicates: Seq[Expression],
      cachedAttributes: Seq[Attribute]): (Int, Iterator[CachedBatch]) => Iterator[CachedBatch] =
    (_, batches) => batches

  override def convertColumnarBatchToCachedBatch(
      input: RDD[ColumnarBatch],
      schema: Seq[Attribute],
      storageLevel: StorageLevel,
      conf: SQLConf): RDD[CachedBatch] = throw SparkException.internalError("columnar input is not supported")

  override def convertCachedBatchToColumnarBatch(
      input: RDD[CachedBatch],
      cacheAttributes: Seq[Attribute],
      selectedAttributes: Seq[Attribute],
      conf: SQLConf): RDD[ColumnarBatch] = throw SparkException.internalError("columnar output is not supported")
}

object RowBatches extends AdaptiveSparkPlanHelper {

  /** Name of the metric, in nanoseconds of all tasks. */
  val keepTime: String = "keepTime"

  /** The metric of a relation in this format. */
  def time(relation: InMemoryRelation): Option[SQLMetric] = relation.cacheBuilder.serializer match {
    case format: RowBatches => Some(format.keepTime)
    case _ => None
  }

  /** The metrics of all relations in this format that `plan` reads. */
  def times(plan: SparkPlan): Seq[SQLMetric] =
    collect(plan) { case scan: InMemoryTableScanExec => time(scan.relation) }.flatten

  /** Large enough to compress well, small enough that a task holds one or two of them uncompressed. */
  private val batchBytes = 1 << 20

  private def codec: CompressionCodec = CompressionCodec.createCodec(SparkEnv.get.conf)

  // A prime, so that it does not keep step with the blocks of the codec.
  private val sampled = 7

  private final class Writing(rows: Iterator[UnsafeRow], time: SQLMetric, codec: CompressionCodec)
      extends Iterator[CachedBatch] {
    private val packed = new PackedRows(Int.MaxValue - 64)

    override def hasNext: Boolean = rows.hasNext

    override def next(): CachedBatch = {
      var count = 0
      var nanos = 0L
      while (packed.size < batchBytes && rows.hasNext) {
        val row = rows.next()
        if (count % sampled == 0) {
          val start = System.nanoTime()
          packed.add(row)
          nanos += (System.nanoTime() - start) * sampled
        } else packed.add(row)
        count += 1
      }
      val start = System.nanoTime()
      val raw = packed.size
      val buffer = new ByteArrayOutputStream(raw / 4)
      val out = codec.compressedOutputStream(buffer)
      packed.drain(out)
      out.close()
      val batch = RowBatch(count, raw, buffer.toByteArray)
      time += nanos + System.nanoTime() - start
      batch
    }
  }

  private def read(batch: RowBatch, fields: Int, codec: CompressionCodec): Iterator[InternalRow] = {
    val in = new DataInputStream(codec.compressedInputStream(new ByteArrayInputStream(batch.compressed)))
    val bytes =
      try {
        val all = new Array[Byte](batch.rawBytes)
        in.readFully(all)
        all
      } finally in.close()
    PackedRows.iterator(bytes, fields)
  }
}
