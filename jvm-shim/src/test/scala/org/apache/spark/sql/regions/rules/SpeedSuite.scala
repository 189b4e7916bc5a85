package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

class SpeedSuite extends SignerSuite {

  /** Milliseconds of processor time, which other processes on the machine do not stretch. */
  private def median(plan: LogicalPlan): Double = {
    val threads = java.lang.management.ManagementFactory.getThreadMXBean
    def once(): Double = {
      val start = threads.getCurrentThreadCpuTime
      Signer.sign(plan, spark, CommandDigests, floatAggregates = false).expressions
      (threads.getCurrentThreadCpuTime - start) / 1e6
    }
    (1 to 100).foreach(_ => once())
    (1 to 41).map(_ => once()).sorted.apply(20)
  }

  test("a union of many branches is signed whole") {
    val branch = "select c_name, c_nation, sum(o_total) s, count(*) n from orders join customers on o_cust = c_id " +
      "join items on i_order = o_id and i_qty > %d where o_status in ('s1', 's2') and o_id > 4 group by c_name, c_nation having sum(o_total) > 3"
    val plan = planned(sql((1 to 18).map(i => branch.format(i)).mkString(" union all ")))
    val nodes = Signer.sign(plan, spark, CommandDigests, floatAggregates = false).nodes
    assert(nodes.size >= 200, nodes.size)
    assert(nodes.forall(_.signature.isRight))
    println(f"signer: ${nodes.size} operators in ${median(plan)}%.2f ms")
  }

  test("time grows linearly with the size of the plan") {
    def chain(n: Int) = planned((1 to n).foldLeft(sql("select * from orders"))((df, i) =>
        df.groupBy("o_id", "o_status").count().drop("count").filter(s"o_id > $i")))
    val (small, large) = (median(chain(20)), median(chain(80)))
    println(f"signer: chains of 20 and 80 groupings in $small%.2f and $large%.2f ms")
    assert(large < 16 * small + 5, s"$small ms and $large ms")
  }
}
