package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.{And, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.functions
import org.apache.spark.sql.regions.SignedNode
import org.apache.spark.sql.{DataFrame, classic}

/** Stores the rows of one query and answers another from them. */
class OverSuite extends SignerSuite {
  private var stores = 0

  private final case class Stored(core: String, conjuncts: Set[String], columns: Seq[String], path: String)

  private def store(df: DataFrame): Stored = {
    val signature = root(df)
    stores += 1
    val path = SignerFixture.directory.resolve(s"store$stores").toString
    df.toDF(df.columns.indices.map(i => s"c$i"): _*).write.parquet(path)
    Stored(signature.core, signature.conjuncts.toSet, signature.columns, path)
  }

  private def served(query: SignedQuery, entry: Stored): Option[SignedNode] =
    query.nodes.find(node =>
      node.notStorable.isEmpty && node.signature.exists(wanted =>
        covers(query, wanted, entry.core, entry.conjuncts, entry.columns.toSet)))

  /** Rows of `df` with the topmost servable node read from the entry, and whether there was one. */
  private def through(df: DataFrame, entry: Stored): (Seq[String], Boolean) = {
    val session = df.sparkSession.asInstanceOf[classic.SparkSession]
    val source = session.read.parquet(entry.path).asInstanceOf[classic.DataFrame].queryExecution.analyzed
    var used = false
    Hook.rewrite.set { (plan: LogicalPlan) =>
      val query = Signer.sign(plan, session, CommandDigests, floatAggregates = false)
      served(query, entry).fold(plan) { node =>
        used = true
        val replaced = query.over(node, source, entry.columns.zip(source.output), entry.conjuncts) match {
          case Right(over) => over
          case Left(refusal) => fail(s"the planner would have been told that this is covered: $refusal")
        }
        assertEquals(replaced.output.map(_.exprId), node.plan.output.map(_.exprId))
        assertEquals(replaced.output.map(_.name), node.plan.output.map(_.name))
        plan.transformDown { case below if below eq node.plan => replaced }
      }
    }
    try (sorted(classic.Dataset.ofRows(session, df.asInstanceOf[classic.DataFrame].logicalPlan)), used)
    finally Hook.rewrite.remove()
  }

  private def serves(name: String)(wide: String, narrow: String): Unit = test(s"serves: $name") {
    val entry = store(sql(wide))
    val plain = sorted(sql(narrow))
    val (rows, used) = through(sql(narrow), entry)
    assert(used, s"\n${planned(sql(wide))}\n${planned(sql(narrow))}")
    assertEquals(rows, plain)
    assert(plain.nonEmpty)
  }

  private def doesNotServe(name: String)(wide: String, narrow: String): Unit = test(s"does not serve: $name") {
    val (query, entry) = (sign(sql(narrow)), store(sql(wide)))
    assert(query.nodes.head.signature.isRight)
    assert(!served(query, entry).exists(_.id == 0), s"\n${planned(sql(narrow))}")
  }

  private val base = "select * from orders join customers on o_cust = c_id"

  serves("fewer columns")(base, s"select o_id, c_name from ($base)")
  serves("more filters")(base, s"select o_id, c_name from ($base) where o_total > 50 and c_name <> 'c1'")
  serves("a filter on a column that is not selected")(base, s"select c_name from ($base) where o_id % 3 = 1")
  serves("computed columns")(base, s"select o_id * 2 + c_id, upper(c_name), o_info.b from ($base)")
  serves("a grouping on top")(
    base, s"select c_nation, sum(o_total), count(*) from ($base) where o_id > 9 group by c_nation")
  serves("permuted joins of three tables")(
    "select * from orders join customers on o_cust = c_id join items on i_order = o_id",
    "select c_name, i_qty from items join (select * from customers where c_id > 5) on true join orders on o_id = i_order and o_cust = c_id"
  )
  serves("a stored computed column")(
    "select o_id, upper(concat(o_status, 'x')) u, o_tags from orders",
    "select reverse(upper(concat(o_status, 'x'))), transform(o_tags, x -> x + o_id) from orders where upper(concat(o_status, 'x')) <> 'S1X'"
  )
  serves("a stored aggregate")(
    "select o_status, o_cust, sum(o_total) s, count(*) n from orders group by o_status, o_cust",
    "select o_cust, sum(o_total) / count(1), o_status from orders where o_status in ('s1', 's2') group by o_cust, o_status having count(*) > 0"
  )
  serves("more over a global aggregate")(
    "select sum(o_total) s, count(*) n, max(o_date) d from orders where o_id > 3",
    "select max(o_date), sum(o_total) + 1 from orders where 3 < o_id")
  serves("left outer join, filtered on either side")(
    "select * from customers left join orders on o_cust = c_id",
    "select c_name, o_id from customers left join orders on o_cust = c_id where c_nation <> 2 and (o_id is null or o_id > 100)"
  )
  serves("full outer join")(
    "select * from customers full join orders on o_cust = c_id",
    "select c_name, coalesce(o_id, -1) from customers full join orders on o_cust = c_id where c_name is null or o_id is null"
  )
  serves("self join")(
    "select a.o_id x, b.o_id y, a.o_total t, b.o_total u from orders a join orders b on a.o_cust = b.o_cust",
    "select b.o_id, a.o_total - b.o_total from orders a join orders b on a.o_cust = b.o_cust where a.o_total <> b.o_total and a.o_id % 20 > 1 and b.o_id is not null"
  )
  serves("self join, filtered on computed columns that are stored without their inputs")(
    "select a.o_id x, upper(a.o_status) s, transform(b.o_tags, t -> t + 1) g, a.o_total > 9 or b.o_total > 7 m from orders a join orders b on a.o_cust = b.o_cust",
    "select a.o_id, transform(b.o_tags, u -> u + 1) from orders a join orders b on a.o_cust = b.o_cust where upper(a.o_status) = 'S1' and size(transform(b.o_tags, t -> t + 1)) > 0 and (a.o_total > 9 or b.o_total > 7)"
  )
  serves("semi join kept")(
    "select * from orders where exists (select 1 from items where i_order = o_id and i_qty > 9)",
    "select o_status from orders where o_total > 20 and exists (select 1 from items where i_qty > 9 and i_order = o_id)"
  )
  serves("a union")(
    "select o_id x, o_status y from orders union all select c_id, c_name from customers",
    "select y from (select c_name y, c_id x from customers union all select o_status, o_id from orders)"
  )
  private val union =
    "select o_id x, o_cust y, o_status s from orders union all select c_id, c_id % 9, c_name from customers"

  serves("a part of a union, by columns that are not selected")(
    union, s"select x + 1 from ($union) where y > 1 and s <> 's1'")
  serves("a part of a union whose branches have filters of their own")(
    "select o_id x, o_total y from orders where o_total > 50 union all select c_id, c_id * 1.25 from customers",
    "select y from (select o_id x, o_total y from orders where o_total > 50 union all select c_id, c_id * 1.25 from customers) where x > 20"
  )
  serves("a part of a union of one table, by either column")(
    "select o_id x, o_cust y from orders union all select o_cust, o_id from orders",
    "select x from (select o_id x, o_cust y from orders union all select o_cust, o_id from orders) where y > 10 and x < 200"
  )
  serves("a part of a union, by what is computed of it")(
    union, s"select upper(s), y from ($union) where concat(s, 'x') > 's1' and coalesce(y, x) % 2 = 0")
  serves("groups of a part of a union, with a constant for each branch")(
    "select 'orders' what, o_id x, o_status s from orders union all select 'customers', c_id, c_name from customers",
    "select what, s, sum(x) from (select 'orders' what, o_id x, o_status s from orders union all select 'customers', c_id, c_name from customers) where x > 3 group by what, s"
  )
  serves("a part of a union of unions")(
    s"$union union all $union", s"select x from ($union union all $union) where y = 1")
  doesNotServe("filters of other columns of a union")(
    s"select * from ($union) where x > 10", s"select * from ($union) where y > 10")
  doesNotServe("filters of a union in another order in each branch")(
    "select o_id x, o_cust y from orders union all select c_id, c_id % 9 from customers",
    "select o_id x, o_cust y from orders where 6 / o_id < 3 and o_cust > 2 union all select c_id, c_id % 9 from customers where c_id % 9 > 2 and 6 / c_id < 3"
  )
  doesNotServe("filters of another column in each branch")(
    "select o_id x, o_cust y from orders union all select c_id, cast(c_nation as bigint) from customers",
    "select o_id x, o_cust y from orders where o_id > 2 union all select c_id, cast(c_nation as bigint) from customers where cast(c_nation as bigint) > 2"
  )

  serves("explode")(
    "select o_id, o_status, t from orders lateral view explode(o_tags) as t",
    "select t + 1, o_id from orders lateral view explode(o_tags) as t where o_status = 's1' and t > 0"
  )
  serves("a window, filtered by partition and by rank")(
    "select o_id, o_status, rank() over (partition by o_status order by o_date) r from orders",
    "select * from (select o_id, rank() over (partition by o_status order by o_date) r from orders where o_status = 's2') where r < 4"
  )
  serves("grouping sets")(
    "select o_status, o_cust, sum(o_total), grouping_id() from orders group by cube (o_status, o_cust)",
    "select o_status, sum(o_total), grouping_id(), o_cust from orders group by cube (o_status, o_cust)"
  )
  serves("a scalar subquery in a residual filter")(
    "select * from items", "select i_part from items where i_price > (select avg(o_total) / 10 from orders)")
  serves("inside a subquery")(
    "select * from customers", "select o_id from orders join customers on o_cust = c_id where c_nation = 2")
  serves("partition columns")("select * from parts", "select id from parts where p = 'p1' and v > 3")
  serves("duplicate and odd names")(
    "select o_id as `a b`, o_id as `a b2`, o_status as `a.b` from orders",
    "select o_status, o_id from orders where o_id > 7")

  private val oneKey = "select o_id, o_cust, c_name from orders join customers on o_cust = c_id"
  serves("a filter on the key of a join, of which one side is stored")(
    oneKey, "select o_id, c_name from orders join customers on o_cust = c_id where c_id > 9")
  serves("the key that is not stored")(oneKey, "select c_id, c_name from orders join customers on o_cust = c_id")
  serves("a function of the key that is not stored")(
    oneKey, "select c_id * 2, o_id from orders join customers on o_cust = c_id where pmod(c_id, 3) = 1")
  serves("a key through a chain of joins")(
    "select i_qty, o_cust, i_order from items join orders on i_order = o_id join customers on c_id = o_id",
    "select c_id, o_id from items join orders on i_order = o_id join customers on c_id = o_id where o_id < 50 and c_id <> 3"
  )
  serves("a column that a filter holds constant")(
    "select o_id from orders where o_status = 's1'", "select o_id, o_status from orders where o_status = 's1'")
  serves("the other key of a self join")(
    "select a.o_id x, a.o_cust k, b.o_id y from orders a join orders b on a.o_cust = b.o_cust",
    "select b.o_cust, a.o_id from orders a join orders b on a.o_cust = b.o_cust where b.o_cust > 20"
  )

  doesNotServe("keys of which a zero may have another sign")(
    "select o_id, o_weight from orders join customers on o_weight = cast(c_id as double)",
    "select cast(c_id as double) from orders join customers on o_weight = cast(c_id as double)"
  )
  doesNotServe("keys that a collation holds equal")(
    "select o_id, o_status from orders join customers on o_status collate unicode_ci = c_name collate unicode_ci",
    "select c_name from orders join customers on o_status collate unicode_ci = c_name collate unicode_ci"
  )
  doesNotServe("a key of the optional side")(
    "select o_id, o_cust from orders left join customers on o_cust = c_id",
    "select o_id, c_id from orders left join customers on o_cust = c_id"
  )
  doesNotServe("keys that are equal in the query only")(
    "select o_id, o_cust from orders cross join customers where o_id < 5",
    "select o_id, c_id from orders join customers on o_cust = c_id where o_id < 5"
  )
  doesNotServe("other filters")("select * from orders where o_id > 9", "select o_id from orders where o_id > 8")
  doesNotServe("a missing column")("select o_id from orders", "select o_id, o_total from orders")
  doesNotServe("a missing column of a filter")("select o_id from orders", "select o_id from orders where o_total > 3")
  doesNotServe("a semi join that is not stored")(
    "select * from orders", "select o_id from orders where o_id in (select i_order from items)")
  doesNotServe("a filter below a global aggregate")(
    "select count(*) from orders", "select count(*) from orders where o_id > 9")
  doesNotServe("a filter on what was aggregated")(
    "select o_status, sum(o_total) from orders group by o_status",
    "select o_status, sum(o_total) from orders where o_cust > 3 group by o_status")
  doesNotServe("a filter on the optional side")(
    "select c_id, o_id from customers left join orders on o_cust = c_id",
    "select c_id from customers left join (select * from orders where o_id > 9) on o_cust = c_id"
  )
  doesNotServe("a filter that changes a window")(
    "select o_id, o_date, o_status, rank() over (partition by o_status order by o_date) r from orders",
    "select o_id, rank() over (partition by o_status order by o_date) r from orders where o_id > 5"
  )

  serves("a filter that may fail behind the stored one")(
    "select * from orders where o_id > 9",
    "select o_id from orders where o_id > 9 and cast(substr(o_status, 2) as int) > 0")
  serves("a filter and a column that may fail above a join")(
    base, s"select o_id + c_nation from ($base) where 100 / (o_id + c_nation + 1) > 0")

  /** Plain Spark computes it of rows that are not stored, and may fail at them. */
  private def mayFail(name: String)(wide: String, narrow: String): Unit = test(s"does not serve, may fail: $name") {
    val (query, entry) = (sign(sql(narrow)), store(sql(wide)))
    val node = served(query, entry).getOrElse(fail(s"${planned(sql(narrow))}"))
    val source = spark.read.parquet(entry.path).asInstanceOf[classic.DataFrame].queryExecution.analyzed
    val read = query.over(node, source, entry.columns.zip(source.output), entry.conjuncts)
    assertEquals(read.left.map(_.code), Left("MAY_FAIL"))
  }

  mayFail("a filter below a join")(base, s"select o_id from ($base) where cast(c_name as int) > 0")
  mayFail("a column below a join")(
    base, "select x from orders join (select cast(c_name as int) x, c_id from customers) on o_cust = c_id")
  mayFail("a filter below a self join")(
    "select a.o_id x, b.o_id y, a.o_total t, b.o_total u from orders a join orders b on a.o_cust = b.o_cust",
    "select b.o_id, a.o_total - b.o_total from orders a join orders b on a.o_cust = b.o_cust where a.o_total <> b.o_total and a.o_id + 1 > 20 and b.o_id is not null"
  )
  mayFail("a filter behind one that is neither true nor false of nulls")(
    "select * from orders", "select o_id from orders where o_status in ('1', '2') and 100 / o_cust > 1")
  mayFail("a filter before one by which plain Spark skips rows")(
    "select * from orders", "select o_id from orders where cast(o_status as int) > 0 and o_id > 9")
  mayFail("a filter below a semi join")(
    "select o_id, o_status from orders where o_id in (select i_order from items)",
    "select o_id from orders where o_id in (select i_order from items) and cast(o_status as int) > 0"
  )
  mayFail("a filter before a stored one")(
    "select * from orders where o_id > 9", "select o_id from orders where cast(o_status as int) > 0 and o_id > 9")
  mayFail("a filter below of what is exploded")(
    "select o_status, t from orders lateral view explode(o_tags) as t",
    "select t from orders lateral view explode(o_tags) as t where cast(o_status as int) > 0"
  )
  mayFail("a filter of keys before one of other columns")(
    "select o_status, count(*) from orders where o_id > 9 group by o_status",
    "select o_status, count(*) from orders where cast(o_status as int) > 0 and o_id > 9 group by o_status"
  )

  test("every query over itself, also when source and output share attributes") {
    for (text <- Seq(base, "select o_id, o_id + 1 as x from orders where o_total > 3",
        "select o_status, max(o_id) m from orders group by 1")) {
      val df = sql(text).asInstanceOf[classic.DataFrame]
      val query = sign(df)
      val head = query.nodes.head
      val signature = head.signature.toOption.get
      val plan = query.over(head, head.plan, query.storeColumns(head), signature.conjuncts.toSet)
      val rows = sorted(classic.Dataset.ofRows(spark, plan.toOption.get))
      assertEquals(rows, sorted(df))
    }
  }

  test("over refuses what it cannot rebuild, with a reason") {
    val query = sign(sql("select o_id, o_total from orders where o_id > 3"))
    val head = query.nodes.head
    val signature = head.signature.toOption.get
    assertEquals(
      query.over(head, head.plan, query.storeColumns(head).take(1), signature.conjuncts.toSet).left.map(_.code),
      Left("NOT_COVERED"))
    assertEquals(
      query.over(head, head.plan, query.storeColumns(head), signature.conjuncts.toSet + "x").left.map(_.code),
      Left("NOT_COVERED"))
    val crossed = signature.columns.zip(head.plan.output.reverse)
    assertEquals(
      query.over(head, head.plan, crossed, signature.conjuncts.toSet).left.map(_.code),
      Left("TYPE_MISMATCH"))
  }

  test("filters on top are applied in plain Spark's order") {
    val numbers = 1 to 9
    val query = sign(sql(s"select o_id from orders where ${numbers.map(n => s"o_id <> $n").mkString(" and ")}"))
    val leaf = query.nodes.last
    val over = query.over(query.nodes.head, leaf.plan, query.storeColumns(leaf), Set.empty).toOption.get
    val applied = over.collectFirst { case Filter(condition, _) => ExpressionDigest.flatten[And](condition) }.get
    assertEquals(applied.map(_.collect { case Literal(value: Long, _) => value }), numbers.map(n => Seq(n.toLong)))
  }

  test("a column that doubles at each step is refused, not written out") {
    val start = sql("select o_id as x from orders")
    val chain = (1 to 40).foldLeft(start)((df, _) =>
      df.select((functions.col("x") + 1).as("y"), functions.col("x"))
        .distinct().select((functions.col("x") * functions.col("y")).as("x")).distinct())
    val query = sign(chain)
    query.expressions.foreach { case (digest, inputs) => assert(!inputs.contains(digest)) }
    val head = query.nodes.head
    val signature = head.signature.toOption.get
    assert(query.over(head, head.plan, query.storeColumns(head), signature.conjuncts.toSet).isRight)
    val leaf = query.nodes.last
    val source = query.storeColumns(leaf)
    val refused = query.over(head, leaf.plan, source, signature.conjuncts.toSet)
    assertEquals(refused.left.map(_.code), Left("PLAN_TOO_LARGE"))
  }

  test("an entry whose types lost their nullability still serves") {
    val wide = sql("select o_id, coalesce(o_cust, 0) as k, array(o_id, 1L) as a, o_info from orders")
    val entry = store(wide)
    val narrow = wide.select(functions.col("a")(0) + functions.col("k"), functions.col("a"))
    val (rows, used) = through(narrow, entry)
    assert(used)
    assertEquals(rows, sorted(narrow))
  }
}
