package org.apache.spark.sql.regions.rules

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.spark.api.python.{PythonEvalType, SimplePythonFunction}
import org.apache.spark.sql.{Row, functions}
import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.classic.ExpressionUtils
import org.apache.spark.sql.types._

class RefusalSuite extends SignerSuite {

  def refused(code: String, query: String): Unit = test(s"$code: $query") {
    val found = codes(sql(query))
    assert(found.contains(code), s"$found\n${planned(sql(query))}")
  }

  refused("NONDETERMINISTIC", "select rand(5), o_id from orders")
  refused("NONDETERMINISTIC", "select uuid(), o_id from orders")
  refused("NONDETERMINISTIC", "select monotonically_increasing_id(), o_id from orders")
  refused("NONDETERMINISTIC", "select input_file_name() from orders")
  refused("NONDETERMINISTIC", "select spark_partition_id() from orders")
  refused("NONDETERMINISTIC", "select shuffle(o_tags) from orders")
  refused("FLOAT_AGGREGATE", "select sum(o_weight) from orders")
  refused("FLOAT_AGGREGATE", "select avg(o_id) from orders")
  refused("FLOAT_AGGREGATE", "select stddev(o_id) from orders")
  refused("FLOAT_AGGREGATE", "select corr(o_id, o_cust) from orders")
  refused("LIMIT_WITHOUT_TOTAL_ORDER", "select o_id from orders limit 5")
  refused("LIMIT_WITHOUT_TOTAL_ORDER", "select o_id from orders order by o_id limit 5")
  refused("LIMIT_WITHOUT_TOTAL_ORDER", "select o_id from orders offset 5")
  refused("SAMPLE", "select o_id from orders tablesample (10 percent)")
  refused("CTE_REFERENCE", "with t as (select rand() r from orders) select a.r from t a join t b on a.r = b.r")

  test("exact averages and sums are signed; float aggregates only on demand") {
    root(
      sql(
        "select avg(o_total), avg(i_qty), sum(i_line), min(o_weight), count(distinct o_cust) from orders join items on o_id = i_order"))
    root(sql("select approx_count_distinct(o_id), bit_xor(o_id), bool_and(o_id > 3) from orders"))
    assert(sign(sql("select sum(o_weight), stddev(o_id) from orders"),
        floatAggregates = true).nodes.head.signature.isRight)
  }

  test("an RDD, a checkpoint, a cached relation, JDBC") {
    val rdd = spark.createDataFrame(
      spark.sparkContext.parallelize(Seq(Row(1), Row(2))), StructType(Seq(StructField("x", IntegerType))))
    assertEquals(codes(rdd), Set("RDD_SOURCE"))
    assertEquals(codes(sql("select o_id from orders").localCheckpoint()), Set("RDD_SOURCE"))
    val cached = sql("select c_id, c_name from customers where c_id > 3").cache()
    try {
      val plan = cached.queryExecution.withCachedData
      val signed = Signer.sign(plan, spark, CommandDigests, floatAggregates = false)
      assertEquals(signed.nodes.head.signature.left.map(_.code), Left("USER_CACHED"))
    } finally cached.unpersist()
    import spark.implicits._
    assert(codes(Seq(1, 2).toDS().map(_ + 1).toDF()).contains("OBJECT_OPERATOR"))
  }

  test("observe() and everything above it is refused, what is below is signed") {
    val df = sql("select o_id, o_total from orders").observe("m", functions.count(functions.lit(1)))
    val signed = sign(df.groupBy("o_id").agg(functions.sum("o_total")))
    assertEquals(signed.nodes.head.signature.left.map(r => r.code -> r.detail), Left("CHILD_REFUSED" -> "OBSERVE"))
    assert(signed.nodes.last.signature.isRight)
  }

  test("a write is refused, its query is signed") {
    val target = SignerFixture.directory.resolve("target").toString
    Hook.seen.set(scala.collection.mutable.Buffer())
    val plans =
      try {
        sql("select o_id, o_total from orders where o_id > 4").write.mode("overwrite").parquet(target)
        Hook.seen.get().toSeq
      } finally Hook.seen.remove()
    val signed = plans.map(Signer.sign(_, spark, CommandDigests, floatAggregates = false))
    val write = signed.find(_.nodes.exists(_.signature.left.exists(_.code == "COMMAND"))).getOrElse(fail("no command"))
    assert(write.nodes.exists(_.signature.isRight))
  }

  test("a streaming source declines the whole plan") {
    val stream = spark.readStream.format("rate").load()
    val signed = Signer.sign(stream.queryExecution.analyzed, spark, CommandDigests, floatAggregates = false)
    assertEquals(signed.nodes.size, 1)
    assertEquals(signed.nodes.head.signature.left.map(_.code), Left("STREAMING_SOURCE"))
  }

  test("plans too large, too deep, expressions too deep") {
    val leaf = planned(sql("select o_id from orders"))
    val deep = (1 to 20000).foldLeft(leaf)((plan, _) =>
      org.apache.spark.sql.catalyst.plans.logical.Filter(
        org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral, plan))
    val signed = Signer.sign(deep, spark, CommandDigests, floatAggregates = false)
    assertEquals(signed.nodes.map(_.signature.left.map(_.code)), Vector(Left("PLAN_TOO_LARGE")))
    val wide = org.apache.spark.sql.catalyst.plans.logical.Union(Seq.fill(6000)(leaf))
    assertEquals(
      Signer.sign(wide, spark, CommandDigests, floatAggregates = false).nodes.head.signature.left.map(_.code),
      Left("PLAN_TOO_LARGE"))
  }

  test("local relations beyond the limit") {
    import spark.implicits._
    root(Seq(1, 2, 3).toDF("x"))
    assertEquals(codes((1 to 70000).toDF("x")), Set("LOCAL_TOO_LARGE"))
  }

  test("readers that skip what they cannot read, and counts of unparsed lines") {
    val path = SignerFixture.directory.resolve("text.json").toString
    sql("select o_id, o_status from orders").write.mode("overwrite").json(path)
    root(spark.read.json(path).select("o_id"))
    assertEquals(codes(spark.read.json(path).groupBy().count()), Set("TOLERANT_READER"))
    assertEquals(codes(spark.read.option("mode", "DROPMALFORMED").json(path)), Set("TOLERANT_READER"))
    assertEquals(codes(spark.read.option("ignoreCorruptFiles", "true").parquet(
          SignerFixture.directory.resolve("orders").toString)), Set("TOLERANT_READER"))
  }

  private def python(command: String, evalType: Int = PythonEvalType.SQL_BATCHED_UDF, deterministic: Boolean = true) = {
    val function = SimplePythonFunction(
      command.getBytes.toSeq, Map.empty[String, String].asJava, List.empty[String].asJava, "python3", "3.11",
      new java.util.ArrayList(), null)
    val orders = sql("select o_id, o_status from orders")
    val udf =
      PythonUDF("f", function, LongType, Seq(ExpressionUtils.expression(orders("o_id"))), evalType, deterministic)
    orders.select(ExpressionUtils.column(udf).as("y"), orders("o_status"))
  }

  test("Python functions: by digest, or refused") {
    assertEquals(root(python("a")), root(python("a")))
    assertNotEquals(root(python("a")).columns, root(python("b")).columns)
    assertNotEquals(root(python("a")).columns, root(python("a", PythonEvalType.SQL_ARROW_BATCHED_UDF)).columns)
    assertEquals(codes(python("a", deterministic = false)), Set("NONDETERMINISTIC"))
    assertEquals(codes(python("a", PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF)), Set("OPAQUE_PYTHON"))
    val signed = Signer.sign(planned(python("a")), spark,
      fs => fs.map(f => UdfDigests.key(f) -> Left(org.apache.spark.sql.regions.Refusal("UDF_GLOBAL", "g"))).toMap,
      false)
    assertEquals(signed.nodes.head.signature.left.map(_.code), Left("UDF_GLOBAL"))
  }

  test("Scala functions: equal code and captured values, or refused") {
    def scaled(factor: Long) = {
      val f = functions.udf((x: Long) => x * factor)
      sql("select o_id, o_status from orders").select(f(functions.col("o_id")))
    }
    assertEquals(root(scaled(3)).columns, root(scaled(3)).columns)
    assertNotEquals(root(scaled(3)).columns, root(scaled(4)).columns)
    val thing = new Object
    val opaque = functions.udf((x: Long) => x + thing.hashCode())
    val plan = sql("select o_id from orders").select(opaque(functions.col("o_id")))
    assertEquals(codes(plan), Set("UNDIGESTIBLE_FUNCTION"))
    val random = functions.udf((x: Long) => x).asNondeterministic()
    assertEquals(codes(sql("select o_id from orders").select(random(functions.col("o_id")))), Set("NONDETERMINISTIC"))
  }

  test("a file changed behind Spark's back") {
    val path = SignerFixture.directory.resolve("changing")
    sql("select o_id from orders").coalesce(1).write.mode("overwrite").parquet(path.toString)
    val df = spark.read.parquet(path.toString)
    val before = sign(df)
    val listing = before.inputs(before.nodes.head).head
    assert(listing.unchanged())
    sql("select o_id from orders where o_id < 9").coalesce(1).write.mode("append").parquet(path.toString)
    assert(!listing.unchanged())
    assertEquals(codes(df), Set("INPUT_CHANGED"))
    val after = root(spark.read.parquet(path.toString))
    assertNotEquals(before.nodes.head.signature.map(_.lineage), Right(after.lineage))
    val file = Files.list(path).iterator().asScala.find(_.toString.endsWith(".parquet")).get
    val fresh = spark.read.parquet(path.toString)
    val touched = root(fresh)
    Files.setLastModifiedTime(file, java.nio.file.attribute.FileTime.fromMillis(1700000000000L))
    assertEquals(codes(fresh), Set("INPUT_CHANGED"))
    assertNotEquals(root(spark.read.parquet(path.toString)).lineage, touched.lineage)
    Files.delete(file)
    assertEquals(codes(fresh), Set("INPUT_CHANGED"))
  }

  test("traps: a path twice, reader options, partition columns, char and varchar, a dropped partition") {
    val path = SignerFixture.directory.resolve("customers").toString
    val once = root(spark.read.parquet(path))
    assertNotEquals(root(spark.read.parquet(path, path)).lineage, once.lineage)
    assertEquals(root(spark.read.parquet(path)).lineage, once.lineage)
    assertNotEquals(root(spark.read.option("datetimeRebaseMode", "LEGACY").parquet(path)).lineage, once.lineage)
    val parts = SignerFixture.directory.resolve("parts").toString
    val one = root(spark.read.option("basePath", parts).parquet(parts + "/p=p1").select("id"))
    val all = root(spark.read.parquet(parts).select("id"))
    assertNotEquals(one.lineage, all.lineage)
    sql("create table if not exists varied (c char(5), v varchar(9), p string) using parquet partitioned by (p)")
    sql("insert into varied values ('a', 'b', 'x'), ('c', 'd', 'y')")
    val table = root(sql("select c, v, p from varied"))
    assertEquals(root(sql("select c, v, p from varied")), table)
    sql("alter table varied drop partition (p = 'x')")
    assertNotEquals(root(sql("select c, v, p from varied")).lineage, table.lineage)
    sql("drop table varied")
  }

  test("metadata columns") {
    val df =
      spark.read.parquet(SignerFixture.directory.resolve("orders").toString).select("o_id", "_metadata.file_path")
    assertEquals(codes(df), Set("METADATA_COLUMN"))
  }

  test("a view over a refused source is refused") {
    spark.createDataFrame(
      spark.sparkContext.parallelize(Seq(Row(1L))),
      StructType(Seq(StructField("x", LongType)))).createOrReplaceTempView("raw")
    val df = sql("select o_id from orders join raw on o_id = x")
    assertEquals(refusal(df).code, "CHILD_REFUSED")
    assertEquals(refusal(df).detail, "RDD_SOURCE")
    assertEquals(refusal(sql("select c_id from customers where c_id > (select max(x) from raw)")).detail, "RDD_SOURCE")
  }
}
