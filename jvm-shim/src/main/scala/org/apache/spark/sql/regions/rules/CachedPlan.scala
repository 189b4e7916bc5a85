package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarToRowExec, InputAdapter, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/**
 * What a plan that the user cached was signed as. Spark optimizes such a plan when it is cached, and keeps the physical plan that came
 * of it, which links to the optimized one. Its rows are those of the plan as long as the files are what they were then.
 */
private[rules] object CachedPlan {
  private final case class Known(form: Form, rounding: Set[String], settings: String)

  private val tag = TreeNodeTag[Known]("spark_regions.cached")

  /**
   * Whether a plan will be cached is not known when it is signed.
   *
   * @param whole no row is left out that fails
   */
  def leave(session: SparkSession, root: LogicalPlan, signed: SignedQuery, whole: Boolean): Unit =
    signed.rootForm match {
      case Some(form) if whole => root.setTagValue(tag, Known(form, signed.places.held(0), ResultConfs.seed(session)))
      case _ => root.unsetTagValue(tag)
    }

  def form(session: SparkSession, cached: InMemoryRelation, floatAggregates: Boolean): Form = {
    val known = optimized(cached.cacheBuilder.cachedPlan).flatMap(_.getTagValue(tag)).getOrElse(Refused("USER_CACHED"))
    if (known.settings != ResultConfs.seed(session)) Refused("USER_CACHED", "under other settings")
    if (known.rounding.nonEmpty && !floatAggregates) Refused("FLOAT_AGGREGATE", "in a cached plan")
    known.form.inputs.find(!_.unchanged()).foreach(input => Refused("INPUT_CHANGED", input.describe))
    val columns = cached.output.zip(cached.cacheBuilder.cachedPlan.output).map { case (now, before) =>
      now.exprId -> known.form.columns.getOrElse(before.exprId, Refused("USER_CACHED", before.name))
    }
    known.form.copy(columns = columns.toMap, rounding = known.rounding)
  }

  @annotation.tailrec
  private def optimized(plan: SparkPlan): Option[LogicalPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => optimized(adaptive.inputPlan)
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec => optimized(plan.children.head)
    case other => other.logicalLink
  }
}
