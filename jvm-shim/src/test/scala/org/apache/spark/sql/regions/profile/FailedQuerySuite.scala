package org.apache.spark.sql.regions.profile

import java.util.concurrent.CopyOnWriteArrayList

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.regions.LocalSpark
import org.apache.spark.util.Utils

/** A query that failed before it had a plan is left alone: nothing of it is computed for us, and its error stays its own. */
class FailedQuerySuite extends munit.FunSuite {
  private val ended = new CopyOnWriteArrayList[QueryExecution]()
  private var spark: SparkSession = _
  @volatile private var broken = false

  /** Fails as a data source does that finds out late what it cannot do. */
  private object Broken extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] =
      if (broken) throw new UnsupportedOperationException("not planned") else Nil
  }

  private val listener = new ProfileListener(new QueryRegistry(10), _ => ())
  private val watch = new SparkListener {
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case end: SparkListenerSQLExecutionEnd => ended.add(end.qe)
      case _ =>
    }
  }

  override def beforeAll(): Unit = {
    spark = LocalSpark.session(_.injectPlannerStrategy(_ => Broken))
    Seq(listener, watch).foreach(spark.sparkContext.addSparkListener)
  }

  override def afterAll(): Unit = Seq(listener, watch).foreach(spark.sparkContext.removeSparkListener)

  override def beforeEach(context: BeforeEach): Unit = {
    LocalSpark.use(spark)
    broken = false
  }

  /** The error of `run`, and the execution that Spark told listeners of, when they have all heard of it. */
  private def failed(run: => Unit): (Throwable, QueryExecution) = {
    spark.sparkContext.listenerBus.waitUntilEmpty()
    ended.clear()
    val error = intercept[Exception](run)
    spark.sparkContext.listenerBus.waitUntilEmpty()
    assertEquals(ended.size, 1)
    (error, ended.get(0))
  }

  private def told(error: Throwable): Seq[String] = Utils.exceptionString(error).linesIterator.toSeq

  /** Whether a lazy part of the execution was asked for. */
  private def asked(execution: QueryExecution, part: String): Boolean = {
    val field = classOf[QueryExecution].getDeclaredField(part)
    field.setAccessible(true)
    val lazily = field.get(execution)
    val evaluated = lazily.getClass.getDeclaredField("bitmap$0")
    evaluated.setAccessible(true)
    evaluated.getBoolean(lazily)
  }

  test("analysis failed: nothing after it is asked for") {
    val (error, execution) = failed(spark.sql("SELECT * FROM nowhere"))
    assert(asked(execution, "lazyAnalyzed"))
    for (part <- Seq("lazyCommandExecuted", "lazyNormalized", "lazyOptimizedPlan", "lazySparkPlan", "lazyExecutedPlan"))
      assert(!asked(execution, part), part)
    assert(!told(error).exists(_.contains(classOf[ProfileListener].getName)), told(error).mkString("\n"))
  }

  test("planning failed: it is not tried again, and the error does not name us") {
    val frame = spark.range(5).selectExpr("id + 1")
    broken = true
    val (error, _) = failed(frame.collect())
    assert(told(error).exists(_.contains("not planned")))
    assert(!told(error).exists(_.contains(classOf[ProfileListener].getName)), told(error).mkString("\n"))
  }
}
