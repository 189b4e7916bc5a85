package org.apache.spark.sql.regions.profile

import java.nio.file.Files

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.regions.LocalSpark

/** Physical plans that Spark makes, and what their expressions are taken to cost. */
class ExpressionCostsSuite extends munit.FunSuite with AdaptiveSparkPlanHelper {
  private var spark: SparkSession = _

  override def beforeAll(): Unit = {
    spark = LocalSpark.session(_ => (), "spark.sql.autoBroadcastJoinThreshold" -> "-1")
    val folder = Files.createTempDirectory("costs").toString
    spark.range(0, 100, 1, 2)
      .selectExpr("id", "id % 7 as k", "cast(id as string) as text", "cast(id as decimal(20, 4)) as wide",
        "current_date() as day")
      .write.mode("overwrite").parquet(folder)
    spark.read.parquet(folder).createOrReplaceTempView("costs")
  }

  private def costs[P <: SparkPlan](frame: DataFrame)(wanted: PartialFunction[SparkPlan, P]): Seq[Double] =
    collect(frame.queryExecution.executedPlan)(wanted).map(ExpressionCosts(_))

  private def projected(expression: String): Double =
    costs(spark.sql(s"SELECT $expression AS x, k FROM costs")) { case each: ProjectExec => each }.sum

  test("columns that are moved cost nothing more, computed ones by what they are") {
    assertEquals(projected("id + 1"), 0.0)
    assert(projected("upper(text)") > 0)
    assert(projected("size(split(text, ' +'))") > projected("upper(text)"))
    assert(projected("date_format(day, 'yyyy-MM')") > projected("year(day)"))
    assert(projected("wide * wide") > projected("id * id"))
  }

  test("what occurs twice is evaluated once") {
    val once = projected("struct(upper(text) AS a)")
    assertEqualsDouble(projected("struct(upper(text) AS a, upper(text) AS b)"), once, 1e-9)
  }

  test("filters and conditions of joins count") {
    val filters = costs(spark.sql("SELECT id FROM costs WHERE text RLIKE 'a.*b'")) { case each: FilterExec => each }
    assert(filters.sum > 0)
    val joins = costs(
      spark.sql("SELECT a.id FROM costs a JOIN costs b ON a.k = b.k AND concat(a.text, b.text) RLIKE 'a.*b'")) {
      case each: BaseJoinExec => each
    }
    assert(joins.sum > 0)
  }

  test("an aggregate's inputs are evaluated where its buffers are made, not where they are merged") {
    val both = costs(spark.sql("SELECT k, max(md5(text)) FROM costs GROUP BY k")) { case each: BaseAggregateExec =>
      each
    }
    assertEquals(both.size, 2)
    assertEquals(both.count(_ > 0), 1)
  }
}
