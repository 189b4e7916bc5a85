package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.functions

class DeterminedOrderSuite extends SignerSuite {

  private val seeing = Seq(
    "select first(o_id) from orders",
    "select any_value(o_id) from orders",
    "select o_status, collect_list(o_id) from orders group by o_status",
    "select collect_set(o_id) from orders",
    "select max_by(o_id, o_date) from orders",
    "select mode(o_id) from orders",
    "select listagg(o_status) from orders",
    "select approx_percentile(o_id, 0.5) from orders",
    "select max(o_status collate UTF8_LCASE) from orders",
    "select row_number() over (partition by o_status order by o_date) from orders",
    "select lag(o_id) over (partition by o_status order by o_date) from orders",
    "select ntile(3) over (partition by o_status order by o_date) from orders",
    "select sum(o_total) over (order by o_date rows between 1 preceding and current row) from orders",
    "select o_id from orders tablesample (10 percent) repeatable (7)"
  )

  seeing.foreach { query =>
    test(s"known by the order of its rows: $query") {
      assertEquals(root(sql(query)), root(sql(query)))
      val sorted = query.replace("from orders", "from (select * from orders sort by o_total)")
      assertNotEquals(
        root(sql(query)).lineage + root(sql(query)).columns, root(sql(sorted)).lineage + root(sql(sorted)).columns)
    }
  }

  test("other seeds and shares are other samples") {
    val orders = sql("select o_id from orders")
    val one = root(orders.sample(0.5, 7))
    assertEquals(one, root(orders.sample(0.5, 7)))
    assertNotEquals(one.lineage, root(orders.sample(0.5, 8)).lineage)
    assertNotEquals(one.lineage, root(orders.sample(0.4, 7)).lineage)
    assertNotEquals(one.lineage, root(orders.sample(withReplacement = true, 0.5, 7)).lineage)
    assertNotEquals(one.lineage, root(orders.where("o_id > 3").sample(0.5, 7)).lineage)
    // What is left out of a sample is not what a sample leaves out.
    assertNotEquals(one.lineage, root(orders.sample(0.5, 7).where("o_id > 3")).lineage)
  }

  test("how a query goes on does not matter to what scans files, and does to what is shuffled") {
    def samples(rows: String, above: String) = {
      val signed = sign(
        sql(s"select $above from (select * from ($rows) tablesample (30 percent) repeatable (7)) group by o_status"))
      signed.nodes.find(_.plan.nodeName == "Sample").getOrElse(fail("no sample")).signature.map(_.core)
    }
    val scanned = "select o_status, o_total, o_id from orders"
    assertEquals(samples(scanned, "sum(o_total), max(o_id)"), samples(scanned, "max(o_total), count(o_id)"))
    val shuffled = "select o_status, o_total, count(*) as o_id from orders group by o_status, o_total"
    assertEquals(samples(shuffled, "sum(o_total), max(o_id)"), samples(shuffled, "sum(o_total), max(o_id)"))
    assertNotEquals(samples(shuffled, "sum(o_total), max(o_id)"), samples(shuffled, "max(o_total), count(o_id)"))
  }

  test("an order that a function of the user's decides is not told by its name") {
    val key = functions.udf((id: Long) => -id)
    val sorted = sql("select o_id, o_status from orders").sortWithinPartitions(key(functions.col("o_id")))
    assertEquals(codes(sorted.groupBy("o_status").agg(functions.first("o_id"))), Set("ORDER_DEPENDENT"))
    assertEquals(codes(sorted.sample(0.5, 7)), Set("SAMPLE"))
  }

  test("a pivot of what is grouped by its columns does not depend on order") {
    val pivot = sql("select o_status, o_cust, o_id from orders").groupBy("o_status").pivot("o_cust", Seq(1, 2)).count()
    val sorted = sql("select o_status, o_cust, o_id from orders sort by o_id")
    assertEquals(root(pivot), root(sorted.groupBy("o_status").pivot("o_cust", Seq(1, 2)).count()))
  }
}
