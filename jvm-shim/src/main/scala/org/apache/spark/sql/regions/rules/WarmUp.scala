package org.apache.spark.sql.regions.rules

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.{SparkSession, classic}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.platforms.TypedPlan
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.types._
import org.apache.spark.util.Utils

/**
 * Decides on a query that nobody has, beside the program's own start: to load the classes of a first decision takes the most of a
 * second, and Spark's own are among them. Nothing runs, nothing is told to the planner or noted anywhere. It begins when the program
 * makes its session's analyzer: what the session is made of may still be set before.
 */
private[regions] final class WarmUp(session: SparkSession) extends Rule[LogicalPlan] {
  (session, RegionsRuntime.of(session)) match {
    case (known: classic.SparkSession, Right(runtime)) if runtime.firstAnalyzer() => WarmUp.start(known, runtime)
    case _ =>
  }

  override def apply(plan: LogicalPlan): LogicalPlan = plan
}

private object WarmUp {

  private def start(session: classic.SparkSession, runtime: RegionsRuntime): Unit =
    // On a core that the program's start has for itself it would only be in the way.
    if (Runtime.getRuntime.availableProcessors > 1) {
      def work(): Unit = Guard.run(session.sparkContext.conf, "warming up")(run(session, runtime))
      val thread = new Thread(() => work(), "spark_regions-warm-up")
      thread.setDaemon(true)
      thread.start()
    }

  private def run(session: classic.SparkSession, runtime: RegionsRuntime): Unit = {
    val folder = Utils.createTempDir(namePrefix = "spark_regions-warm-up")
    try session.withActive(decide(session, runtime, folder.toURI.toString))
    catch {
      // A short program is over before.
      case error: Throwable if Guard.isOurs(error) && session.sparkContext.isStopped =>
    } finally folder.delete()
  }

  private def decide(session: classic.SparkSession, runtime: RegionsRuntime, folder: String): Unit = {
    val frame = query(session, folder)
    val analyzed = frame.queryExecution.normalized
    SharedDataFrames.of(analyzed, analyzed)
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

  private def query(session: classic.SparkSession, folder: String): classic.DataFrame = {
    val schema =
      new StructType().add("k", LongType).add("d", DateType).add("n", DecimalType(12, 2)).add("s", StringType)
    val files = session.read.schema(schema).parquet(folder)
    val other = files.select(col("k").as("j"), upper(col("s")).as("t"), year(col("d")).as("y"))
    files.join(other, col("k") === col("j")).where(col("n") > 1 && col("s").startsWith("a"))
      .groupBy("t", "y").agg(sum(col("n")), avg(col("n")), count("*"), max(col("d")))
      .orderBy("t", "y")
  }

  private object NoFunctions extends UdfDigests {
    override def digest(functions: Seq[PythonFunction]): Map[String, Either[Refusal, String]] = Map.empty
  }
}
