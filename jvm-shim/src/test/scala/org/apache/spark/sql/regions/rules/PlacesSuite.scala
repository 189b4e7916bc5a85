package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, Window}

class PlacesSuite extends SignerSuite {
  private val repeated = "REPEATED_FLOAT_AGGREGATE"
  private val totals = "with totals as (select o_cust, sum(o_weight) s from orders group by o_cust) "

  private def signed(df: DataFrame): SignedQuery = sign(df, floatAggregates = true)

  private def refused(query: SignedQuery): Set[String] =
    query.nodes.filter(_.onePlaceOfSeveral).map(_.plan.nodeName).toSet

  test("one place: nothing is refused") {
    val query = signed(sql(totals + "select o_cust, s from totals where s > 3"))
    assertEquals(refused(query), Set.empty[String])
    assert(query.places.together(Seq(0)))
    assertEquals(query.places.held(0).size, 1)
  }

  test("exact aggregates may stand anywhere") {
    val exact = "with totals as (select o_cust, sum(o_total) s from orders group by o_cust) "
    val query = signed(sql(exact + "select a.o_cust from totals a join totals b on a.s = b.s"))
    assertEquals(query.places.held(0), Set.empty[String])
    assertEquals(refused(query), Set.empty[String])
  }

  test("joined with itself: each place is refused, and not what holds both") {
    val query =
      signed(sql(totals + "select a.o_cust, b.s from totals a join totals b on a.s = b.s and a.o_cust < b.o_cust"))
    val aggregates = query.nodes.filter(_.plan.isInstanceOf[Aggregate])
    assertEquals(aggregates.size, 2)
    assert(aggregates.forall(_.onePlaceOfSeveral), query.nodes.mkString("\n"))
    val join = query.nodes.find(_.plan.isInstanceOf[Join]).getOrElse(fail("no join"))
    assert(!join.onePlaceOfSeveral && join.signature.isRight)
    assert(query.nodes.drop(join.id + 1).forall(_.onePlaceOfSeveral), "what is below a place is left as it is, too")
    assert(query.places.together(aggregates.map(_.id)))
    assert(!query.places.together(aggregates.take(1).map(_.id)))
  }

  test("another filter on keys makes no other aggregate, another filter on rows does") {
    def places(left: String, right: String): Set[String] =
      refused(
        signed(
          sql(
            s"select a.s from (select o_weight k, sum(o_weight) s from orders where $left group by 1) a join " +
              s"(select o_weight k, sum(o_weight) s from orders where $right group by 1) b on a.s = b.s")))
    assert(places("true", "o_weight > 3").contains("Aggregate"))
    assertEquals(places("true", "o_id > 3"), Set.empty[String])
  }

  test("windows") {
    val query = signed(
      sql(
        "with w as (select o_id, sum(o_weight) over (partition by o_cust) s from orders) " +
          "select a.o_id from w a join w b on a.s = b.s and a.o_id < b.o_id"))
    val windows = query.nodes.filter(_.plan.isInstanceOf[Window])
    assertEquals(windows.size, 2)
    assert(windows.forall(_.onePlaceOfSeveral))
  }

  test("a scalar subquery is a place") {
    val query = signed(sql(totals + "select o_cust from totals where s = (select max(s) from totals)"))
    assert(refused(query).contains("Aggregate"))
    assert(!query.nodes.head.onePlaceOfSeveral)
    val once = signed(sql("select o_id from orders where o_weight > (select avg(o_weight) from orders)"))
    assertEquals(refused(once), Set.empty[String])
  }

  test("of a subquery that is signed alone every place is refused, also where the rest of it has no normal form") {
    def part(text: String): SignedQuery =
      Signer.sign(planned(sql(text)), spark, CommandDigests, floatAggregates = true, part = true)
    val alone = part(totals + "select max(s) from totals")
    assert(alone.nodes.head.onePlaceOfSeveral)
    assert(alone.nodes.filter(_.children.isEmpty).forall(!_.onePlaceOfSeveral))
    val limited = part(totals + "select s from totals limit 1")
    assert(limited.nodes.head.signature.isLeft)
    SubquerySignature.leave(limited.nodes.head.plan, limited)
    assertEquals(limited.nodes.head.plan.getTagValue(Signing.roundingAlone), Some(limited.places.held(0)))
    assertEquals(limited.places.held(0).size, 1)
  }

  test("off: nothing rounds, because it is refused") {
    val query = sign(sql(totals + "select a.s from totals a join totals b on a.s = b.s"))
    assertEquals(query.places.held(0), Set.empty[String])
    assert(query.nodes.exists(_.signature.left.exists(_.code == "FLOAT_AGGREGATE")))
  }
}
