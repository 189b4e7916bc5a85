package org.apache.spark.sql.regions.skew

import java.util.HashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._

/**
 * Rows, each with the one row of `values` that has its key: an inner join that knows that every key is there, once.
 *
 * Values are looked up in a table of a bounded size, so that the rows need not be sorted. Where a task has more of them,
 * rows and values are sorted, which can spill. Keys are compared as Spark's aggregates do, null keys included.
 *
 * @param tableBytes up to which a task keeps its values in a table
 */
private[skew] final case class KeyedValuesExec(
    left: SparkPlan,
    right: SparkPlan,
    rowKeys: Seq[Expression],
    valueKeys: Seq[Expression],
    tableBytes: Long = KeyedValues.tableBytes) extends BinaryExecNode {
  override def output: Seq[Attribute] = left.output ++ right.output
  override def nodeName: String = "KeyedValues"

  override protected def doExecute(): RDD[InternalRow] = {
    val keyed = new KeyedValues(
      SplitJoin.sorted(left, rowKeys),
      SplitJoin.sorted(right, valueKeys),
      rowKeys,
      valueKeys,
      tableBytes)
    left.execute().zipPartitions(right.execute())(keyed.join)
  }

  override def stringArgs: Iterator[Any] = Iterator(rowKeys.mkString("[", ", ", "]"))

  override protected def withNewChildrenInternal(newLeft: SparkPlan, newRight: SparkPlan): KeyedValuesExec =
    copy(left = newLeft, right = newRight)
}

/** The rows of one task. */
private final class KeyedValues(
    rows: SortExec,
    values: SortExec,
    rowKeys: Seq[Expression],
    valueKeys: Seq[Expression],
    tableBytes: Long) extends Serializable {

  private def rowKey = UnsafeProjection.create(rowKeys, rows.child.output)
  private def valueKey = UnsafeProjection.create(valueKeys, values.child.output)

  def join(mine: Iterator[InternalRow], found: Iterator[InternalRow]): Iterator[InternalRow] = {
    val unsafe = UnsafeProjection.create(values.child.output, values.child.output)
    val key = valueKey
    val table = new HashMap[UnsafeRow, UnsafeRow]
    var bytes = 0L
    while (found.hasNext && bytes <= tableBytes) {
      val value = unsafe(found.next()).copy()
      val itsKey = key(value).copy()
      bytes += value.getSizeInBytes + itsKey.getSizeInBytes + KeyedValues.entryBytes
      require(table.put(itsKey, value) == null, "a key with two values")
    }
    if (found.hasNext) sorted(mine, table.values.iterator.asScala ++ found.map(unsafe(_))) else looked(mine, table)
  }

  private def looked(mine: Iterator[InternalRow], table: HashMap[UnsafeRow, UnsafeRow]): Iterator[InternalRow] = {
    val key = rowKey
    val joined = new JoinedRow
    mine.map { row =>
      val value = table.get(key(row))
      if (value == null) throw new IllegalStateException(KeyedValues.missing)
      joined(row, value)
    }
  }

  private def sorted(mine: Iterator[InternalRow], all: Iterator[UnsafeRow]): Iterator[InternalRow] = {
    val unsafe = UnsafeProjection.create(rows.child.output, rows.child.output)
    val (theirs, key, itsKey) = (values.createSorter().sort(all), rowKey, valueKey)
    val ordered = rows.createSorter().sort(mine.map(unsafe(_)))
    val order = RowOrdering.createNaturalAscendingOrdering(rowKeys.map(_.dataType))
    val joined = new JoinedRow
    var value: UnsafeRow = null
    var current: UnsafeRow = null
    ordered.map { row =>
      val wanted = key(row)
      while (current == null || order.compare(current, wanted) < 0) {
        if (!theirs.hasNext) throw new IllegalStateException(KeyedValues.missing)
        value = theirs.next().asInstanceOf[UnsafeRow].copy()
        current = itsKey(value)
      }
      if (order.compare(current, wanted) > 0) throw new IllegalStateException(KeyedValues.missing)
      joined(row, value)
    }
  }
}

private[skew] object KeyedValues {
  val tableBytes: Long = 16L << 20

  /** Of two rows and an entry, beyond their own bytes. */
  private val entryBytes = 200
  private val missing = "a row without the value of its key"
}
