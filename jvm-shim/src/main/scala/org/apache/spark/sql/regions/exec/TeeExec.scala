package org.apache.spark.sql.regions.exec

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.regions.StoreOrder
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Physical form of [[Tee]]: rows or batches pass unchanged, the first execution among all copies also writes them. */
case class TeeExec(child: SparkPlan, @transient order: StoreOrder) extends UnaryExecNode {
  override def nodeName: String = "Tee"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def supportsColumnar: Boolean = child.supportsColumnar
  override def supportsRowBased: Boolean = child.supportsRowBased
  override def vectorTypes: Option[Seq[String]] = child.vectorTypes

  override lazy val metrics: Map[String, SQLMetric] =
    Map(
      "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
      TeeExec.writeTime -> SQLMetrics.createNanoTimingMetric(sparkContext, "time to write")
    )

  override protected def stringArgs: Iterator[Any] = Iterator(Tee.label(order))

  /** Spark may reuse one with it for one without, and the other way round: the rows are the same. */
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  private def schemaToStore: StructType =
    DataTypeUtils.fromAttributes(child.output.zipWithIndex.map { case (a, i) => a.withName(s"c$i") })

  override protected def doExecute(): RDD[InternalRow] = {
    val rdd = child.execute()
    val numRows = longMetric("numOutputRows")
    val writeTime = longMetric(TeeExec.writeTime)
    Stores.activate(order, schemaToStore, rdd, child) match {
      case None => rdd
      case Some((spec, reports)) =>
        rdd.mapPartitionsWithIndexInternal { (index, rows) =>
          if (spec.active) {
            new TeeRows(rows, new TeeWriter(spec, reports, index, TaskContext.get(), writeTime), numRows)
          } else rows
        }
    }
  }

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    val rdd = child.executeColumnar()
    val numRows = longMetric("numOutputRows")
    val writeTime = longMetric(TeeExec.writeTime)
    Stores.activate(order, schemaToStore, rdd, child) match {
      case None => rdd
      case Some((spec, reports)) =>
        rdd.mapPartitionsWithIndexInternal { (index, batches) =>
          if (spec.active) {
            new TeeBatches(batches, new TeeWriter(spec, reports, index, TaskContext.get(), writeTime), numRows)
          } else batches
        }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): TeeExec = copy(child = newChild)
}

object TeeExec {
  val writeTime: String = "writeTime"
}

private final class TeeRows(in: Iterator[InternalRow], out: TeeWriter, count: SQLMetric) extends Iterator[InternalRow] {
  override def hasNext: Boolean = {
    val more = in.hasNext
    if (!more) out.finish()
    more
  }

  override def next(): InternalRow = {
    val row = in.next()
    count += 1
    out.write(row)
    row
  }
}

private final class TeeBatches(in: Iterator[ColumnarBatch], out: TeeWriter, count: SQLMetric)
    extends Iterator[ColumnarBatch] {
  override def hasNext: Boolean = {
    val more = in.hasNext
    if (!more) out.finish()
    more
  }

  override def next(): ColumnarBatch = {
    val batch = in.next()
    count += batch.numRows()
    batch.rowIterator().asScala.foreach(out.write)
    batch
  }
}
