package org.apache.spark.sql.regions.rules

import scala.jdk.CollectionConverters._
import scala.util.control.ControlThrowable

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.optimizer.Optimizer
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.RuleExecutor
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.{CacheManager, QueryExecution}

/** What the optimizer is running for on this thread: a query, ourselves, or somebody who only looks at the result. */
object OptimizerRuns {

  private final class Captured(val plan: LogicalPlan) extends ControlThrowable

  private sealed trait Mode
  private case object Normal extends Mode
  private case object Bypass extends Mode
  private case object Capture extends Mode

  private val mode = ThreadLocal.withInitial[Mode](() => Normal)

  def bypassed: Boolean = mode.get eq Bypass

  def capturing: Boolean = mode.get eq Capture

  /** Runs `body` with our rules switched off. */
  def bypass[T](body: => T): T = within(Bypass)(body)

  /** Called by the rule with the plan that it was given while [[captureOptimized]] is under way; does not return. */
  def offer(plan: LogicalPlan): Nothing = throw new Captured(plan)

  /**
   * `analyzed` as it stands when [[LineageRule]] would see it: pruned, filters pushed down, nothing later. The rest of the
   * optimizer is skipped, because its results (extracted Python UDFs, dynamic pruning) have no normal form.
   */
  def captureOptimized(session: SparkSession, analyzed: LogicalPlan): Option[LogicalPlan] =
    try {
      within(Capture)(session.sessionState.optimizer.execute(analyzed.clone()))
      None
    } catch {
      case captured: Captured => Some(captured.plan)
    }

  private def within[T](inner: Mode)(body: => T): T = {
    val before = mode.get
    mode.set(inner)
    try body
    finally mode.set(before)
  }

  /**
   * Whether the rule that asks is in the optimizer run of a [[QueryExecution]], or of a subquery inside of such a run.
   *
   * Spark and libraries also optimize plans to look at the outcome (arguments of `spark.sql`, of `CALL`), and expect Spark's
   * own nodes there. Nothing in such a plan tells it from a query's, and a tracker that is set may be that of an analysis, or
   * of a query around it. Who called this very run is on the stack:
   * {{{
   *   RuleExecutor.execute ← QueryPlanningTracker.withTracker ← RuleExecutor.executeAndTrack ← QueryExecution
   *   RuleExecutor.execute ← Optimizer.OptimizeSubqueries ← … ← RuleExecutor.execute ← as above
   * }}}
   * A streaming batch optimizes by a method of its subclass, and is not taken for a query.
   */
  def ofQuery: Boolean = walker.walk[Boolean](frames => ofQuery(frames.iterator.asScala))

  @annotation.tailrec
  private def ofQuery(callers: Iterator[StackWalker.StackFrame]): Boolean = {
    val above = callers.dropWhile(frame => frame.getClassName != executor || frame.getMethodName != "execute")
    val caller = above.map(_.getClassName).find(name => name != executor && name != tracker).getOrElse("")
    caller == query || caller.startsWith(subqueries) && ofQuery(above)
  }

  /** Whether what is optimized on this thread is a plan whose rows Spark is to hold, in its cache or as a checkpoint. */
  def ofHeldRows: Boolean = holding(checkpoint)

  /** Whether it is that, or an RDD: what is asked for later sees the order of the rows. */
  def ofRowsSeenLater: Boolean = holding(checkpoint, "javaToPython")

  private def holding(methods: String*): Boolean = walker.walk[Boolean](
    _.anyMatch(frame =>
      frame.getClassName == cache || frame.getClassName == dataset && methods.contains(frame.getMethodName)))

  private val walker = StackWalker.getInstance()
  private val executor = classOf[RuleExecutor[_]].getName
  private val tracker = QueryPlanningTracker.getClass.getName
  private val subqueries = s"${classOf[Optimizer].getName}$$OptimizeSubqueries$$"
  private val query = classOf[QueryExecution].getName
  private val cache = classOf[CacheManager].getName
  private val dataset = classOf[Dataset[_]].getName
  private val checkpoint = "checkpoint"
}
