package org.apache.spark.sql.regions.exec

import java.lang.ref.SoftReference

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, NamedExpression, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.{LeafExecNode, SQLExecution, SparkPlan}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.platforms.EngineRows

/** The engine gave no rows. */
private[exec] final class EngineFailure(val refusal: Refusal) extends Exception(s"${refusal.code}: ${refusal.detail}")

/**
 * A statement of another engine, in the place of a part of a query.
 *
 * Adaptive execution plans that part again and again, and each plan asks: of one execution the rows are the same. A later execution
 * has them too, if the files cannot have changed unseen and the memory was not needed.
 *
 * @param platform the engine, for people
 * @param settled whether each change of a file that is read shows in its time
 * @param ask runs the statement
 */
private[regions] final class EngineStatement(
    val platform: String,
    settled: Boolean,
    ask: () => Either[Refusal, EngineRows]) {
  import EngineStatement.Answer

  @volatile private var last = Answer("", Left(Refusal("")))

  def rows(sc: SparkContext): Either[Refusal, EngineRows] = {
    val execution = Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).getOrElse("")
    val before = last
    val same = execution.nonEmpty && execution == before.execution
    before.found.map(_.get) match {
      case Right(known) if known != null && (same || settled) => Right(known)
      case Left(refusal) if same => Left(refusal)
      case _ =>
        val found = ask()
        last = Answer(execution, found.map(new SoftReference(_)))
        found
    }
  }
}

private object EngineStatement {
  final case class Answer(execution: String, found: Either[Refusal, SoftReference[EngineRows]])
}

/**
 * The rows that an engine computes; always inside a [[MaterializedRead]], which knows what to do when there are none.
 *
 * @param columns of the statement
 * @param values computed over them: the columns themselves, or what Spark makes of an aggregate's parts
 * @param rows, bytes as expected
 * @param limit at most so many rows; there may be one more, which was there to be compared with
 */
private[regions] final case class EngineRelation(
    columns: Seq[Attribute],
    values: Seq[NamedExpression],
    @transient statement: EngineStatement,
    rows: Long,
    bytes: Long,
    limit: Option[Long])
    extends LeafNode {
  override def output: Seq[Attribute] = values.map(_.toAttribute)
  override def maxRows: Option[Long] = limit

  override def computeStats(): Statistics =
    Statistics(sizeInBytes = EstimationUtils.getOutputSize(output, BigInt(rows)).max(bytes).max(1),
      rowCount = Some(BigInt(rows)))

  override protected def stringArgs: Iterator[Any] = Iterator(s"[${statement.platform}]", output)
}

/**
 * Runs a statement when it is executed, and holds its rows in the driver: there it answers without a job, and for a plan above it hands
 * them out in as many partitions as there are batches.
 */
private[regions] final case class EngineScanExec(
    columns: Seq[Attribute],
    values: Seq[NamedExpression],
    @transient statement: EngineStatement,
    limit: Option[Long])
    extends LeafExecNode {
  override def output: Seq[Attribute] = values.map(_.toAttribute)
  override def nodeName: String = s"EngineScan ${if (statement == null) "" else statement.platform}".trim
  override protected def stringArgs: Iterator[Any] = Iterator(output)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "dataSize" -> SQLMetrics.createSizeMetric(sparkContext, "data size"),
    "engineTime" -> SQLMetrics.createTimingMetric(sparkContext, "time of the engine")
  )

  override def doCanonicalize(): SparkPlan = EngineScanExec(
    columns.map(QueryPlan.normalizeExpressions(_, columns)), values.map(QueryPlan.normalizeExpressions(_, columns)),
    statement, limit)

  /** The rows of now, or why there are none. */
  def fetch(): Either[Refusal, EngineRows] = statement.rows(sparkContext).map { rows =>
    metrics("numOutputRows").set(math.min(rows.rows, limit.getOrElse(Long.MaxValue)))
    metrics("dataSize").set(rows.bytes)
    metrics("engineTime").set((rows.seconds * 1000).toLong)
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(sparkContext, execution, metrics.values.toSeq)
    rows
  }

  def unpacked(rows: EngineRows): Array[InternalRow] =
    EngineScanExec.made(rows.batches.iterator, rows, columns, values, 0).map(_.copy()).toArray
      .take(limit.getOrElse(Long.MaxValue).min(Int.MaxValue).toInt)

  /** The batches are broadcast, and not a part of their tasks: a task's size is bounded. */
  def rdd(rows: EngineRows): RDD[InternalRow] = {
    val (columns, values, limit) = (this.columns, this.values, this.limit)
    val shape = rows.copy(batches = Vector.empty)
    val all = sparkContext.broadcast(rows.batches)
    val most = if (limit.isDefined) 1 else sparkContext.defaultParallelism
    val partitions = math.max(1, math.min(most, rows.batches.size))
    sparkContext.parallelize(rows.batches.indices, partitions).mapPartitionsWithIndex { (index, numbers) =>
      val in = EngineScanExec.made(numbers.map(all.value(_)), shape, columns, values, index)
      limit.fold(in)(most => in.take(most.min(Int.MaxValue).toInt))
    }
  }

  override protected def doExecute(): RDD[InternalRow] =
    rdd(fetch().fold(refusal => throw new EngineFailure(refusal), identity))
}

private object EngineScanExec {

  /** @param rows whose batches these are */
  private def made(
      batches: Iterator[Array[Byte]],
      rows: EngineRows,
      columns: Seq[Attribute],
      values: Seq[NamedExpression],
      partition: Int): Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(values, columns)
    projection.initialize(partition)
    EngineRows.decode(batches, rows.schema).map(projection)
  }
}
