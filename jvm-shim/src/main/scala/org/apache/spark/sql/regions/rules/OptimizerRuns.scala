package org.apache.spark.sql.regions.rules

import scala.util.control.ControlThrowable

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

/** Keeps our rules out of the optimizer runs that we start ourselves on the same thread. */
object OptimizerRuns {

  private final class Captured(val plan: LogicalPlan) extends ControlThrowable

  private sealed trait Mode
  private case object Normal extends Mode
  private case object Bypass extends Mode
  private case object Capture extends Mode

  private val mode = ThreadLocal.withInitial[Mode](() => Normal)

  def bypassed: Boolean = mode.get eq Bypass

  /** Runs `body` with our rules switched off. */
  def bypass[T](body: => T): T = within(Bypass)(body)

  /** Called by the rule with the plan that it was given; does not return while a capture is under way. */
  def offer(plan: LogicalPlan): Unit = if (mode.get eq Capture) throw new Captured(plan)

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
}
