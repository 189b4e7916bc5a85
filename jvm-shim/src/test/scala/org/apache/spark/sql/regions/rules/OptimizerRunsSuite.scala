package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.regions.LocalSpark

/** Which runs of the optimizer are taken for a query's. */
class OptimizerRunsSuite extends munit.FunSuite {

  /** Each plan that reached the rule, whether as a subquery, and what was said of the run. */
  private val seen = mutable.Buffer.empty[(Boolean, Boolean)]
  private var nested: Option[() => Unit] = None
  private var spark: SparkSession = _

  private object Look extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      seen += (plan.isInstanceOf[Subquery] -> OptimizerRuns.ofQuery)
      plan
    }
  }

  /** A library's rule that optimizes a plan of its own while the optimizer works on a query. */
  private object Library extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      val run = nested
      nested = None
      run.foreach(_())
      plan
    }
  }

  override def beforeAll(): Unit = {
    spark = LocalSpark.session { extensions =>
      extensions.injectPreCBORule(_ => Look)
      extensions.injectOptimizerRule(_ => Library)
    }
    spark.range(10).createOrReplaceTempView("numbers")
  }

  override def beforeEach(context: BeforeEach): Unit = LocalSpark.use(spark)

  private def saw(body: => Unit): Seq[(Boolean, Boolean)] = {
    seen.clear()
    body
    seen.toSeq
  }

  private val (query, subquery) = (false -> true, true -> true)
  private val (look, lookBelow) = (false -> false, true -> false)
  private val inside =
    "SELECT id FROM numbers WHERE id > (SELECT avg(id) FROM numbers WHERE id < (SELECT 5 + max(id) FROM numbers))"

  private def analyzed(text: String): LogicalPlan = spark.sql(text).queryExecution.analyzed

  test("a query, and subqueries inside of subqueries") {
    assertEquals(saw(spark.sql("SELECT count(*) FROM numbers").collect()), Seq(query))
    val all = saw(spark.sql(inside).collect())
    assertEquals(all.last, query)
    assert(all.count(_ == subquery) >= 2, all)
    assertEquals(all.toSet, Set(query, subquery))
  }

  test("a plan that is asked for, or explained, is a query's") {
    assertEquals(saw(spark.sql("SELECT count(*) FROM numbers").queryExecution.optimizedPlan), Seq(query))
    assertEquals(saw(spark.sql("EXPLAIN SELECT count(*) FROM numbers").collect()).head, query)
  }

  test("the optimizer called by hand, with any tracker") {
    val execution = spark.sql(inside).queryExecution
    val optimizer = spark.sessionState.optimizer
    for (run <- Seq[() => Unit](
        () => optimizer.execute(execution.analyzed),
        () => optimizer.executeAndTrack(execution.analyzed, new QueryPlanningTracker),
        () => optimizer.executeAndTrack(execution.analyzed, execution.tracker)
      )) {
      assertEquals(saw(run()).toSet, Set(look, lookBelow))
    }
  }

  test("arguments are looked at, and the query with them is a query") {
    val all =
      saw(spark.sql("SELECT count(*) FROM numbers WHERE id > :a AND id < :b", Map("a" -> 3, "b" -> lit(8))).collect())
    assertEquals(all, Seq(look, query))
  }

  test("a library that optimizes a plan, or runs a query, inside of a query's optimizer run") {
    val other = analyzed(inside)
    nested = Some(() => spark.sessionState.optimizer.execute(other))
    assertEquals(saw(spark.sql("SELECT count(*) FROM numbers").collect()).toSet, Set(look, lookBelow, query))
    nested = Some(() => spark.sql("SELECT max(id) FROM numbers").collect())
    assertEquals(saw(spark.sql("SELECT count(*) FROM numbers").collect()), Seq(query, query))
  }

  test("a captured plan is no query's, wherever it is captured") {
    val frame: DataFrame = spark.sql(inside)
    assertEquals(saw(OptimizerRuns.captureOptimized(spark, frame.queryExecution.analyzed)).toSet, Set(look, lookBelow))
  }

  test("a batch of a stream is optimized by another method") {
    val folder = java.nio.file.Files.createTempDirectory("stream").toString
    spark.range(10).write.parquet(s"$folder/in")
    val stream = spark.readStream.schema("id long").parquet(s"$folder/in").writeStream.format("noop")
      .option("checkpointLocation", s"$folder/checkpoint")
      .trigger(org.apache.spark.sql.streaming.Trigger.AvailableNow())
    assertEquals(saw(stream.start().awaitTermination()).toSet, Set(look))
  }
}
