package org.apache.spark.sql.regions.platforms

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.regions.RegionsConf
import org.apache.spark.sql.regions.rules.{SignerFixture, SignerSuite}
import org.apache.spark.sql.regions.wire.Frames

/** What the planner is told of a plan's expressions and types; spark_regions/platforms/typed.py reads it. */
class TypedPlanSuite extends SignerSuite {
  RegionsConf.register()

  private def typed(df: DataFrame): JsonNode =
    Frames.json.readTree(TypedPlan(spark, sign(df)).getOrElse(fail("too large")).json)

  private def nodes(plan: JsonNode): Seq[JsonNode] = plan.get("nodes").asScala.toSeq

  private def node(plan: JsonNode, operator: String): JsonNode =
    nodes(plan).find(_.get("operator").asText == operator).getOrElse(fail(s"no $operator: $plan"))

  private def operators(plan: JsonNode): Seq[String] = nodes(plan).map(_.get("operator").asText)

  /** Of a projection, what it computes. */
  private def value(expression: String, table: String = "orders"): JsonNode =
    node(typed(sql(s"select $expression as x from $table")), "Project").at("/args/list/0/children/0")

  private def fields(expression: JsonNode): Map[String, String] =
    expression.path("fields").properties.asScala.map(each => each.getKey -> each.getValue.asText).toMap

  private def all(expression: JsonNode): Seq[JsonNode] =
    expression +: expression.path("children").asScala.toSeq.flatMap(all)

  test("nodes come before what is below them, and name all of it") {
    val queries = Seq(
      "select o_status, sum(o_total) from orders join customers on o_cust = c_id group by 1 order by 1 limit 3",
      "select * from orders where o_cust in (select c_id from customers) and o_total > (select avg(i_price) from items)",
      "select o_id from orders where exists (select 1 from items where i_order = o_id) or o_id < 5"
    )
    queries.map(text => typed(sql(text))).foreach { plan =>
      val place = nodes(plan).map(_.get("id").asInt).zipWithIndex.toMap
      assertEquals(place.size, nodes(plan).size)
      nodes(plan).foreach { each =>
        val below = each.get("children").asScala.map(_.asInt).toSeq
        assert(below.forall(child => place(child) > place(each.get("id").asInt)), s"$each in $plan")
      }
    }
  }

  test("ids are those of the signed plan, and attributes keep theirs") {
    val df = sql("select o_status as s, o_total * 2 as d from orders where o_id > 3")
    val (signed, plan) = (sign(df), typed(df))
    signed.nodes.foreach { each =>
      val told = nodes(plan).find(_.get("id").asInt == each.id).getOrElse(fail(s"no ${each.id}"))
      assertEquals(told.get("operator").asText, each.plan.getClass.getSimpleName)
      assertEquals(told.get("output").asScala.map(_.get("name").asText).toSeq, each.plan.output.map(_.name))
    }
    val relation = node(plan, "LogicalRelation")
    val ids = relation.get("output").asScala.map(_.get("id").asText).toSet
    val read = all(node(plan, "Filter").at("/args/condition")).filter(_.get("kind").asText == "AttributeReference")
    assert(read.nonEmpty && read.forall(each => ids(fields(each)("id"))), plan)
  }

  test("a relation is told with its files and the values of their folders") {
    val plan = typed(sql("select id, p from parts where v > 2"))
    val args = node(plan, "LogicalRelation").get("args")
    assertEquals(args.get("columns").asScala.map(_.asText).toSeq, Seq("id", "v"))
    assertEquals(args.get("partition").asScala.map(_.asText).toSeq, Seq("p"))
    val files = args.get("files").asScala.toSeq
    files.foreach { file =>
      val path = new java.io.File(file.get("path").asText)
      assertEquals((path.length, path.lastModified), (file.get("bytes").asLong, file.get("modified").asLong))
      val value = file.at("/values/0/fields/value").asText
      assert(path.getPath.contains(s"/p=$value/"), file)
    }
    assertEquals(files.map(_.at("/values/0/fields/value").asText).distinct.sorted, Seq("p0", "p1", "p2"))
  }

  test("types and literals") {
    val texts = Seq(
      "o_total + 1.25BD" -> ("DECIMAL(3,2)" -> "1.25"),
      "o_date > date'2024-02-03'" -> ("DATE" -> "19756"),
      "o_weight > double('-Infinity')" -> ("DOUBLE" -> "-Infinity"),
      "o_status = 'ü\\'x'" -> ("STRING" -> "ü'x"),
      "if(o_id > 3, timestamp_ntz'1970-01-01 00:00:01', null)" -> ("TIMESTAMP_NTZ" -> "1000000")
    )
    texts.foreach { case (text, wanted) =>
      val literals = all(value(text)).filter(_.get("kind").asText == "Literal")
      val found = literals.flatMap(each => fields(each).get("value").map(each.get("type").asText -> _))
      assert(found.contains(wanted), s"$text: $found")
    }
    val absent = all(value("if(o_id > 3, o_status, null)")).filter(_.get("kind").asText == "Literal")
    assert(absent.exists(each => !fields(each).contains("value")), absent)
  }

  test("what the rules of ANSI change is told by name") {
    for ((ansi, mode) <- Seq("true" -> "ANSI", "false" -> "LEGACY")) {
      val before = spark.conf.get("spark.sql.ansi.enabled")
      spark.conf.set("spark.sql.ansi.enabled", ansi)
      try {
        assertEquals(fields(value("o_id + o_cust")).get("evalMode"), Some(mode))
        assertEquals(fields(value("cast(o_status as int)")).get("evalMode"), Some(mode))
        assertEquals(typed(sql("select o_id + 1 from orders")).get("ansi").asBoolean, ansi.toBoolean)
      } finally spark.conf.set("spark.sql.ansi.enabled", before)
    }
    assertEquals(fields(value("try_add(o_id, o_cust)")).get("evalMode"), Some("TRY"))
  }

  test("arguments that are neither expressions nor types are fields, parts of expressions are children") {
    val like = all(value("o_status like '_!%' escape '!'")).find(_.get("kind").asText == "Like")
    assertEquals(like.map(fields), Some(Map("escapeChar" -> "!")))
    val cases = value("case when o_id = 1 then o_cust when o_id = 2 then 7L else o_id end")
    assertEquals((cases.get("kind").asText, cases.get("children").size), ("CaseWhen", 5))
    val in = all(value(s"o_id in (${(1 to 40).mkString(",")})")).find(_.get("kind").asText == "InSet")
    assertEquals(in.map(_.get("children").size), Some(41))
  }

  test("an expression with something that has no name here is unknown") {
    val opaque = udf((id: Long) => id + 1)
    val plan = typed(spark.table("orders").select(opaque(col("o_id")).as("x")))
    val found = all(node(plan, "Project").at("/args/list/0")).find(_.get("kind").asText == "ScalaUDF")
    assert(found.exists(_.get("unknown").asBoolean), found)
  }

  test("aggregates, with distinct and filter") {
    val plan = typed(
      sql(
        "select o_status, count(distinct o_cust) filter (where o_id > 2) as n, sum(o_total) as s from orders group by 1"))
    val calls = nodes(plan).flatMap(_.at("/args/list").asScala.toSeq).flatMap(all)
      .filter(_.get("kind").asText == "AggregateExpression")
    assert(calls.nonEmpty && calls.forall(call => fields(call)("mode") == "Complete"), plan)
    val aggregate = node(plan, "Aggregate")
    assert(aggregate.at("/args/keys").size > 0)
    assertEquals(aggregate.at("/output/0/type").asText, "STRING")
  }

  test("averages of short decimals are told as Spark runs them, by doubles") {
    def kinds(text: String) = nodes(typed(sql(text))).flatMap(_.at("/args/list").asScala.toSeq).flatMap(all)
      .map(_.get("kind").asText).toSet
    assert(kinds("select avg(i_price) from items").contains("UnscaledValue"))
    assert(!kinds("select avg(cast(i_price as decimal(20,2))) from items").contains("UnscaledValue"))
    assert(kinds("select sum(cast(i_price as decimal(7,2))) from items").contains("MakeDecimal"))
  }

  test("windows have their frame, sorts their nulls") {
    val plan = typed(sql("select rank() over (partition by o_cust order by o_id desc) as r from orders order by r"))
    val window = node(plan, "Window")
    val call = window.at("/args/list/0/children/0")
    assertEquals(call.get("kind").asText, "WindowExpression")
    val spec = call.get("children").get(1)
    assertEquals(spec.get("kind").asText, "WindowSpecDefinition")
    val frame = spec.get("children").asScala.toSeq.last
    assertEquals(frame.get("kind").asText -> fields(frame), "SpecifiedWindowFrame" -> Map("frameType" -> "RowFrame"))
    val key = window.at("/args/order/0")
    assertEquals((key.get("ascending").asBoolean, key.get("nullsFirst").asBoolean), (false, false))
    val sort = node(plan, "Sort").get("args")
    assertEquals((sort.get("global").asBoolean, sort.at("/order/0/nullsFirst").asBoolean), (true, true))
  }

  test("predicates with subqueries are the joins that Spark makes of them") {
    def kinds(condition: String): Seq[String] =
      nodes(typed(sql(s"select o_id from orders where $condition"))).map(_.at("/args/kind").asText).filter(_.nonEmpty)
    assertEquals(kinds("o_cust in (select c_id from customers)"), Seq("LeftSemi"))
    assertEquals(kinds("exists (select 1 from items where i_order = o_id and i_qty > 3)"), Seq("LeftSemi"))
    assertEquals(kinds("not exists (select 1 from items where i_order = o_id)"), Seq("LeftAnti"))
    assertEquals(kinds("o_id = 3 or o_cust in (select c_id from customers)"), Seq("ExistenceJoin"))
    assertEquals(kinds("o_cust not in (select c_segment from customers)"), Seq("LeftAnti"))
    val anti = node(typed(sql("select o_id from orders where o_cust not in (select c_segment from customers)")), "Join")
    val condition = anti.at("/args/condition")
    assertEquals(condition.get("kind").asText, "Or")
    assertEquals(condition.at("/children/1/kind").asText, "IsNull")
    assertEquals(condition.at("/children/1/children/0"), condition.at("/children/0"))
  }

  test("a scalar subquery names the root of its plan") {
    val plan = typed(sql("select o_id from orders where o_total > (select max(i_price) * 2 from items)"))
    val asked = nodes(plan).flatMap(each => all(each.at("/args/condition"))).filter(_.has("plan"))
    assertEquals(asked.map(_.get("kind").asText), Seq("ScalarSubquery"))
    val root = nodes(plan).find(_.get("id").asInt == asked.head.get("plan").asInt).getOrElse(fail(s"$plan"))
    assertEquals(root.get("operator").asText, "Aggregate")
    assertEquals(operators(plan).count(_ == "LogicalRelation"), 2)
  }

  test("only where an engine is wanted and could read something") {
    val parquet = sql("select o_status, count(*) from orders group by 1")
    def told(df: DataFrame, confs: (String, String)*): Boolean = {
      confs.foreach { case (key, value) => spark.conf.set(key, value) }
      try TypedPlan.of(spark, sign(df), _ => true).isDefined
      finally confs.foreach { case (key, _) => spark.conf.unset(key) }
    }
    assert(told(parquet))
    assert(!told(parquet, "spark.regions.platforms" -> "off"))
    assert(!told(parquet, "spark.regions.platforms.maxInputBytes" -> "10"))
    assert(!told(parquet, "spark.sql.parquet.fieldId.read.enabled" -> "true"))
    val csv = SignerFixture.directory.resolve("typed.csv").toString
    spark.range(5).write.csv(csv)
    assert(!told(spark.read.csv(csv).groupBy("_c0").count()))
    assert(!told(spark.range(9).groupBy("id").count()))
  }

  test("too much to tell is not told") {
    val many = (1 to 9000).map(i => s"o_id + $i as x$i").mkString(", ")
    assertEquals(TypedPlan(spark, sign(sql(s"select $many from orders"))), None)
  }
}
