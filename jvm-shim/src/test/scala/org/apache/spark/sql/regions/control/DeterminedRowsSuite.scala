package org.apache.spark.sql.regions.control

import java.nio.file.Files

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.{Dataset, ExpressionUtils}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions.LocalSpark
import org.apache.spark.sql.types.LongType

/** Why an attempt may meet other rows at a parameter than the one before it did. */
class DeterminedRowsSuite extends munit.FunSuite {
  private lazy val spark = LocalSpark.session(_ => (), "spark.sql.adaptive.enabled" -> "false")
  override def beforeAll(): Unit = LocalSpark.use(spark)

  private def ids = spark.range(0, 100, 1, 2).toDF()
  private def kept(rows: DataFrame): DataFrame =
    rows.where(rows("id") >= ExpressionUtils.column(Param("low", LongType, "5")))
  private def reasons(rows: DataFrame): Seq[String] = {
    val plan = rows.asInstanceOf[Dataset[_]].queryExecution.executedPlan
    DeterminedRows.placed(plan).flatMap(_.expressions).flatMap(
      _.collect { case param: Param =>
        assert(param.place > 0)
        param.unordered
      })
  }
  private def reason(rows: DataFrame): String = {
    val found = reasons(kept(rows)).distinct // the scan of a cache shows its filter as well
    assertEquals(found.size, 1, found)
    found.head
  }

  test("files, ranges, and what is made of them in their order") {
    val path = Files.createTempDirectory("ids").resolve("ids").toString
    ids.write.parquet(path)
    val read = spark.read.parquet(path)
    val plus = udf((id: Long) => id + 1)
    Seq(
      ids,
      read,
      ids.coalesce(1),
      ids.union(ids),
      ids.sample(0.5, 7),
      ids.coalesce(1).limit(5),
      read.join(broadcast(ids), "id"),
      ids.select(explode(array(col("id"), lit(1L))).as("id")),
      ids.select((rand(7) * 10).cast("long").as("id")),
      ids.select(plus((rand(7) * 10).cast("long")).as("id"))
    )
      .foreach(rows => assertEquals(reason(rows), "", rows.queryExecution.toString))
    assertEquals(reason(spark.read.option("ignoreCorruptFiles", "true").parquet(path)),
      "files that cannot be read are left out")
  }

  test("rows that come in another order, or as others") {
    val other = udf((id: Long) => id + scala.util.Random.nextInt(3)).withName("other").asNondeterministic()
    assertEquals(reason(ids.repartition(3)), "rows of a shuffle come as they arrive")
    assertEquals(reason(ids.orderBy(col("id").desc)), "the order in which Sort gives rows is not known")
    Seq(ids.select(other(col("id")).as("id")), ids.select(other((rand(7) * 10).cast("long")).as("id")))
      .foreach(rows => assertEquals(reason(rows), "other may give other values", rows.queryExecution.toString))
  }

  test("cached rows are those of what was cached") {
    Seq(ids -> "", ids.repartition(2) -> "rows of a shuffle come as they arrive",
      kept(ids) -> "cached rows were computed with a parameter").foreach { case (rows, expected) =>
      val cached = rows.cache()
      try assertEquals(reason(cached), expected)
      finally cached.unpersist()
    }
  }
}
