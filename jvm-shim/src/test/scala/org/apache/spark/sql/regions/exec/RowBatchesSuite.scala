package org.apache.spark.sql.regions.exec

import org.apache.spark.SparkConf
import org.apache.spark.serializer.{JavaSerializer, KryoSerializer}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.storage.StorageLevel

class RowBatchesSuite extends ExecSuite {
  import EveryType._

  private def kept(df: DataFrame, level: String, persisted: Persisted = new Persisted): DataFrame = {
    val plan = df.asInstanceOf[Dataset[_]].queryExecution.analyzed
    val held = persisted.open(spark, "p1", plan, plan.output.map(_.name), Set.empty, level)
    assert(RowBatches.time(held.relation).isDefined, "not in the format of rows")
    frame(held.relation)
  }

  private def rows(df: DataFrame): Seq[String] = df.collect().map(bits).toSeq.sorted

  for {
    level <- Seq("MEMORY_AND_DISK", "MEMORY_ONLY_SER", "DISK_ONLY")
    codegen <- Seq("true", "false")
  } test(s"every type comes back exactly: $level codegen=$codegen") {
    withConf("spark.sql.timeType.enabled" -> "true", "spark.sql.codegen.wholeStage" -> codegen) {
      // Partitions without rows among them.
      val df = spark.range(0, 40, 1, 7).where("id < 11 or id > 30")
        .selectExpr(("case when id % 2 = 0 then id end as e" +: "id as k" +: everything): _*)
      val again = kept(df, level)
      assertEquals(again.schema.map(_.dataType), df.schema.map(_.dataType))
      assertEquals(rows(again), rows(df))
      assertEquals(rows(again), rows(df), "a second read")
      assertEquals(rows(again.select("m", "k", "s")), rows(df.select("m", "k", "s")))
      assertEquals(again.where("k > 35 and i = 3").count(), df.where("k > 35 and i = 3").count())
      assertEquals(again.selectExpr("count(*)").collect().toSeq, df.selectExpr("count(*)").collect().toSeq)
    }
  }

  test("rows larger than a batch, and many batches of one partition") {
    val df = spark.range(0, 9, 1, 2).selectExpr("id", "repeat(cast(id as string), 700000) as long")
    assertEquals(rows(kept(df, "DISK_ONLY").selectExpr("id", "md5(long)")), rows(df.selectExpr("id", "md5(long)")))
    val many = spark.range(0, 200000, 1, 1).selectExpr("id", "id % 7 as m", "uuid() as u")
    val again = kept(many, "MEMORY_AND_DISK")
    assertEquals(again.selectExpr("sum(id)", "count(distinct u)").collect().head.toSeq, Seq(19999900000L, 200000L))
  }

  test("rows that are no binary rows yet, and a scan's columns in another order") {
    val local = frame(
      spark.sql("values (1, 'a', array(1)), (2, null, null) as t(n, s, a)")
        .asInstanceOf[Dataset[_]].queryExecution.analyzed)
    val again = kept(local, "MEMORY_AND_DISK")
    assertEquals(rows(again.select("a", "n", "s")), rows(local.select("a", "n", "s")))
    val scan = collect(executed(again.select("s"))) { case scan: InMemoryTableScanExec => scan }
    assertEquals(scan.flatMap(_.output.map(_.name)), Seq("s"))
  }

  test("a batch goes through either serializer of Spark's") {
    val batch = RowBatch(3, 40, Array[Byte](1, 2, 3))
    Seq(new KryoSerializer(new SparkConf), new JavaSerializer(new SparkConf)).map(_.newInstance()).foreach {
      serializer =>
        val again = serializer.deserialize[RowBatch](serializer.serialize(batch))
        assertEquals((again.numRows, again.rawBytes, again.compressed.toSeq), (3, 40, Seq[Byte](1, 2, 3)))
    }
  }

  test("its size and what keeping took are known once every partition is kept, and gone when it is dropped") {
    val persisted = new Persisted
    val df = spark.range(0, 100000, 1, 4).selectExpr("id", "cast(id as string) as s")
    val again = kept(df, "MEMORY_AND_DISK", persisted)
    assertEquals(persisted.bytes("p1"), None)
    again.collect()
    assert(persisted.bytes("p1").exists(bytes => bytes > 100000 && bytes < 5000000), persisted.bytes("p1").toString)
    assert(persisted.seconds("p1").exists(seconds => seconds > 0 && seconds < 60), persisted.seconds("p1").toString)
    persisted.drop("p1")
    assertEquals(persisted.bytes("p1"), None)
    assertEquals(persisted.missing("p1").map(_.code), Some("ENTRY_MISSING"))
    assertEquals(spark.sparkContext.getPersistentRDDs.values.count(_.getStorageLevel == StorageLevel.NONE), 0)
  }
}
