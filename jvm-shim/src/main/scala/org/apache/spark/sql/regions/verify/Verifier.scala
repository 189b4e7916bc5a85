package org.apache.spark.sql.regions.verify

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, Executors, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.Tee
import org.apache.spark.sql.regions.profile.{ProfileListener, RanPlans}
import org.apache.spark.sql.regions.rules.OptimizerRuns

/**
 * Runs some queries once more when they have ended, as decided and as plain Spark, and compares their rows and seconds.
 *
 * On a thread and in a job group of its own, outside of any SQL execution: neither the query nor who listens to queries notices. Only
 * where the plan as a whole has an identity, that is, is pure; its sources have it still, before and after; and its rows are few. The
 * arrangement of skewed stages is not compared.
 */
final class Verifier(sc: SparkContext, recycling: Recycling, profile: ProfileListener) extends Logging {
  import Verifier._

  private val chosen = new ConcurrentHashMap[Long, Chosen]()
  private val worker = Executors.newSingleThreadExecutor { (task: Runnable) =>
    val thread = new Thread(task, "spark_regions-verify")
    thread.setDaemon(true)
    thread
  }

  profile.ends.add(end => Option(chosen.get(end.query)).foreach(ended(end.query, _, end.execution, end.failed)))

  /**
   * The query will run both ways.
   *
   * @param rewritten as decided
   * @param signature of the root
   */
  def choose(session: SparkSession, query: Long, rewritten: LogicalPlan, signature: Signature, seconds: Double): Unit =
    if (chosen.size < mostChosen) {
      val copy = session.cloneSession()
      copy.sessionState.conf.setConf(RegionsConf.skewEnabled, false)
      chosen.put(query, new Chosen(copy, rewritten, signature, seconds, Thread.currentThread.getId))
    }

  /** None of the queries that run now gives the rows of its plan. */
  def forget(): Unit = chosen.clear()

  /** What is known of a chosen query's size once it has run. */
  def ran(event: wire.Executed, plans: RanPlans): Unit = Option(chosen.get(event.query)).foreach { query =>
    val read = plans.loads.collectFirst { case (mark, found) if mark.query == event.query && mark.node == 0 => found }
    query.rows = event.nodes.headOption.flatMap(_.rows).orElse(read.flatMap(_.rows))
  }

  /** Waits for what the thread has run before to be compared; seconds. */
  def await(): Double =
    if (chosen.isEmpty) 0
    else {
      val start = System.nanoTime()
      // One whose end nobody tells of is forgotten.
      chosen.asScala.toSeq.filter(_._2.thread == Thread.currentThread.getId)
        .filterNot(_._2.heard.await(heardMillis, TimeUnit.MILLISECONDS)).foreach(each => chosen.remove(each._1))
      // Also where another thread asked for it: two queries at once would measure nothing.
      chosen.values.asScala.filter(_.heard.getCount == 0).foreach(_.done.await())
      (System.nanoTime() - start) / 1e9
    }

  def close(): Unit = {
    worker.shutdownNow()
    if (!chosen.isEmpty) logWarning(s"The application ended before ${chosen.size} queries had run both ways")
    chosen.values.asScala.foreach(_.done.countDown())
    chosen.clear()
  }

  private def ended(query: Long, what: Chosen, execution: QueryExecution, failed: Boolean): Unit = {
    def over(): Unit = {
      chosen.remove(query)
      what.done.countDown()
    }
    what.heard.countDown()
    // Told on the listeners' thread, before the query itself is over for them.
    val alone = profile.open <= 1
    if (failed || worker.isShutdown) over()
    else worker.execute { () =>
      try Guard.run(sc.conf, "running a query both ways")(verify(query, what, execution, alone))
      finally over()
    }
  }

  private def verify(query: Long, what: Chosen, execution: QueryExecution, idle: Boolean): Unit = {
    sc.setJobGroup("spark_regions verify", s"Query $query, both ways", interruptOnCancel = true)
    val session = what.session
    val rows = what.rows.orElse(execution.optimizedPlan.maxRows)
    val width = execution.analyzed.output.map(_.dataType.defaultSize.toLong).sum
    if (!rows.exists(_ * math.max(1, width) <= mostBytes))
      logInfo(s"Query $query has too many rows to be run both ways")
    else if (!unchanged(session, execution, what))
      logInfo(s"Query $query cannot be run both ways: its inputs have changed")
    else {
      val begun = profile.begun
      val ours = Run(session, decided(what.rewritten))
      val plain = Run(session, execution.analyzed)
      val alone = idle && profile.begun == begun
      if (unchanged(session, execution, what)) {
        val found = SameRows(execution.analyzed, plain.optimized, plain.rows, ours.rows)
        val pair = Option.when(alone)(RanBothWays(plain.seconds, plain.seconds - ours.seconds - what.deciding))
        recycling.verified(query, found, ours.rows.length, pair)
      }
    }
  }

  /** Whether what the query reads, and all that it depends on, is what it was when it was decided. */
  private def unchanged(session: SparkSession, execution: QueryExecution, what: Chosen): Boolean = {
    val cached = session.sharedState.cacheManager.useCachedData(execution.normalized)
    OptimizerRuns.captureOptimized(session, cached).map(recycling.sign(session, _).nodes.head.signature)
      .exists(_.contains(what.signature))
  }

  /** The plan without its stores. */
  private def decided(plan: LogicalPlan): LogicalPlan = {
    val bare = plan.clone().transformUpWithSubqueries { case tee: Tee => tee.child }
    bare.setAnalyzed()
    bare
  }
}

private object Verifier {
  val mostChosen = 16
  val mostBytes: Long = 64L << 20

  /** Until our listeners have heard of a query's end. */
  val heardMillis = 1000L

  final class Chosen(
      val session: SparkSession,
      val rewritten: LogicalPlan,
      val signature: Signature,
      val deciding: Double,
      val thread: Long) {
    val heard = new CountDownLatch(1)
    val done = new CountDownLatch(1)
    @volatile var rows: Option[Long] = None
  }

  final case class Run(optimized: LogicalPlan, rows: Array[InternalRow], seconds: Double)

  object Run {
    def apply(session: SparkSession, analyzed: LogicalPlan): Run = session.withActive {
      OptimizerRuns.bypass {
        val start = System.nanoTime()
        val execution = session.sessionState.executePlan(analyzed)
        val rows = execution.executedPlan.executeCollect()
        Run(execution.optimizedPlan, rows, (System.nanoTime() - start) / 1e9)
      }
    }
  }
}
