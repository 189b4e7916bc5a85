package org.apache.spark.sql.regions.exec

import java.io.File
import java.nio.file.Files

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._

/** Prints what the tee costs beside the plain query, a written table and a disk persist. Not a test. */
object Measure extends ExecSuite {
  override lazy val spark: SparkSession = ExecSession.spark

  // CPU seconds of tasks, because other work on the machine distorts wall time.
  private val cpu = new java.util.concurrent.atomic.AtomicLong()
  private def listen(): Unit = spark.sparkContext.addSparkListener(
    new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit = {
        cpu.addAndGet(end.taskMetrics.executorCpuTime)
        ()
      }
    })

  private def seconds(body: => Unit): Double = {
    val start = cpu.get()
    body
    spark.sparkContext.listenerBus.waitUntilEmpty()
    (cpu.get() - start) / 1e9
  }

  private def wall(body: => Unit): Double = {
    val start = System.nanoTime()
    body
    (System.nanoTime() - start) / 1e9
  }

  def main(args: Array[String]): Unit = {
    listen()
    val rows = args.headOption.map(_.toLong).getOrElse(5000000L)
    val path = new File(Files.createTempDirectory("measure").toFile, "in").getPath
    spark.range(0, rows, 1, 4).selectExpr(
      "id",
      "cast(id % 1000 as int) as k",
      "hash(id) / 7.0D as d",
      "cast(hash(id, 1) % 100000 as decimal(12,2)) as m",
      "date_add(date'1992-01-01', cast(id % 2500 as int)) as day",
      "concat('customer#', hash(id, 3) % 50000) as s"
    )
      .write.parquet(path)
    def base: DataFrame = spark.read.parquet(path).where("k >= 0")
    def report(df: DataFrame): Unit = df.groupBy("k")
      .agg(sum("d"), max("m"), min("day"), sum(length(col("s"))), sum("id")).collect()
    def teed(): (Double, Store) = {
      val store = storeFor(base)
      val t = seconds(report(tee(base, store)))
      store.committed()
      (t, store)
    }
    def written(): (Double, Double) = {
      val out = path + "-" + System.nanoTime()
      (seconds(base.write.option("compression", EntryFile.codec.name.toLowerCase).parquet(out)),
        seconds(report(spark.read.parquet(out))))
    }
    def persisted(): Double = {
      val df = base.persist(org.apache.spark.storage.StorageLevel.DISK_ONLY)
      try seconds(report(df))
      finally df.unpersist(true)
    }
    println("task CPU seconds")
    for (round <- 0 to 3) {
      val plain = seconds(report(base))
      val (tee, store) = teed()
      val entry = opened(store)
      val load = seconds(report(recycled(base, entry)))
      val narrow = seconds(recycled(base, entry).where("id < 100000").agg(sum("d")).collect())
      val (write, read) = written()
      println(f"round $round: plain $plain%.2f tee $tee%.2f " +
        f"(+${(tee - plain) / rows * 1e9}%.0f ns/row) " +
        f"load $load%.2f narrow load $narrow%.2f write $write%.2f read $read%.2f disk persist ${persisted()}%.2f " +
        f"bytes ${entry.bytes / 1e6}%.0f MB; open ${wall((1 to 200).foreach(_ => opened(store))) * 5}%.2f ms")
    }
  }
}
