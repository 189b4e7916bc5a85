package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

class StorableTypesSuite extends ExecSuite {
  import EveryType._

  private def frameOfAll =
    spark.range(0, 6, 1, 3).selectExpr(("case when id % 2 = 0 then id end as e" +: everything): _*)

  private def names = everything.map(_.split(" as ").last.trim)

  for {
    vectorized <- Seq("true", "false")
    codegen <- Seq("true", "false")
    hostile <- Seq(true, false)
  } test(s"every storable type comes back exactly: vectorized=$vectorized codegen=$codegen hostile confs=$hostile") {
    val confs = if (!hostile) Nil
    else Seq(
      "spark.sql.parquet.datetimeRebaseModeInWrite" -> "EXCEPTION",
      "spark.sql.parquet.int96RebaseModeInWrite" -> "LEGACY",
      "spark.sql.parquet.datetimeRebaseModeInRead" -> "LEGACY",
      "spark.sql.parquet.outputTimestampType" -> "INT96",
      "spark.sql.parquet.writeLegacyFormat" -> "true",
      "spark.sql.parquet.compression.codec" -> "gzip",
      "spark.sql.parquet.binaryAsString" -> "true",
      "spark.sql.session.timeZone" -> "Asia/Kathmandu"
    )
    withConf(
      confs ++ Seq(
        "spark.sql.parquet.enableVectorizedReader" -> vectorized,
        "spark.sql.timeType.enabled" -> "true",
        "spark.sql.codegen.wholeStage" -> codegen): _*) {
      val df = frameOfAll
      val again = roundTrip(df)
      assertEquals(again.schema, df.schema)
      assertEquals(again.collect().map(bits).toSeq, df.collect().map(bits).toSeq)
      if (hostile && codegen == "true") names.foreach { name =>
        def column(of: DataFrame) = of.select(s"`$name`").collect().map(bits).toSeq
        assertEquals(column(again), column(df))
      }
    }
  }

  test("what cannot be stored is refused, and its query runs") {
    val refused = Seq(
      "null as void", "array(null) as av",
      "make_interval(0, 1, 2) as ci", "named_struct('x', make_interval(0, 1)) as sci")
    refused.foreach { text =>
      val df = spark.range(3).selectExpr(text)
      val store = storeFor(df)
      assertEquals(tee(df, store).collect().length, 3)
      assertEquals(store.abandoned().code, "TYPE_NOT_STORABLE", text)
      assert(!store.directory.exists())
    }
    assertEquals(StorableTypes.refusal(StructType(Nil)).map(_.code), Some("NO_COLUMNS"))
    assertEquals(
      StorableTypes.refusal(new StructType().add("s", new StructType())).map(_.detail), Some("struct without fields"))
    assert(StorableTypes.refusal(new StructType().add("t", ObjectType(classOf[String]))).isDefined)
  }

  test("duplicate and odd column names, and metadata") {
    val metadata = new MetadataBuilder().putString("comment", "x").build()
    val df = spark.range(5).select(col("id").as("a.b`", metadata), col("id").as("A"), (col("id") + 1).as("A"))
    val again = roundTrip(df)
    assertEquals(again.schema, df.schema)
    assertEquals(sorted(again.collect()), sorted(df.collect()))
  }
}
