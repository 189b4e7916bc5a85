package org.apache.spark.sql.regions.control.badrows

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.{Partition, SparkThrowable, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/** How an operator tells of rows that failed in it, and what it gives for them. */
sealed private[badrows] trait Reported extends Serializable

/** Python functions of single rows or of columns: each row that comes back stands for one that went in. */
private[badrows] case object PythonRows extends Reported

/** Python functions of whole tables: rows that failed do not come back. */
private[badrows] case object PythonTables extends Reported

/** A parser that raises an error on a line, and goes on with the next one when it is asked again. */
private[badrows] case object Lines extends Reported

/** The rows of an operator that does not end its task when a row fails, but for those. */
final case class CheckedRowsExec(child: SparkPlan, how: Reported)(val sink: BadRowSink) extends UnaryExecNode {
  override protected def otherCopyArgs: Seq[AnyRef] = sink :: Nil
  override def nodeName: String = "CheckedRows"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def stringArgs: Iterator[Any] = Iterator.empty
  override protected def withNewChildInternal(newChild: SparkPlan): CheckedRowsExec = copy(child = newChild)(sink)

  override protected def doExecute(): RDD[InternalRow] = how match {
    case Lines => new AskedAgainRDD(child.execute(), sink)
    case _ => new WatchedRDD(child.execute(), sink, how)
  }
}

/** Sets up where the worker reports before the worker starts, and looks there with each row. */
private final class WatchedRDD(rows: RDD[InternalRow], sink: BadRowSink, how: Reported)
    extends RDD[InternalRow](rows) {
  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions
  override val partitioner = rows.partitioner

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val reports = WorkerReports.of(context, sink.operator)
    val found = firstParent[InternalRow].iterator(split, context)
    how match {
      case PythonTables =>
        def told(): Unit = reports.fresh().foreach(report => sink.add(report.bad))
        found.map { row =>
          told()
          row
        } ++ { told(); Iterator.empty }
      case _ =>
        var passed = 0L
        val ahead = mutable.HashMap.empty[Long, WorkerReport]
        found.filter { row =>
          reports.fresh().foreach(report => ahead.getOrElseUpdate(report.row, report))
          passed += 1
          ahead.isEmpty || ahead.remove(passed).forall { report =>
            sink.add(report.bad.copy(row = sink.shown(sink.values(row))))
            sink.keepsRow
          }
        }
    }
  }
}

private final class AskedAgainRDD(rows: RDD[InternalRow], sink: BadRowSink)
    extends RDD[InternalRow](rows) {
  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions
  override val partitioner = rows.partitioner

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val lines = firstParent[InternalRow].iterator(split, context)
    new Iterator[InternalRow] {
      @tailrec override def hasNext: Boolean = {
        val known =
          try Some(lines.hasNext)
          catch {
            case error: Exception =>
              sink.add(AskedAgainRDD.bad(error))
              None
          }
        known match {
          case Some(more) => more
          case None => hasNext
        }
      }
      override def next(): InternalRow = lines.next()
    }
  }
}

private object AskedAgainRDD {

  /** Throws the error again if it is not about one record. */
  def bad(error: Exception): BadRow = {
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
