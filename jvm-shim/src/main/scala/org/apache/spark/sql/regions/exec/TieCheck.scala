package org.apache.spark.sql.regions.exec

import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.storage.StorageLevel

/**
 * Rows that a sort puts in their order, whatever the order below it is, as long as no two of them are equal in its keys: then they
 * are plain Spark's. That is found out while it runs; where two are equal, `original` runs instead.
 *
 * @param child the sorted rows; of a limit one more than it takes
 * @param original yields the same columns as plain Spark
 * @param groups only rows that are equal in these are compared
 * @param keys of the sort
 * @param found holds the rows while the query runs
 * @param onTies told where two rows are equal
 */
private[regions] final case class TieCheck(
    child: LogicalPlan,
    @transient original: LogicalPlan,
    groups: Seq[Attribute],
    keys: Seq[SortOrder],
    @transient found: Ties,
    @transient onTies: Refusal => Unit)
    extends UnaryNode {
  override def output: Seq[Attribute] = child.output

  // What stands in for the rows has all columns.
  @transient override lazy val references: AttributeSet = AttributeSet(child.output)
  override def maxRows: Option[Long] = child.maxRows

  // The plan above is to be plain Spark's, which depends on the sizes that Spark expects.
  override def stats: Statistics = if (original == null) child.stats else original.stats
  override protected def stringArgs: Iterator[Any] = Iterator(groups, keys)
  override protected def withNewChildInternal(newChild: LogicalPlan): TieCheck = copy(child = newChild)
}

/** Runs `child` to its end, keeps its rows and compares neighbours, before the first row is handed on. */
private[regions] final case class TieCheckExec(
    child: SparkPlan,
    groups: Seq[Attribute],
    keys: Seq[SortOrder],
    @transient node: TieCheck)
    extends UnaryExecNode with Logging {
  override def output: Seq[Attribute] = child.output

  // Without groups all rows are in one partition, also those of the original plan; else it may have partitions of its own.
  override def outputPartitioning: Partitioning =
    if (groups.isEmpty) SinglePartition else UnknownPartitioning(child.outputPartitioning.numPartitions)
  override def outputOrdering: Seq[SortOrder] = if (groups.isEmpty) keys else Nil

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(if (groups.isEmpty) AllTuples else ClusteredDistribution(groups))
  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(sorted)

  // A limit is small. What a window has does not take the place of what the user keeps in memory.
  private def level: StorageLevel = if (groups.isEmpty) StorageLevel.MEMORY_AND_DISK else StorageLevel.DISK_ONLY
  private def sorted: Seq[SortOrder] = groups.map(SortOrder(_, Ascending)) ++ keys
  override protected def stringArgs: Iterator[Any] = Iterator(groups, keys)
  override def doCanonicalize(): SparkPlan = TieCheckExec(
    child.canonicalized, groups.map(QueryPlan.normalizeExpressions(_, child.output)),
    keys.map(QueryPlan.normalizeExpressions(_, child.output)), null)

  @transient private var rows: RecheckedRDD[InternalRow] = _
  @transient private var plain: Option[SparkPlan] = None

  override protected def doExecute(): RDD[InternalRow] = {
    rows = new RecheckedRDD(sparkContext, () => current())
    rows
  }

  // Another action on the same plan: what it reads may have changed.
  override def resetMetrics(): Unit = {
    super.resetMetrics()
    if (rows != null && plain.isEmpty) rows.recheck()
  }

  private def current(): RDD[InternalRow] = synchronized {
    plain.fold(checked().getOrElse(replaced().execute()))(_.execute())
  }

  /** The rows, once it is known that no two of them are ties. */
  private def checked(): Option[RDD[InternalRow]] = {
    val (sorted, columns) = (this.sorted, output)
    val packed = child.execute().mapPartitions(in => new Neighbours(sorted, columns).packed(in))
      .setName("spark_regions tie check").persist(level)
    val tied = sparkContext.runJob(packed, (batches: Iterator[SortedRows]) => batches.exists(_.tied)).contains(true)
    if (tied) {
      packed.unpersist()
      None
    } else {
      node.found.hold(sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY), packed)
      val fields = output.size
      Some(packed.mapPartitions(_.flatMap(batch => PackedRows.iterator(batch.rows, fields))))
    }
  }

  private def replaced(): SparkPlan = {
    val refusal = Refusal("TIED", keys.map(_.sql).mkString(", "))
    logWarning(
      s"Rows are equal in ${refusal.detail}: which of them come first is plain Spark's to say; computing them again")
    node.onTies(refusal)
    session.withActive {
      val found = MaterializedRead.adaptive(session, node.original)
      plain = Some(found)
      found
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): TieCheckExec = copy(child = newChild)
}

/** @param tied two of the partition's rows are equal in the keys; then they are not here */
private[exec] final case class SortedRows(rows: Array[Byte], tied: Boolean)

/** Compares each row with the one before it. */
private[exec] final class Neighbours(sorted: Seq[SortOrder], columns: Seq[Attribute]) {
  private val keys = UnsafeProjection.create(sorted.map(_.child), columns)
  private val ordering = RowOrdering.create(
    sorted.zipWithIndex.map { case (order, i) =>
      order.copy(child = BoundReference(i, order.child.dataType, order.child.nullable), sameOrderExpressions = Nil)
    },
    Nil)
  private val whole = UnsafeProjection.create(columns, columns)

  def packed(in: Iterator[InternalRow]): Iterator[SortedRows] = new Iterator[SortedRows] {
    private var before: UnsafeRow = _
    private var tied = false

    override def hasNext: Boolean = !tied && in.hasNext

    override def next(): SortedRows = {
      val rows = new PackedRows(Neighbours.limit)
      while (hasNext && rows.size < Neighbours.batch) {
        val row = in.next()
        val key = keys(row)
        tied = before != null && ordering.compare(before, key) == 0
        before = key.copy()
        rows.add(whole(row))
      }
      SortedRows(if (tied) Array.emptyByteArray else rows.toBytes, tied)
    }
  }
}

private object Neighbours {
  val batch: Int = 1 << 20
  val limit: Int = Int.MaxValue - 64
}

/** What was found of ties: sorts that are known to have some, and rows that are held while their query runs. */
private[regions] final class Ties {
  private val known = ConcurrentHashMap.newKeySet[String]()
  private val held = new ConcurrentHashMap[Long, ConcurrentLinkedQueue[RDD[_]]]()

  /** Of each sort its digest. */
  def add(digests: Iterable[String]): Unit = known.addAll(digests.toSeq.asJava): Unit

  def contains(digest: String): Boolean = known.contains(digest)

  private[exec] def hold(execution: String, rows: RDD[_]): Unit =
    Try(execution.toLong).foreach(held.computeIfAbsent(_, _ => new ConcurrentLinkedQueue).add(rows))

  /** The execution is over. Without rows to read, they would be computed again. */
  def release(execution: Long): Unit =
    Option(held.remove(execution)).foreach(_.forEach(rows => rows.unpersist(): Unit))
}
