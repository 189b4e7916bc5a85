package org.apache.spark.sql.regions.rules

import java.nio.file.Files

import org.apache.spark.sql.{DataFrame, classic}
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions.LocalSpark

/** What the rule is built from, in a session with our rules and no planner. */
class NeighboursSuite extends munit.FunSuite {
  private lazy val spark: classic.SparkSession = LocalSpark.session { extensions =>
    extensions.injectPlanNormalizationRule(new SharedDataFramesRule(_))
    extensions.injectPreCBORule(new LineageRule(_))
  }
  private lazy val folder = Files.createTempDirectory("neighbours").toString

  override def beforeAll(): Unit = {
    LocalSpark.use(spark)
    spark.range(100).selectExpr("id", "id % 5 as k").write.parquet(s"$folder/t")
    table.createOrReplaceTempView("t")
  }

  private def table: DataFrame = spark.read.parquet(s"$folder/t")

  private def analyzed(df: DataFrame): LogicalPlan = df.asInstanceOf[classic.DataFrame].queryExecution.analyzed

  test("a bypass ends where it began, also when it is nested or fails") {
    import OptimizerRuns.{bypass, bypassed}
    assert(!bypassed)
    assert(bypass(bypassed && bypass(bypassed) && bypassed))
    intercept[IllegalStateException](bypass(throw new IllegalStateException("x")))
    assert(!bypassed)
  }

  test("captured: pruned, pushed down, and nothing later") {
    val query = table.as("l").join(table.as("r"), col("l.id") === col("r.k")).where("l.k > 2 and r.id < 50")
      .groupBy("l.k").count()
    val plan = OptimizerRuns.captureOptimized(spark, analyzed(query)).get
    assertEquals(plan.output.map(_.exprId), analyzed(query).output.map(_.exprId))
    val join = plan.collectFirst { case j: Join => j }.get
    assertEquals(join.children.map(_.exists(_.isInstanceOf[Filter])), Seq(true, true))
    val in = OptimizerRuns.captureOptimized(spark, analyzed(spark.sql("select * from t where id in (select k from t)")))
    assert(in.get.exists(_.expressions.exists(SubqueryExpression.hasSubquery)), in)
    assert(!in.get.exists(_.isInstanceOf[Join]), in)
  }

  test("a capture leaves other optimizer runs alone, and finds nothing where there is no rule to see the plan") {
    val query = analyzed(table.where("k = 1"))
    assert(OptimizerRuns.bypass(OptimizerRuns.captureOptimized(spark, query).isDefined && OptimizerRuns.bypassed))
    assert(OptimizerRuns.captureOptimized(spark, query).isDefined)
    assertEquals(classic.Dataset.ofRows(spark, query).count(), 20L)
    assertEquals(OptimizerRuns.captureOptimized(spark, analyzed(spark.range(3).toDF())), None)
    val plain = LocalSpark.session(_ => ())
    try assertEquals(OptimizerRuns.captureOptimized(plain, query), None)
    finally LocalSpark.use(spark)
  }

  /** What is repeated in the query that `body` runs. */
  private def repeated(body: => Unit): Seq[(LogicalPlan, Int)] = {
    SharedDataFrames.repeated(SharedDataFrames.taken(), firstUse = false)
    body
    SharedDataFrames.repeated(SharedDataFrames.taken(), firstUse = false).map(s => s.plan -> s.seen)
  }

  test("a DataFrame is counted once for each executed query that is built on it") {
    val base = table.where("id > 3").as("x").join(table.as("y"), col("x.id") === col("y.k")).select("x.id", "y.k")
    assertEquals(repeated(base.groupBy("k").count().collect()).map(_._2), Nil)
    val second = repeated(base.agg(max("id")).collect())
    // Twice, since `base` is itself built on a DataFrame.
    assertEquals(second.map(_._2), Seq(2, 2))
    assertEquals(second.head._1.output.map(_.exprId), analyzed(base).output.map(_.exprId))
    assertEquals(repeated(base.where("k = 2").limit(1).collect()).map(_._2), Seq(3, 3))
    assertEquals(SharedDataFrames.repeated(SharedDataFrames.taken(), firstUse = false), Nil)
  }

  test("not counted: the query itself, what costs nothing, runs of our own; counted: what a command reads") {
    val base = table.where("id > 3")
    assertEquals(repeated { base.collect(); base.collect() }, Nil)
    val cheap = table.select("id")
    assertEquals(repeated { cheap.groupBy("id").count().collect(); cheap.agg(max("id")).collect() }, Nil)
    assertEquals(repeated(OptimizerRuns.bypass { (1 to 3).foreach(_ => base.agg(max("id")).collect()) }), Nil)
    assertEquals(repeated(base.agg(max("id")).collect()), Nil)
    base.write.mode("overwrite").parquet(s"$folder/out")
    assertEquals(repeated(base.agg(min("id")).collect()).map(_._2), Seq(3))
  }

  test("at most two, the widest first") {
    val one = table.where("id > 3")
    val two = one.groupBy("k").agg(sum("id").as("s"))
    val three = two.where("s > 7")
    three.agg(max("s")).collect()
    val found = repeated(three.agg(min("s")).collect()).map(_._1.output.map(_.name))
    assertEquals(found.size, 2)
    assertEquals(found.head, Seq("k", "s"))
  }

  test("one subquery's plan is exchanged, by identity, the others stay") {
    val plan = analyzed(
      spark.sql(
        "select id from t where id = (select max(k) from t) and k in (select k from t) and k < (select max(k) from t)"))
    def subplans(p: LogicalPlan) = p.flatMap(_.expressions).flatMap(_.collect { case s: SubqueryExpression => s.plan })
    val before = subplans(plan)
    assertEquals(before.size, 3)
    val filter = plan.collectFirst { case f: Filter => f }.get
    val other = LocalRelation(before.head.output)
    val after = subplans(Subplans.replace(filter, Seq(before.head -> other)))
    assertEquals(after.zip(before).map { case (a, b) => a eq b }, Seq(false, true, true))
    assert(after.head eq other)
    assert(Subplans.replace(filter, Seq(before.head.clone() -> other)).fastEquals(filter))
  }
}
