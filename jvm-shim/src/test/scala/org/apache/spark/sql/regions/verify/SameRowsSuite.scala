package org.apache.spark.sql.regions.verify

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.dsl.plans._
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.unsafe.types.UTF8String

class SameRowsSuite extends munit.FunSuite {
  private val table = LocalRelation($"k".int, $"name".string, $"x".double)

  private def rows(values: (Int, String, Double)*): Array[InternalRow] =
    values.map { case (k, name, x) => InternalRow(k, UTF8String.fromString(name), x) }.toArray

  private def differs(plan: LogicalPlan, plain: Array[InternalRow], ours: Array[InternalRow]): Option[String] =
    SameRows(plan, plan, plain, ours)

  test("rows count as often as they come, in any order where none is asked for") {
    val plain = rows((1, "a", 1.5), (2, "b", 2.5), (1, "a", 1.5))
    assertEquals(differs(table, plain, plain.reverse), None)
    assertEquals(differs(table, plain, rows((1, "a", 1.5), (2, "b", 2.5), (2, "b", 2.5))),
      Some("1 of 3 rows are others than plain Spark's"))
    assertEquals(differs(table, plain, plain.take(2)), Some("2 rows, 3 of plain Spark"))
    assertEquals(differs(table, rows(), rows()), None)
  }

  test("where the query orders rows, sort keys have their places; ties may change theirs") {
    val byKey = table.orderBy(table.output.head.asc)
    val plain = rows((1, "a", 1.5), (2, "b", 2.5), (2, "c", 3.5))
    assertEquals(differs(byKey, plain, rows((1, "a", 1.5), (2, "c", 3.5), (2, "b", 2.5))), None)
    assertEquals(differs(byKey, plain, rows((2, "b", 2.5), (1, "a", 1.5), (2, "c", 3.5))),
      Some("rows are not in plain Spark's order of column 1"))
    assertEquals(differs(byKey.limit(3), plain, plain.reverse), Some("rows are not in plain Spark's order of column 1"))
  }

  test("floating-point numbers are equal to the bit, but where such numbers are aggregated") {
    val (one, near, far) = (rows((1, "a", 1.0)), rows((1, "a", 1.0 + 1e-15)), rows((1, "a", 1.0 + 1e-9)))
    assertEquals(differs(table, one, near), Some("1 of 1 rows are others than plain Spark's"))
    val sum = Sum(table.output(2)).toAggregateExpression()
    val grouped = table.groupBy(table.output(0), table.output(1))(table.output(0), table.output(1), sum.as("x"))
    assertEquals(differs(grouped, one, near), None)
    assertEquals(differs(grouped, one, far), Some("1 of 1 rows are others than plain Spark's"))
    assertEquals(differs(grouped, rows((1, "a", Double.NaN)), rows((1, "a", Double.NaN))), None)
    assertEquals(differs(grouped, one, rows((2, "a", 1.0))), Some("1 of 1 rows are others than plain Spark's"))
  }
}
