package org.apache.spark.sql.regions.control.badrows

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.{Partition, SparkThrowable, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.types.DataType

/** How an operator tells of rows that failed in it, and what it gives for them. */
sealed private[badrows] trait Reported extends Serializable

/** Python functions of single rows or of columns: each row that comes back stands for one that went in. */
private[badrows] case object PythonRows extends Reported

/** Python functions of whole tables: rows that failed do not come back. */
private[badrows] case object PythonTables extends Reported

/** A parser that raises an error on a line, and goes on with the next one when it is asked again. */
private[badrows] case object Lines extends Reported

/**
 * The rows of an operator that does not end its task when a row fails, but for those.
 *
 * @param results of PythonRows: its last columns; of Lines: its columns, if a row of them can be given
 */
final case class CheckedRowsExec(child: SparkPlan, how: Reported)(
    val sink: BadRowSink,
    val results: Seq[Computed] = Nil)
    extends UnaryExecNode {
  override protected def otherCopyArgs: Seq[AnyRef] = sink :: results :: Nil
  override def nodeName: String = "CheckedRows"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def stringArgs: Iterator[Any] = Iterator.empty
  override protected def withNewChildInternal(newChild: SparkPlan): CheckedRowsExec =
    copy(child = newChild)(sink, results)

  override protected def doExecute(): RDD[InternalRow] = how match {
    case Lines => new AskedAgainRDD(child.execute(), sink, results.map(each => each.text -> each.dataType))
    case _ => new WatchedRDD(child.execute(), sink, how, results, output.map(_.dataType))
  }
}

/** Sets up where the worker reports before the worker starts, and looks there with each row. */
private final class WatchedRDD(
    rows: RDD[InternalRow],
    sink: BadRowSink,
    how: Reported,
    results: Seq[Computed],
    types: Seq[DataType])
    extends RDD[InternalRow](rows) {
  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions
  override val partitioner = rows.partitioner

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val reports = WorkerReports.of(context, sink.operator)
    val found = firstParent[InternalRow].iterator(split, context)
    how match {
      case PythonTables =>
        def told(): Unit = reports.fresh().foreach(sink.lost)
        found.map { row =>
          told()
          row
        } ++ { told(); Iterator.empty }
      case _ => new ReturnedRows(found, reports)
    }
  }

  /** Nearly all rows go by: a look at each takes a read of memory and no calls beside. */
  private final class ReturnedRows(rows: Iterator[InternalRow], reports: WorkerReports) extends Iterator[InternalRow] {
    private var passed = 0L
    private val ahead = mutable.HashMap.empty[Long, Seq[WorkerReport]]
    private var current: InternalRow = _

    @tailrec override def hasNext: Boolean =
      if (current != null) true
      else if (!rows.hasNext) false
      else {
        current = rows.next()
        passed += 1
        if (reports.waiting)
          reports.fresh().foreach(report => ahead(report.row) = ahead.getOrElse(report.row, Nil) :+ report)
        if (ahead.nonEmpty)
          ahead.remove(passed).foreach(failed => current = sink.returned(failed, current, results, types))
        hasNext
      }

    override def next(): InternalRow =
      if (hasNext) {
        val row = current
        current = null
        row
      } else throw new NoSuchElementException("no more rows")
  }
}

private final class AskedAgainRDD(rows: RDD[InternalRow], sink: BadRowSink, output: Seq[(String, DataType)])
    extends RDD[InternalRow](rows) {
  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions
  override val partitioner = rows.partitioner

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val lines = firstParent[InternalRow].iterator(split, context)
    new Iterator[InternalRow] {
      private var instead: InternalRow = _

      @tailrec override def hasNext: Boolean = {
        val known =
          try Some(instead != null || lines.hasNext)
          catch {
            case error: Exception =>
              instead = sink.line(error, output)
              None
          }
        known match {
          case Some(more) => more
          case None => hasNext
        }
      }

      override def next(): InternalRow =
        if (instead == null) lines.next()
        else {
          val row = instead
          instead = null
          row
        }
    }
  }
}

private[badrows] object Malformed {

  /** What a parser's error says of a record; thrown again if it is not about one. */
  def apply(error: Exception): BadRow = {
    val causes = Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).take(20).toSeq
    val (malformed, condition) = causes.collectFirst {
      case known: SparkThrowable if s"${known.getCondition}".startsWith("MALFORMED_RECORD_IN_PARSING") =>
        known -> known.getCondition
    }.getOrElse(throw error)
    val record = malformed.getMessageParameters.getOrDefault("badRecord", "").take(BadRowSink.most)
    val why = Option(malformed.getCause).getOrElse(malformed).getMessage
    BadRow("", s"$why".take(BadRowSink.most), condition, arguments = Seq("record" -> record))
  }
}
