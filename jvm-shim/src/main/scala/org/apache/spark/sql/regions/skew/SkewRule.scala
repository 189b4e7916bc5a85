package org.apache.spark.sql.regions.skew

import scala.annotation.tailrec

import org.apache.spark.sql
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadRule
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions._

/**
 * Arranges the tasks of a reduce stage that is about to run, after Spark's own rules. Adaptive execution drops the
 * result where it breaks what the user or a later operator asked for.
 */
final class SkewRule(session: SparkSession) extends AQEShuffleReadRule {

  override protected def supportedShuffleOrigins: Seq[ShuffleOrigin] = ReduceGroup.origins

  override def apply(plan: SparkPlan): SparkPlan =
    if (!session.sessionState.conf.getConf(RegionsConf.skewEnabled)) plan
    else Guard(session.sparkContext.conf, "a skew decision", plan) {
      RegionsRuntime.of(session).fold(
        _ => plan,
        runtime => {
          SortTies.read(plan)
          decided(runtime, plan, Set.empty)
        })
    }

  private def digits: Boolean = !session.sessionState.conf.getConf(RegionsConf.skewFloatAggregates)

  /** Each decision gives another plan, in which the next group has to be found anew. */
  @tailrec
  private def decided(runtime: RegionsRuntime, plan: SparkPlan, done: Set[Int]): SparkPlan =
    ReduceGroup.of(plan, digits).find(group => !done(group.inputs.head.stage.id)) match {
      case Some(group) =>
        val next = new SkewDecision(session, runtime, group)(plan)
        decided(runtime, next, done ++ group.inputs.map(_.stage.id))
      case None => plan
    }
}

object SkewRule {

  /** What a session's settings leave to it. */
  def state(session: sql.SparkSession): String = {
    def on(key: String): Boolean = session.conf.get(key, "true").equalsIgnoreCase("true")
    if (!on(RegionsConf.skewEnabled.key)) s"off: ${RegionsConf.skewEnabled.key} is false"
    else if (!on(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key)) s"off: ${SQLConf.ADAPTIVE_EXECUTION_ENABLED.key} is false"
    else "on"
  }

  /** Typed as Spark's class, so that a caller can be linked where these classes cannot. */
  def of(session: SparkSession): Rule[SparkPlan] = new SkewRule(session)
  def ofSorts(session: SparkSession): Rule[SparkPlan] = new SortTiesRule(session)
  def ofRows(session: SparkSession): ColumnarRule = new RowCountsRule(session)
}
