package org.apache.spark.sql.regions.rules

import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.platforms.TypedPlan
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.types._

/**
 * Decides on a query that nobody has, beside the program's own start: to load the classes of a first decision takes the most of a
 * second, and Spark's own are among them. Nothing runs, nothing is told to the planner or noted anywhere.
 */
private[regions] object WarmUp {
  private val sessionMillis = 60000L

  def start(runtime: RegionsRuntime): Unit =
    // On a core that the program's start has for itself it would only be in the way.
    if (Runtime.getRuntime.availableProcessors > 1) {
      val thread = new Thread(() => Guard.run(runtime.sc.conf, "warming up")(run(runtime)), "spark_regions-warm-up")
      thread.setDaemon(true)
      thread.start()
    }

  private def run(runtime: RegionsRuntime): Unit = {
    val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(sessionMillis)
    def session = classic.SparkSession.getDefaultSession.filter(_.sparkContext eq runtime.sc)
    while (session.isEmpty && !runtime.sc.isStopped && System.nanoTime() < end) Thread.sleep(20)
    session.filterNot(_.sparkContext.isStopped).foreach { found =>
      val folder = Files.createTempDirectory("spark_regions-warm-up")
      try found.withActive(decide(found, runtime, folder))
      finally Files.delete(folder)
    }
  }

  private def decide(session: classic.SparkSession, runtime: RegionsRuntime, folder: Path): Unit = {
    val frame = query(session, folder)
    val analyzed = frame.queryExecution.normalized
    SharedDataFrames.of(analyzed)
    for (plan <- SharedPoints.optimized(session, analyzed)) {
      val sign = (each: LogicalPlan) => Signer.sign(each, session, NoFunctions, floatAggregates = true)
      val signed = sign(plan)
      val order = new RowOrder(session, signed)
      order.repeatable(signed.nodes.head)
      new RepeatedSubplans(signed, sign)()
      val typed = TypedPlan.of(session, signed, order.unread)
      val request =
        DecideRequest(session, runtime, 0, signed, Nil, 0, Nil, typed = typed, shape = QueryShape(signed))
      Frames.encode(request)
    }
  }

  private def query(session: classic.SparkSession, folder: Path): classic.DataFrame = {
    val schema =
      new StructType().add("k", LongType).add("d", DateType).add("n", DecimalType(12, 2)).add("s", StringType)
    val files = session.read.schema(schema).parquet(folder.toUri.toString)
    val other = files.select(col("k").as("j"), upper(col("s")).as("t"), year(col("d")).as("y"))
    files.join(other, col("k") === col("j")).where(col("n") > 1 && col("s").startsWith("a"))
      .groupBy("t", "y").agg(sum(col("n")), avg(col("n")), count("*"), max(col("d")))
      .orderBy("t", "y")
  }

  private object NoFunctions extends UdfDigests {
    override def digest(functions: Seq[PythonFunction]): Map[String, Either[Refusal, String]] = Map.empty
  }
}
