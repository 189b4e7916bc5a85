package org.apache.spark.sql.regions.exec

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.hadoop.fs.{BlockLocation, Path}

import org.apache.spark.internal.Logging
import org.apache.spark.paths.SparkPath
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Project}
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, truncatedString}
import org.apache.spark.sql.execution.{LeafExecNode, QueryExecution, RowToColumnarExec, SQLExecution, SparkPlan}
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.datasources.{FileFormat, FilePartition, FileScanRDD, PartitionedFile}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.Utils

/**
 * Reads a stored entry, partitions in the order in which they were stored.
 *
 * @param columns ordinals in the file of the output attributes
 * @param arranged one partition for each that was stored, in place of pieces of equal size
 * @param pushed conjuncts that Parquet may use to skip row groups; the plan above still evaluates them
 */
case class MaterializedScanExec(
    output: Seq[Attribute],
    @transient entry: StoredEntry,
    columns: Seq[Int],
    pushed: Seq[Expression],
    arranged: Boolean = false)
    extends LeafExecNode {

  override def nodeName: String = s"MaterializedScan ${if (entry == null) "" else entry.entry}".trim

  @transient private lazy val fileSchema: StructType = StorableTypes.physical(entry.schema)
  @transient private lazy val readSchema: StructType = StructType(columns.map(fileSchema(_)))
  @transient private lazy val format = new ParquetFileFormat()

  override lazy val supportsColumnar: Boolean =
    conf.wholeStageEnabled && !WholeStageCodegenExec.isTooManyFields(conf, schema) &&
      format.supportBatch(session, readSchema)

  override def vectorTypes: Option[Seq[String]] = format.vectorTypes(readSchema, new StructType(), conf)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numFiles" -> SQLMetrics.createMetric(sparkContext, "number of files read"),
    "filesSize" -> SQLMetrics.createSizeMetric(sparkContext, "size of files read"),
    "scanTime" -> SQLMetrics.createTimingMetric(sparkContext, "scan time")
  )

  override def simpleString(maxFields: Int): String = {
    val text = Utils.redact(conf.stringRedactionPattern, pushed.mkString("[", ", ", "]"))
    val shown = truncatedString(output, "[", ", ", "]", maxFields)
    s"$nodeName $shown PushedFilters: ${text.take(conf.maxMetadataStringLength)}, Files: ${entry.files.size}"
  }

  override def doCanonicalize(): SparkPlan = MaterializedScanExec(
    output.map(QueryPlan.normalizeExpressions(_, output)), entry, columns,
    QueryPlan.normalizePredicates(pushed, output), arranged)

  override protected def doExecute(): RDD[InternalRow] = scanRows(blocks)

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = scanBatches(blocks)

  private def blocks: Map[String, Array[BlockLocation]] =
    Entries.check(entry, session.sessionState.newHadoopConf()).getOrElse(Map.empty)

  @transient private lazy val scanCache = new Array[RDD[_]](2)

  private def scanRows(blocks: Map[String, Array[BlockLocation]]): RDD[InternalRow] = cached(0) {
    val numRows = longMetric("numOutputRows")
    val types = output.map(_.dataType).toArray
    files(blocks, batch = false).mapPartitionsWithIndexInternal { (index, in) =>
      val unsafe = UnsafeProjection.create(types)
      unsafe.initialize(index)
      in.map { row =>
        numRows += 1
        unsafe(row)
      }
    }
  }

  private def scanBatches(blocks: Map[String, Array[BlockLocation]]): RDD[ColumnarBatch] = cached(1) {
    val numRows = longMetric("numOutputRows")
    val scanTime = longMetric("scanTime")
    files(blocks, batch = true).asInstanceOf[RDD[ColumnarBatch]].mapPartitionsInternal { in =>
      new Iterator[ColumnarBatch] {
        override def hasNext: Boolean = {
          val start = System.nanoTime()
          val more = in.hasNext
          scanTime += NANOSECONDS.toMillis(System.nanoTime() - start)
          more
        }
        override def next(): ColumnarBatch = {
          val batch = in.next()
          numRows += batch.numRows()
          batch
        }
      }
    }
  }

  private def cached[T](slot: Int)(make: => RDD[T]): RDD[T] = {
    if (scanCache(slot) == null) scanCache(slot) = make
    tellDriverMetrics()
    scanCache(slot).asInstanceOf[RDD[T]]
  }

  private def tellDriverMetrics(): Unit = {
    metrics("numFiles").set(entry.files.size)
    metrics("filesSize").set(entry.bytes)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext, sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      Seq(metrics("numFiles"), metrics("filesSize")))
  }

  private def files(blocks: Map[String, Array[BlockLocation]], batch: Boolean): FileScanRDD = {
    // Explicit, because the session may ask to skip what it cannot read, and rows would be missing silently.
    val options = Map(
      FileFormat.OPTION_RETURNING_BATCH -> batch.toString,
      "ignoreCorruptFiles" -> "false",
      "ignoreMissingFiles" -> "false",
      "datetimeRebaseMode" -> "CORRECTED",
      "int96RebaseMode" -> "CORRECTED"
    )
    val hadoopConf = new PinnedConfiguration(session.sessionState.newHadoopConf())
    val filters = PushedFilters.translate(pushed, output, columns)
    val read = format.buildReaderWithPartitionValues(
      session, fileSchema, new StructType(), readSchema, filters, options, hadoopConf)
    val partitions = if (arranged) stored(blocks) else pieces(blocks)
    new FileScanRDD(
      session, read, partitions, readSchema, Nil, Map.empty, new FileSourceOptions(CaseInsensitiveMap(options)))
  }

  private def pieces(blocks: Map[String, Array[BlockLocation]]): Seq[FilePartition] = {
    val cost = conf.filesOpenCostInBytes
    val splitBytes = FilePartition.maxSplitBytes(session, entry.files.map(_.bytes + cost).sum)
    val pieces = entry.files.flatMap(file => split(file, splitBytes, blocks.getOrElse(file.name, Array.empty)))
    FilePartition.getFilePartitions(session, pieces, splitBytes)
  }

  private def stored(blocks: Map[String, Array[BlockLocation]]): Seq[FilePartition] = {
    val files = entry.files.map(file => file.partition -> file).toMap
    (0 until entry.layout.fold(0)(_.partitions)).map { index =>
      val whole = files.get(index).toArray.flatMap { file =>
        split(file, math.max(1, file.bytes), blocks.getOrElse(file.name, Array.empty))
      }
      FilePartition(index, whole)
    }
  }

  private def split(file: StoredFile, splitBytes: Long, blocks: Array[BlockLocation]): Seq[PartitionedFile] = {
    val path = SparkPath.fromPath(new Path(entry.location, file.name))
    (0L until file.bytes by splitBytes).map { start =>
      val hosts = blocks.find(b => b.getOffset <= start && start < b.getOffset + b.getLength)
        .map(_.getHosts).getOrElse(Array.empty[String])
      PartitionedFile(
        InternalRow.empty, path, start, math.min(splitBytes, file.bytes - start), hosts, file.modified, file.bytes)
    }
  }
}
