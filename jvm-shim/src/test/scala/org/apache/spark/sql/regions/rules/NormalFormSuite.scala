package org.apache.spark.sql.regions.rules

class NormalFormSuite extends SignerSuite {

  def same(name: String)(a: String, b: String): Unit = test(s"equal rows: $name") {
    val (x, y) = (root(sql(a)), root(sql(b)))
    assertEquals(x.core, y.core)
    assertEquals(x.conjuncts, y.conjuncts)
    assertEquals(x.lineage, y.lineage)
    assertEquals(x.columns.toSet, y.columns.toSet)
  }

  def different(name: String)(a: String, b: String): Unit = test(s"different: $name") {
    val (x, y) = (root(sql(a)), root(sql(b)))
    assert(x.lineage != y.lineage || x.columns != y.columns, s"$x")
  }

  same("order of conjuncts")(
    "select o_id from orders where o_id > 5 and o_status = 's1'",
    "select o_id from orders where 's1' = o_status and 5 < o_id")
  same("order of the projection")("select o_id, o_total from orders", "select o_total, o_id from orders")
  same("aliases and names")("select o_id as a from orders x", "select O_ID as b from orders y")
  same("order of joins")(
    "select o_id, c_name, i_qty from orders join customers on o_cust = c_id join items on i_order = o_id",
    "select o_id, c_name, i_qty from items join orders on o_id = i_order join customers on c_id = o_cust"
  )
  same("filter above or below a join")(
    "select * from (select o_id, c_name from orders join customers on o_cust = c_id) where o_id > 7",
    "select o_id, c_name from (select * from orders where o_id > 7) join customers on o_cust = c_id"
  )
  same("subquery against flat text")(
    "select a + 1 from (select o_id + 2 as a from orders) where a > 3",
    "select (o_id + 2) + 1 from orders where o_id + 2 > 3")
  same("commuted sum")("select o_id + o_cust from orders", "select o_cust + o_id from orders")
  same("order of an IN list")(
    "select o_id from orders where o_status in ('s1', 's2')",
    "select o_id from orders where o_status in ('s2', 's1', 's2')")
  same("grouping order and aliases")(
    "select o_status, o_date, sum(o_total) from orders group by o_status, o_date",
    "select d, s, sum(t) as x from (select o_status s, o_date d, o_total t from orders) group by d, s"
  )
  same("a filter on grouping columns, before and after")(
    "select o_status, count(*) from orders where o_status > 's1' group by o_status",
    "select o_status, count(1) from orders group by o_status having o_status > 's1'"
  )
  same("branches of a union")(
    "select o_id as x from orders union all select c_id from customers",
    "select c_id as y from customers union all select o_id from orders")
  same("a filter above or below a union")(
    "select * from (select o_id as x, o_cust y from orders union all select c_id, c_id from customers) where y > 4",
    "select o_id as x, o_cust y from orders where o_cust > 4 union all select c_id, c_id from customers where c_id > 4"
  )
  same("left outer join mirrored")(
    "select c_id, o_id from customers left join orders on o_cust = c_id",
    "select c_id, o_id from orders right join customers on c_id = o_cust")
  same("a filter on the preserved side")(
    "select * from (select c_id, o_id from customers left join orders on o_cust = c_id) where c_id < 20",
    "select c_id, o_id from (select * from customers where c_id < 20) left join orders on o_cust = c_id"
  )
  same("distinct as grouping")("select distinct o_status from orders", "select o_status from orders group by o_status")
  same("a sort above")("select o_id from orders order by o_id", "select o_id from orders")
  same("a window over permuted input")(
    "select o_id, rank() over (partition by o_status order by o_date) from orders",
    "select o_id, rank() over (partition by s order by d) from (select o_status s, o_date d, o_id from orders)"
  )
  same("struct field under another name")("select o_info.a from orders", "select o_info.A from orders")
  same("lambda variables' names")(
    "select transform(o_tags, x -> x + 1) from orders", "select transform(o_tags, y -> y + 1) from orders")
  same("exists")(
    "select o_id from orders o where exists (select 1 from items i where i.i_order = o.o_id and i_qty > 3)",
    "select p.o_id from orders p where exists (select i_part from items j where j.i_qty > 3 and p.o_id = j.i_order)"
  )
  same("columns of a self join")(
    "select a.o_id, b.o_id from orders a join orders b on a.o_cust = b.o_cust where a.o_id > 5",
    "select x.o_id, y.o_id from orders x join orders y on x.o_cust = y.o_cust where x.o_id > 5"
  )

  same("a filter on a computed column, above or below a self join")(
    "select * from (select a.o_id i, b.o_id j, datediff(a.o_date, b.o_date) + a.o_cust d, a.o_total * 2 t from orders a join orders b on a.o_cust = b.o_cust) where t > 9 and i in (1, 2)",
    "select a.i, b.o_id, datediff(a.o_date, b.o_date) + a.o_cust, t from (select o_id i, o_cust, o_date, o_total * 2 t from orders where o_total * 2 > 9 and o_id in (2, 1)) a join orders b on a.o_cust = b.o_cust"
  )

  different("selected columns")("select o_id from orders", "select o_cust from orders")
  different("a constant")("select o_id from orders where o_id > 5", "select o_id from orders where o_id > 6")
  different("a type of a constant")("select cast(1 as int)", "select cast(1 as bigint)")
  different("minus")("select o_id - o_cust from orders", "select o_cust - o_id from orders")
  different("join type")(
    "select c_id, o_id from customers left join orders on o_cust = c_id",
    "select c_id, o_id from customers join orders on o_cust = c_id")
  different("a filter on the optional side before and after the join")(
    "select c_id from customers left join (select * from orders where o_id > 9) on o_cust = c_id",
    "select c_id from customers left join orders on o_cust = c_id"
  )
  different("the two sides of a self join")(
    "select a.o_id from orders a join orders b on a.o_cust = b.o_id where a.o_id > 5",
    "select b.o_id from orders a join orders b on a.o_cust = b.o_id where a.o_id > 5"
  )
  different("a computed column of either side of a self join")(
    "select upper(a.o_status) from orders a join orders b on a.o_cust = b.o_id",
    "select upper(b.o_status) from orders a join orders b on a.o_cust = b.o_id"
  )
  different("the condition of a self join")(
    "select a.o_id from orders a join orders b on a.o_cust = b.o_id",
    "select b.o_id from orders a join orders b on a.o_cust = b.o_id")
  different("union pairs columns")(
    "select o_id x, o_cust y from orders union all select o_cust, o_id from orders",
    "select o_id x, o_cust y from orders union all select o_id, o_cust from orders"
  )
  different("a filter of one branch of a union")(
    "select o_id x from orders where o_id > 4 union all select c_id from customers",
    "select o_id x from orders union all select c_id from customers where c_id > 4"
  )
  different("a filter of all branches of a union, or of one")(
    "select o_id x from orders where o_id > 4 union all select c_id from customers where c_id > 4",
    "select o_id x from orders where o_id > 4 union all select c_id from customers"
  )
  different("distinct aggregate")(
    "select count(o_cust) from orders", "select count(distinct o_cust) from orders")
  different("filtered aggregate")(
    "select count(o_cust) from orders", "select count(o_cust) filter (where o_id > 4) from orders")
  different("filter before or after a global aggregate")(
    "select count(*) from orders", "select count(*) from orders where o_id > 4")
  different("exists and not exists")(
    "select o_id from orders where exists (select 1 from items where i_order = o_id)",
    "select o_id from orders where not exists (select 1 from items where i_order = o_id)"
  )
  different("in and not in")(
    "select o_id from orders where o_id in (select i_order from items)",
    "select o_id from orders where o_id not in (select i_order from items)")
  different("another column of a subquery")(
    "select o_id from orders where o_id in (select i_order from items)",
    "select o_id from orders where o_id in (select i_qty from items)")
  different("inner and outer column of a correlation")(
    "select c_id from customers a where exists (select 1 from customers b where a.c_id = b.c_nation)",
    "select c_id from customers a where exists (select 1 from customers b where a.c_nation = b.c_id)"
  )
  different("frame of a window")(
    "select o_id, sum(o_total) over (partition by o_status order by o_date) from orders",
    "select o_id, sum(o_total) over (partition by o_status) from orders"
  )
  different("rows below a window")(
    "select o_id, rank() over (partition by o_status order by o_date) from orders where o_id > 4",
    "select * from (select o_id, rank() over (partition by o_status order by o_date) from orders) where o_id > 4"
  )
  different("signed zero")("select o_weight * 0.0D from orders", "select o_weight * -0.0D from orders")
  different("explode and explode_outer")(
    "select o_id, explode(o_tags) from orders", "select o_id, explode_outer(o_tags) from orders")

  test("pruned columns keep the core and the filters") {
    val wide = root(sql("select * from orders join customers on o_cust = c_id where o_id > 3"))
    val narrow = root(sql("select c_name from orders join customers on o_cust = c_id where o_id > 3"))
    assertEquals(narrow.lineage, wide.lineage)
    assert(narrow.columns.toSet.subsetOf(wide.columns.toSet))
  }

  test("IS NOT NULL is dropped only where another filter implies it") {
    val implied = root(sql("select o_id from orders where o_cust = 5"))
    assertEquals(implied.conjuncts.size, 1)
    val alone = root(sql("select o_id from orders where o_cust is not null"))
    assertEquals(alone.conjuncts.size, 1)
    val tolerant = root(sql("select o_id from orders where o_cust is not null and (o_cust <=> 5 or o_id > 3)"))
    assertEquals(tolerant.conjuncts.size, 2)
  }

  test("another session gives the same digests, another zone does not") {
    val query = "select o_status, cast(cast(o_date as timestamp) as string) d, sum(o_total) from orders group by 1, 2"
    def under(zone: String): Signature2 = {
      val other = spark.newSession()
      other.conf.set("spark.sql.session.timeZone", zone)
      Seq("orders").foreach(t =>
        other.read.parquet(SignerFixture.directory.resolve(t).toString).createOrReplaceTempView(t))
      val signature = root(other.sql(query))
      Signature2(signature.lineage, signature.columns)
    }
    assertEquals(under("UTC"), under("UTC"))
    assertNotEquals(under("UTC"), under("America/New_York"))
  }

  test("digests are the same in every JVM") {
    val other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "UTC")
    val signature = root(
      other.sql(
        "select id % 3 k, count(*), sum(cast(id as decimal(10,2))) from range(20) where id > 4 and id in (7, 8, 9) group by 1"))
    assertEquals(Digest.of("all", signature.lineage +: signature.columns), "832c6c25b477b5bf06aad154d0d56b03")
  }

  test("settings that only steer execution do not count, ANSI and legacy flags do") {
    def under(confs: (String, String)*): String = {
      val other = spark.newSession()
      confs.foreach { case (key, value) => other.conf.set(key, value) }
      ResultConfs.seed(other)
    }
    assertEquals(under("spark.sql.shuffle.partitions" -> "77", "spark.sql.adaptive.enabled" -> "false"), under())
    assertEquals(under("spark.sql.mapKeyDedupPolicy" -> "EXCEPTION"), under())
    assertNotEquals(under("spark.sql.ansi.enabled" -> "false"), under())
    assertNotEquals(under("spark.sql.mapKeyDedupPolicy" -> "LAST_WIN"), under())
    assertNotEquals(under("spark.sql.something.unknown" -> "1"), under())
  }

  test("nodes are numbered in pre-order with subquery plans last, and children point at them") {
    val signed = sign(sql("select o_id from orders where o_total > (select avg(i_price) from items)"))
    signed.nodes.zipWithIndex.foreach { case (node, i) => assertEquals(node.id, i) }
    val reached = signed.nodes.flatMap(_.children)
    assertEquals(reached.sorted.toSeq, (1 until signed.nodes.size).toSeq)
    assert(signed.nodes.forall(node => node.children.forall(_ > node.id)))
    assert(signed.nodes.forall(_.signature.isRight))
    assertEquals(signed.inputs(signed.nodes.head).size, 2)
  }

  test("a subquery that was signed alone keeps that signature, whatever became of its plan") {
    val text = "select o_id from orders where o_total > (select max(i_price) from items)"
    val plan = planned(sql(text))
    val inner = plan.flatMap(_.subqueries).head
    val alone = Signer.sign(inner, spark, CommandDigests, floatAggregates = false)
    val opaque = org.apache.spark.sql.catalyst.plans.logical.LocalLimit(
      org.apache.spark.sql.catalyst.expressions.Literal(9), inner)
    val changed = plan.transformExpressions {
      case s: org.apache.spark.sql.catalyst.expressions.ScalarSubquery => s.withNewPlan(opaque)
    }.transform { case p =>
      p.transformExpressions {
        case s: org.apache.spark.sql.catalyst.expressions.ScalarSubquery => s.withNewPlan(opaque)
      }
    }
    def signed = Signer.sign(changed, spark, CommandDigests, floatAggregates = false)
    assert(signed.nodes.head.signature.isLeft)
    opaque.setTagValue(Signing.signedAlone, alone.rootForm.get)
    assertEquals(signed.nodes.head.signature, sign(sql(text)).nodes.head.signature)
    assertEquals(signed.inputs(signed.nodes.head).size, 2)
    assertEquals(signed.nodes.last.notStorable.map(_.code), Some("SUBQUERY_DECIDED"))
  }

  test("a sort is not storable and passes that on; an aggregate above it is") {
    val signed = sign(sql("select o_id + 1 from (select o_id, o_total from orders order by o_total)"))
    assert(signed.nodes.exists(_.notStorable.exists(_.code == "ORDERED")))
    assertEquals(
      sign(sql("select o_id from orders").repartition(5)).nodes.head.notStorable.map(_.code), Some("REPARTITION"))
    assertEquals(sign(sql("select o_id from orders").sort("o_id").groupBy("o_id").count()).nodes.head.notStorable, None)
  }

  test("tags reach the nodes") {
    val signed = sign(sql("select o_id from orders where o_id > 3"))
    new org.apache.spark.sql.regions.profile.QueryRegistry(1).register(17, signed, Nil, Nil)
    val head = signed.nodes.head
    assertEquals(head.plan.getTagValue(org.apache.spark.sql.regions.Tags.query), Some(17L))
    assertEquals(
      head.plan.getTagValue(org.apache.spark.sql.regions.Tags.lineage),
      head.signature.toOption.map(_.lineage))
  }

  final case class Signature2(lineage: String, columns: Seq[String])
}
