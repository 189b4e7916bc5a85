package org.apache.spark.sql.regions.exec

import java.nio.file.{Files, Path => JPath}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.regions.Refusal

class RecordedWriteSuite extends ExecSuite {

  private def recorded(
      rows: DataFrame,
      target: JPath,
      by: Seq[String] = Nil,
      entries: Option[Seq[String]] = None): RecordedWrite = {
    val write = new RecordedWrite(1, "rows", new Path(target.toUri), "parquet", Nil, entries)
    val before = spark.experimental.extraOptimizations
    spark.experimental.extraOptimizations = Seq(
      new Rule[LogicalPlan] {
        override def apply(plan: LogicalPlan): LogicalPlan = {
          plan.foreach {
            case command: InsertIntoHadoopFsRelationCommand => command.setTagValue(RecordedWrite.tag, write)
            case _ =>
          }
          plan
        }
      })
    try rows.write.mode("append").partitionBy(by: _*).parquet(target.toString)
    finally spark.experimental.extraOptimizations = before
    write
  }

  private def there(target: JPath): Set[String] =
    Files.walk(target).iterator.asScala.filter(_.getFileName.toString.startsWith("part-"))
      .map(target.relativize(_).toString).toSet

  private def target(): JPath = folder().toPath.resolve("written")

  private def failing(fails: TaskContext => Boolean): DataFrame = {
    val same = udf { (id: Long) =>
      if (id % 250 == 249 && fails(TaskContext.get())) throw new IllegalStateException("fails")
      id
    }
    spark.range(0, 1000, 1, 4).select(same(col("id")).as("id"), (col("id") % 3).as("p"))
  }

  test("all files that are there, also of partitions, and none of an earlier write") {
    val to = target()
    val first = recorded(failing(_ => false), to, Seq("p"))
    assertEquals(first.files, Some(there(to)))
    assertEquals(first.files.get.size, 12)
    val second = recorded(failing(_ => false), to, Seq("p"))
    assertEquals(second.files.get ++ first.files.get, there(to))
    assertEquals(second.files.get & first.files.get, Set.empty[String])
  }

  test("a shuffle planned anew by adaptive execution") {
    val to = target()
    val write = recorded(failing(_ => false).groupBy("p").count(), to)
    assert(write.written)
    assertEquals(write.files, Some(there(to)))
  }

  test("attempts that fail after they have written tell nothing") {
    val to = target()
    val write = recorded(failing(_.attemptNumber() == 0), to, Seq("p"))
    assertEquals(write.files, Some(there(to)))
    assertEquals(spark.read.parquet(to.toString).count(), 1000L)
  }

  for (others <- Seq(false, true)) test(s"rows that are stored by ${if (others) "other" else "the same"} tasks") {
    val rows = spark.range(0, 1000, 1, 4).toDF()
    val store = storeFor(rows)
    val teed = tee(rows, store)
    val write = recorded(if (others) teed.repartition(3) else teed, target(), entries = Some(Seq(store.order.entry)))
    assertEquals(write.spoiled.map(_.code), Option.when(others)("FLOAT_AGGREGATE"))
    assert(write.written)
    store.committed()
  }

  test("what is computed again in place of an entry") {
    val gone = Refusal("ENTRY_MISSING")
    val found = Seq(None, Some(Nil)).map { entries =>
      val write = recorded(failing(_ => false), target(), entries = entries)
      write.fellBack(gone)
      write.spoiled
    }
    assertEquals(found, Seq(None, Some(gone)))
  }

  test("a write that fails is not written") {
    val write = new RecordedWrite(1, "rows", new Path("file:/x"), "parquet", Nil, None)
    assert(!write.written && write.files.isEmpty)
    intercept[Exception](recorded(failing(_.partitionId() == 1), target()))
  }
}
