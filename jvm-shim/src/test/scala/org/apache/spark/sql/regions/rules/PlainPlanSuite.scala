package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LogicalPlan, Sort}
import org.apache.spark.sql.regions.exec.Layout

/** What is planned and optimized once, and found again. */
class PlainPlanSuite extends SignerSuite {
  private val joined = "select c_segment, o_status, o_total from orders join customers on o_cust = c_id"
  private val totals = s"select c_segment, o_status, sum(o_total) as t from ($joined) group by c_segment, o_status"

  private def operator(plan: LogicalPlan): Boolean = plan match {
    case _: Join | _: Aggregate | _: Sort => true
    case _ => false
  }

  test("a node is found in the plan of the query, with the layout that it has when it is planned by itself") {
    Seq(s"$totals order by c_segment", s"select * from ($totals) a join ($totals) b using (c_segment)").foreach {
      text =>
        val signed = sign(sql(text))
        val whole = new PlainPlan(spark, signed)
        val nodes = signed.nodes.filter(node => operator(node.plan))
        val found = nodes.filter(whole(_).isDefined)
        // What Spark computes once is found at its first place.
        assertEquals(found.map(_.plan.canonicalized).toSet, nodes.map(_.plan.canonicalized).toSet)
        found.foreach { node =>
          val alone = RowOrder.plain(spark, node.plan)
          val layout = Layout.of(whole(node).get, whole.physical)
          assert(layout.isDefined, node.plan)
          assertEquals(layout, Layout.of(alone, whole.physical), node.plan.toString)
          assertEquals(whole(node).get.output.map(_.name), alone.output.map(_.name))
        }
    }
  }

  test("a node that has no operator of its own is not found") {
    val signed = sign(sql(s"$totals order by t limit 3"))
    val sort = signed.nodes.find(_.plan.isInstanceOf[Sort]).get
    assertEquals(new PlainPlan(spark, signed)(sort), None)
  }

  test("a DataFrame is optimized again when settings change, or what is cached of it") {
    val frame = sql(totals)
    val analyzed = frame.queryExecution.analyzed
    val known = KnownFrame.of(spark, analyzed)
    assert(KnownFrame.of(spark, analyzed) eq known)
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try assert(KnownFrame.of(spark, analyzed) ne known)
    finally spark.conf.unset("spark.sql.shuffle.partitions")
    val plain = KnownFrame.of(spark, analyzed)
    val below = sql(joined)
    below.cache()
    val last =
      try {
        val cached = KnownFrame.of(spark, analyzed)
        assert(cached ne plain)
        assert(KnownFrame.of(spark, analyzed) eq cached)
        // Its size is known now, by which Spark plans what is above.
        below.count()
        assert(KnownFrame.of(spark, analyzed) ne cached)
        val held = KnownFrame.of(spark, analyzed)
        below.unpersist()
        below.cache()
        assert(KnownFrame.of(spark, analyzed) ne held)
        KnownFrame.of(spark, analyzed)
      } finally below.unpersist()
    assert(KnownFrame.of(spark, analyzed) ne last)
  }
}
