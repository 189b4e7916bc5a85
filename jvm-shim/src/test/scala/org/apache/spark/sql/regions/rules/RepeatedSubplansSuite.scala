package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic
import org.apache.spark.sql.catalyst.expressions.Or
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan}
import org.apache.spark.sql.regions.Refusal

class RepeatedSubplansSuite extends SignerSuite {

  private def repeated(df: DataFrame): (Seq[RepeatedSubplan], Seq[(Int, Refusal)]) = {
    val session = df.sparkSession.asInstanceOf[classic.SparkSession]
    def signed(plan: LogicalPlan): SignedQuery = Signer.sign(plan, session, CommandDigests, floatAggregates = false)
    new RepeatedSubplans(signed(planned(df)), signed)()
  }

  private val joined = "select c_segment, o_status, o_total, o_id, c_nation from orders join customers on o_cust = c_id"
  private val totals =
    s"select c_segment, o_status, sum(o_total) as total, count(o_id) as n from ($joined) group by c_segment, o_status"

  private def ors(plan: LogicalPlan): Int = plan.collect {
    case Filter(condition, _) if condition.exists(_.isInstanceOf[Or]) => 1
  }.sum

  test("places with other filters are one group, whose filter lets pass what passes any") {
    val (found, _) = repeated(
      sql(
        s"select total from ($totals) where o_status = 's1' union all select total from ($totals) where o_status = 's2'"))
    assertEquals(found.map(r => (r.nodes.size, r.merged.exact)), Seq((2, true)))
    assertEquals(found.head.copies, found.head.nodes)
    assertEquals(ors(found.head.merged.plan), 1)
  }

  test("places with equal plans are copies") {
    val (found, _) = repeated(
      sql(
        s"select total from ($totals) where o_status = 's1' union all select total from ($totals) where o_status = 's1'"))
    assertEquals(found.map(_.copies.distinct.size), Seq(1))
  }

  test("the subplan has the columns of all places, and those of their filters, and no others") {
    val (found, _) = repeated(
      sql(
        s"select total from ($totals) where o_status = 's1' union all select n from ($totals) where o_status = 's2'"))
    assertEquals(found.map(_.merged.plan.output.map(_.name).toSet), Seq(Set("total", "n", "o_status")))
  }

  test("a filter on the aggregate in one place only") {
    val (found, _) = repeated(
      sql(
        s"select total from ($totals) where o_status = 's1' and total > 3 " +
          s"union all select total from ($totals) where o_status = 's2'"))
    assertEquals(found.map(r => (r.nodes.size, r.merged.exact)), Seq((2, false)))
  }

  test("filters on what is not grouped by make other aggregates, of one join") {
    def of(status: String): String =
      s"select c_nation, sum(o_total) from ($joined where o_status = '$status') group by c_nation"
    val (found, _) = repeated(sql(s"${of("s1")} union all ${of("s2")}"))
    assertEquals(found.size, 1)
    assert(found.head.merged.plan.collectFirst { case a: Aggregate => a }.isEmpty)
  }

  test("a place without rows is left to the optimizer") {
    val (found, _) = repeated(
      sql(
        s"select total from ($totals) where o_status = 's1' union all select total from ($totals) where 1 = 2"))
    assertEquals(found, Nil)
  }

  test("an expression that may fail keeps places apart") {
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try {
      val (_, refused) = repeated(
        sql(
          s"select total from ($totals) where 1 / (c_segment - 1) > 0 union all select n from ($totals) where o_status = 's2'"))
      assert(refused.map(_._2.code).contains("MAY_FAIL"), refused)
    } finally spark.conf.unset("spark.sql.ansi.enabled")
  }

  test("scans are read anew") {
    val (found, _) = repeated(
      sql(
        "select o_id from orders where o_status = 's1' union all select o_cust from orders where o_status = 's2'"))
    assertEquals(found, Nil)
  }
}
