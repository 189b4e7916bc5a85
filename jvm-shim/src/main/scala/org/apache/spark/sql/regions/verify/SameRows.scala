package org.apache.spark.sql.regions.verify

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

/**
 * Whether two results of a query have the same rows: as often each, and, where the query orders them, with the same sort keys at the same
 * places. To the bit, but for floating-point columns of a query that aggregates such numbers, whose last digits depend on the order
 * of the input: those may differ by 1e-12 of their values.
 */
private[verify] object SameRows {
  private val tolerance = 1e-12

  /** What differs, without the rows themselves; None where nothing does. */
  def apply(
      analyzed: LogicalPlan,
      optimized: LogicalPlan,
      plain: Array[InternalRow],
      ours: Array[InternalRow]): Option[String] = {
    val types = analyzed.output.map(_.dataType)
    val floats = if (aggregatesFloats(analyzed)) types.indices.filter(i => floating(types(i))) else Nil
    val (left, right) = (Rows(types, floats, plain), Rows(types, floats, ours))
    if (plain.length != ours.length) Some(s"${ours.length} rows, ${plain.length} of plain Spark")
    else {
      val others = right.counts(left)
      if (others > 0) Some(s"$others of ${ours.length} rows are others than plain Spark's")
      else keys(optimized).filterNot(floats.contains).find(i => left.column(i) != right.column(i))
        .map(i => s"rows are not in plain Spark's order of column ${i + 1}")
    }
  }

  private def floating(dataType: DataType): Boolean = dataType == DoubleType || dataType == FloatType

  private def aggregatesFloats(plan: LogicalPlan): Boolean = plan.exists(
    _.expressions.exists(
      _.exists {
        case function: AggregateFunction => (function +: function.children).exists(e => floating(e.dataType))
        case _ => false
      }))

  /** Columns that a query is sorted by as a whole, as far as they are in its result. */
  private def keys(plan: LogicalPlan): Seq[Int] = order(plan).map(_.child)
    .map { case key: Attribute => plan.output.indexWhere(_.exprId == key.exprId); case _ => -1 }.takeWhile(_ >= 0)

  private def order(plan: LogicalPlan): Seq[SortOrder] = plan match {
    case sort: Sort if sort.global => sort.order
    case _: Project | _: GlobalLimit | _: LocalLimit => order(plan.children.head)
    case _ => Nil
  }

  /** @param floats columns that are compared as numbers */
  private final case class Rows(types: Seq[DataType], floats: Seq[Int], given: Array[InternalRow]) {
    private val rows: Array[UnsafeRow] = {
      val unsafe = UnsafeProjection.create(types.toArray)
      given.map(row => unsafe(row).copy())
    }

    /** By what has to be equal to the bit: the floating-point numbers of each row. */
    private lazy val groups: Map[UnsafeRow, Seq[Seq[Double]]] = rows.toSeq.map { row =>
      val rest = row.copy()
      floats.foreach(rest.setNullAt)
      rest -> floats.map(i => number(row, i))
    }.groupMap(_._1)(_._2)

    private def number(row: UnsafeRow, i: Int): Double =
      if (row.isNullAt(i)) Double.NegativeInfinity
      else if (types(i) == DoubleType) row.getDouble(i)
      else row.getFloat(i)

    /** How many rows are not those of `other`. */
    def counts(other: Rows): Int = groups.map { case (key, mine) =>
      val theirs = other.groups.getOrElse(key, Nil)
      val near = sorted(mine).zip(sorted(theirs)).count { case (a, b) =>
        a.zip(b).forall { case (x, y) => close(x, y) }
      }
      mine.size - near
    }.sum

    private def sorted(numbers: Seq[Seq[Double]]): Seq[Seq[Double]] =
      numbers.sorted(Ordering.Implicits.seqOrdering[Seq, Double](Ordering.Double.TotalOrdering))

    private def close(x: Double, y: Double): Boolean =
      java.lang.Double.compare(x, y) == 0 || math.abs(x - y) <= tolerance * math.max(math.abs(x), math.abs(y))

    def column(i: Int): Seq[Any] = rows.toSeq.map(_.get(i, types(i))).map {
      case bytes: Array[Byte] => bytes.toSeq
      case value => value
    }
  }
}
