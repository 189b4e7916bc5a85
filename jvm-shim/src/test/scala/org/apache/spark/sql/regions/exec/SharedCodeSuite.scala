package org.apache.spark.sql.regions.exec

import java.nio.file.Files

import org.apache.spark.SparkEnv
import org.apache.spark.metrics.source.CodegenMetrics
import org.apache.spark.sql.{DataFrame, classic}
import org.apache.spark.sql.catalyst.expressions.{Expression, GreaterThan, Literal}
import org.apache.spark.sql.execution.{FilterExec, RangeExec}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.regions.{LocalSpark, RegionsConf}

/** Queries that differ in literals, with Spark's generated code and with that of [[SharedCode]]. */
class SharedCodeSuite extends munit.FunSuite with AdaptiveSparkPlanHelper {
  private var spark: classic.SparkSession = _

  override def beforeAll(): Unit = {
    RegionsConf.register()
    spark = LocalSpark.session(_.injectColumnar { case session: classic.SparkSession => new SharedCode(session) })
    val folder = Files.createTempDirectory("shared-code").toString
    spark.range(0, 200, 1, 2)
      .selectExpr(
        "id",
        "cast(id % 7 as int) as i",
        "cast(id % 5 as tinyint) as t",
        "cast(id % 6 as smallint) as s",
        "if(id % 9 = 0, double('NaN'), id * 0.5D) as d",
        "if(id % 8 = 0, null, cast(id * 0.25 as float)) as f",
        "date_add(date'1999-12-25', cast(id as int)) as day",
        "timestamp_seconds(id * 86399) as at",
        "cast(timestamp_seconds(id * 86399) as timestamp_ntz) as local",
        "cast(id as decimal(9, 2)) as w",
        "cast(id as string) as text"
      )
      .write.mode("overwrite").parquet(folder)
    spark.read.parquet(folder).createOrReplaceTempView("rows")
  }

  override def beforeEach(context: BeforeEach): Unit = LocalSpark.use(spark)

  private def reusing[T](reused: Boolean)(body: => T): T = {
    spark.conf.set(RegionsConf.codeReuse.key, reused.toString)
    try body
    finally spark.conf.unset(RegionsConf.codeReuse.key)
  }

  private def rows(query: String): Seq[String] = spark.sql(query).collect().map(EveryType.bits).sorted.toSeq

  private def compiled(query: String): Long = {
    val before = CodegenMetrics.METRIC_COMPILATION_TIME.getCount
    rows(query)
    CodegenMetrics.METRIC_COMPILATION_TIME.getCount - before
  }

  /** A query by its number. */
  private val loops = Map[String, Int => String](
    "bigint" -> (n => s"SELECT text, id FROM rows WHERE id > ${n}L"),
    "int" -> (n => s"SELECT i, count(*) FROM rows WHERE i <> $n GROUP BY i"),
    "tinyint" -> (n => s"SELECT text FROM rows WHERE t <= ${n}Y"),
    "smallint" -> (n => s"SELECT text FROM rows WHERE s = ${n}S"),
    "double" -> (n => s"SELECT text FROM rows WHERE d >= $n.5D"),
    "float" -> (n => s"SELECT text FROM rows WHERE f < float('$n.25')"),
    "date" -> (n => s"SELECT text FROM rows WHERE day > date'2000-01-0${n + 1}'"),
    "timestamp" -> (n => s"SELECT text FROM rows WHERE at < timestamp'1970-02-0${n + 1} 01:02:03'"),
    "timestamp_ntz" -> (n => s"SELECT text FROM rows WHERE local < timestamp_ntz'1970-03-0${n + 1} 04:05:06'"),
    "arithmetic" -> (n => s"SELECT id * ${n + 2} + ${n}L - d * $n.5D AS x, ${n + 7} AS y FROM rows"),
    "list" -> (n => s"SELECT text FROM rows WHERE i IN ($n, ${n + 2}, ${n + 4})"),
    "branches" -> (n =>
      s"SELECT CASE WHEN i > $n THEN ${n + 1} WHEN t > ${n}Y THEN 9 ELSE $n END, if(i = $n, d, $n.5D) FROM rows"),
    "functions" -> (n => s"SELECT coalesce(f, float('$n.5')), greatest(i, $n), least(d, $n.5D) FROM rows"),
    "sums" -> (n => s"SELECT i, sum(CASE WHEN id > ${n}L THEN d END), count_if(t < ${n}Y) FROM rows GROUP BY i"),
    "join" -> (n =>
      s"SELECT a.text, b.id FROM rows a JOIN rows b ON a.i = b.id AND a.id + b.id > ${n}L WHERE a.d > 1$n.5D")
  )

  loops.foreach { case (name, query) =>
    test(s"$name: the second query needs no code of its own, and has the rows that it has with it") {
      val wanted = (1 to 4).map(n => reusing(false)(rows(query(n))))
      assertEquals(wanted.distinct.size, 4)
      assert(reusing(false)(compiled(query(5))) > 0)
      assertEquals((1 to 4).map(n => reusing(true)(rows(query(n)))), wanted)
      assertEquals(reusing(true)(compiled(query(5))), 0L)
    }
  }

  test("the least and the largest values, and those that are odd, have the same bits") {
    val queries = Seq(
      "SELECT -128Y, 127Y, -32768S, 32767S, -2147483648, 2147483647, -9223372036854775808L, 9223372036854775807L, id FROM rows",
      "SELECT -0.0D, 4.9E-324D, 1.7976931348623157E308D, double('Infinity'), double('-Infinity'), double('NaN'), id FROM rows",
      "SELECT float('-0.0'), float('1.4E-45'), float('3.4028235E38'), float('-Infinity'), float('NaN'), id FROM rows",
      "SELECT date'0001-01-01', date'9999-12-31', timestamp'0001-01-01 00:00:00', timestamp_ntz'9999-12-31 23:59:59.999999', id FROM rows",
      "SELECT id FROM rows WHERE d > double('NaN') OR d = -0.0D OR d >= double('Infinity') OR i > cast(null as int)",
      "SELECT true, null, cast(null as int), 'x', 1.5, interval '1' day, X'00', id FROM rows",
      "SELECT CASE WHEN d = double('NaN') THEN 1 ELSE 2 END, id <=> null, nullif(i, 3), id FROM rows"
    )
    queries.foreach(query => assertEquals(reusing(true)(rows(query)), reusing(false)(rows(query)), query))
  }

  test("without whole-stage code, and without any, rows are the same") {
    for (confs <- Seq(
        Seq("spark.sql.codegen.wholeStage" -> "false"),
        Seq("spark.sql.codegen.wholeStage" -> "false", "spark.sql.codegen.factoryMode" -> "NO_CODEGEN"),
        Seq("spark.sql.adaptive.enabled" -> "false")
      )) {
      confs.foreach { case (key, value) => spark.conf.set(key, value) }
      try loops.values.foreach(query => assertEquals(reusing(true)(rows(query(3))), reusing(false)(rows(query(3)))))
      finally confs.foreach { case (key, _) => spark.conf.unset(key) }
    }
  }

  test("an exchange is still reused where Spark reuses it, and is not where literals differ") {
    def reused(left: Int, right: Int): Int = {
      val frame = spark.sql(
        s"SELECT * FROM (SELECT i, sum(id) FROM rows WHERE id > $left GROUP BY i) a " +
          s"JOIN (SELECT i, sum(id) FROM rows WHERE id > $right GROUP BY i) b USING (i)")
      frame.collect()
      collect(frame.queryExecution.executedPlan) { case each: ReusedExchangeExec => each }.size
    }
    for (adaptive <- Seq("true", "false")) {
      spark.conf.set("spark.sql.adaptive.enabled", adaptive)
      spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
      try {
        assertEquals(reusing(true)(reused(5, 5)), reusing(false)(reused(5, 5)), adaptive)
        assert(reusing(true)(reused(5, 5)) > 0, adaptive)
        assertEquals(reusing(true)(reused(5, 6)), 0, adaptive)
      } finally {
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
      }
    }
  }

  private def held(frame: DataFrame): Int =
    collectWithSubqueries(frame.queryExecution.executedPlan) { case node => node.expressions }.flatten
      .map(_.collect { case each: HeldLiteral => each }.size).sum

  test("EXPLAIN is as before, and so is what a plan is compared by") {
    val query = "SELECT i, d + 1.5D AS x FROM rows WHERE i > 3"
    def told(reused: Boolean) = reusing(reused) {
      spark.conf.set("spark.sql.adaptive.enabled", "false")
      try {
        val plan = spark.sql(query).queryExecution.executedPlan
        (plan.toString.replaceAll("#\\d+", "#"), PlanShape.of(plan))
      } finally spark.conf.unset("spark.sql.adaptive.enabled")
    }
    assert(told(true)._2.isDefined)
    assertEquals(told(true), told(false))
  }

  test("executors get Spark's own literal") {
    val serializer = SparkEnv.get.closureSerializer.newInstance()
    val condition = GreaterThan(HeldLiteral(Literal(3L)), Literal(2L))
    val sent = serializer.deserialize[Expression](serializer.serialize[Expression](condition))
    assertEquals(sent, GreaterThan(Literal(3L), Literal(2L)): Expression)
    assertEquals(sent.collect { case each: HeldLiteral => each }, Nil)
    assert(sent.semanticEquals(condition))
  }

  test("what looks into its literal when code is generated keeps it, and so does a divisor") {
    def count(query: String): Int = {
      val frame = spark.sql(query)
      frame.collect()
      held(frame)
    }
    assertEquals(count("SELECT id % 3, d / 2.5D, round(d, 1), text LIKE 'a%', date_format(day, 'yyyy') FROM rows"), 0)
    assert(count("SELECT id % 3 = 1 FROM rows") > 0)
  }

  test("of a node with very many literals Spark writes all into the code") {
    def branches(count: Int): DataFrame =
      spark.sql((1 to count).map(n => s"WHEN id = $n THEN $n").mkString("SELECT CASE ", " ", " END AS x FROM rows"))
    val (few, many) = (branches(20), branches(300))
    Seq(few, many).foreach(_.collect())
    assert(held(few) > 0)
    assertEquals(held(many), 0)
  }

  test("where rows are made from a counter only comparisons and columns take values") {
    val frame = spark.sql("SELECT id * 3 AS x FROM range(100) WHERE id + 5 > 50")
    assertEquals(frame.collect().length, 54)
    val plan = frame.queryExecution.executedPlan
    assert(collect(plan) { case each: RangeExec => each }.nonEmpty)
    val conditions = collect(plan) { case each: FilterExec => each.condition }
    assert(conditions.flatMap(_.collect { case each: HeldLiteral => each }).forall(_.literal.value == 50L))
    assertEquals(held(frame), conditions.flatMap(_.collect { case each: HeldLiteral => each }).size)
  }
}
