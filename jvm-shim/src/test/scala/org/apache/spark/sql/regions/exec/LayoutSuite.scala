package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions.{col, sum}

/** What two plans have in common of the places of their rows, and what a read may claim of them. */
class LayoutSuite extends ExecSuite {
  private def physical(df: DataFrame): SparkPlan =
    MaterializedRead.physical(spark, df.asInstanceOf[Dataset[Row]].queryExecution.optimizedPlan)

  private def layout(df: DataFrame): Layout = {
    val plan = physical(df)
    Layout.of(plan, plan).getOrElse(throw new AssertionError(s"no layout: $plan"))
  }

  private def facts(slices: Int = 3): DataFrame =
    spark.range(0, 300, 1, slices).select(col("id"), (col("id") % 7).as("k"), (col("id") % 5).as("v"))

  private def grouped(rows: DataFrame): DataFrame = rows.groupBy("k").agg(sum("v").as("s"))

  private def stored(df: DataFrame, partitions: Int, single: Boolean, boundaries: (Int, Int)*): StoredLayout =
    StoredLayout(layout(df), partitions, planned = true, single, boundaries)

  private def arranged(df: DataFrame, stored: StoredLayout): Option[Arranged] =
    Layout.arranged(layout(df), physical(df), stored)

  test("a plan is told alike each time it is planned") {
    Seq(facts(), grouped(facts()), facts().join(grouped(facts()), "k")).foreach { df =>
      assertEquals(layout(df), layout(df.select("*")), df.queryExecution.toString)
    }
  }

  test("columns and filters move no row, apart from those that an aggregate does not meet") {
    val shape = layout(facts()).shape
    assert(shape.isDefined)
    assertEquals(layout(facts().select("v").where("v > 2")).shape, shape)
    assertNotEquals(layout(facts(4)).shape, shape)
    assertEquals(layout(grouped(facts()).where("s > 3")).shape, layout(grouped(facts())).shape)
    assertNotEquals(layout(grouped(facts().where("v > 2"))).shape, layout(grouped(facts())).shape)
    withConf("spark.sql.shuffle.partitions" -> "3") {
      val three = layout(grouped(facts())).shape
      withConf("spark.sql.shuffle.partitions" -> "5")(assertNotEquals(layout(grouped(facts())).shape, three))
    }
  }

  test("what is left of rows that were coalesced to several partitions is not known") {
    val whole = grouped(facts())
    val filtered = whole.where("s > 3")
    assert(arranged(whole, stored(whole, 2, single = false, (0, 1), (1, 4))).isDefined)
    assert(arranged(filtered, stored(whole, 2, single = false, (0, 1), (1, 4))).isEmpty)
    assert(arranged(filtered, stored(whole, 1, single = true, (0, 4))).isDefined)
  }

  test("claims are plain Spark's partitioning, coalesced as it was") {
    withConf("spark.sql.shuffle.partitions" -> "4") {
      val df = grouped(facts())
      val plain = physical(df).outputPartitioning
      assertEquals(arranged(df, stored(df, 4, single = false)).map(_.partitioning), Some(plain))
      assertEquals(arranged(df, stored(df, 1, single = true)).map(_.partitioning), Some(SinglePartition))
      arranged(df, stored(df, 2, single = false, (0, 1), (1, 4))).map(_.partitioning) match {
        case Some(CoalescedHashPartitioning(hash, boundaries)) =>
          assertEquals(hash: Partitioning, plain)
          assertEquals(boundaries, Seq(CoalescedBoundary(0, 1), CoalescedBoundary(1, 4)))
        case other => fail(s"$other")
      }
      // Neither all of them nor known to be some of them together.
      assertEquals(arranged(df, stored(df, 2, single = false)), None)
    }
  }

  test("where the sources have to be read after all, the claims hold as well") {
    withConf("spark.sql.shuffle.partitions" -> "4") {
      val plan = physical(facts())
      val k = plan.output.find(_.name == "k").get
      val hash = HashPartitioning(Seq(k), 4)
      val order = Seq(SortOrder(k, Ascending))
      val boundaries = Seq(CoalescedBoundary(0, 1), CoalescedBoundary(1, 4))
      val claims = Seq(hash, SinglePartition, CoalescedHashPartitioning(hash, boundaries), UnknownPartitioning(3))
      claims.foreach { claim =>
        val parts = Arranged(claim, order).of(plan).execute().map(_.getLong(1)).glom().collect().map(_.toSeq)
        assertEquals(parts.length, claim.numPartitions)
        assertEquals(parts.map(_.size).sum, 300)
        parts.foreach(part => assertEquals(part, part.sorted))
        if (!claim.isInstanceOf[UnknownPartitioning]) assertEquals(parts.map(_.distinct.size).sum, 7)
      }
    }
  }
}
