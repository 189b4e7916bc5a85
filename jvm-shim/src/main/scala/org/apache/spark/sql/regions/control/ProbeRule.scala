package org.apache.spark.sql.regions.control

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.python._
import org.apache.spark.sql.execution.window.WindowExecBase
import org.apache.spark.sql.regions.Guard
import org.apache.spark.sql.regions.control.badrows.CheckedProjectExec

/**
 * Puts a probe above each operator whose rows are worth counting or stopping at: what reads, multiplies, drops or holds
 * rows, and what calls Python. It runs when rows and columns have been brought together, and just before code is
 * generated; of adaptive execution for each stage.
 */
final class ProbeRule(session: SparkSession) extends ColumnarRule {

  override val postColumnarTransitions: Rule[SparkPlan] = plan =>
    Guard(session.sparkContext.conf, "the probes of a plan", plan) {
      val inside = ProbeRule.within(DeterminedRows.placed(plan))
      // The root of a shuffle's or a broadcast's stage has to stay what it is.
      if (ProbeRule.counted(inside) && !inside.isInstanceOf[ShuffleExchangeExec]) ProbeRule.probe(inside) else inside
    }
}

private object ProbeRule {

  def within(plan: SparkPlan): SparkPlan = plan match {
    // Adaptive execution wants the stage itself below.
    case read: AQEShuffleReadExec => read
    case _ =>
      plan.mapChildren { child =>
        val inside = within(child)
        if (counted(inside)) probe(inside) else inside
      }
  }

  def probe(plan: SparkPlan): SparkPlan = {
    val probe = ProbeExec(plan)
    plan.logicalLink.foreach(probe.setTagValue(SparkPlan.LOGICAL_PLAN_INHERITED_TAG, _))
    probe
  }

  def counted(plan: SparkPlan): Boolean = !plan.supportsColumnar && (plan match {
    case ColumnarToRowExec(child) => counts(child)
    case _ => counts(plan)
  })

  private def counts(plan: SparkPlan): Boolean = plan match {
    case _: DataSourceScanExec | _: DataSourceV2ScanExecBase | _: InMemoryTableScanExec | _: RangeExec => true
    case _: RDDScanExec | _: ExternalRDDScanExec[_] => true
    case _: AQEShuffleReadExec | _: ShuffleQueryStageExec | _: ShuffleExchangeExec => true
    case _: FilterExec | _: GenerateExec | _: ExpandExec | _: SortExec | _: BaseAggregateExec | _: BaseJoinExec => true
    case _: WindowExecBase | _: EvalPythonExec | _: MapInBatchExec => true
    case _: FlatMapGroupsInBatchExec | _: FlatMapCoGroupsInBatchExec => true
    case project: ProjectExec => project.projectList.exists(_.children.nonEmpty)
    case _: CheckedProjectExec => true
    case _ => false
  }

  /** What people know an operator by. */
  def name(plan: SparkPlan): String = shown(plan) match {
    case _: AQEShuffleReadExec | _: ShuffleQueryStageExec | _: ShuffleExchangeExec => "ShuffleRead"
    case _: CheckedProjectExec => "Project"
    case other => other.nodeName.replaceAll("\\s+", " ").trim
  }

  /** Without what brings rows, columns and generated code together. */
  def shown(plan: SparkPlan): SparkPlan = plan match {
    case ColumnarToRowExec(child) => shown(child)
    case InputAdapter(child) => shown(child)
    case WholeStageCodegenExec(child) => shown(child)
    case other => other
  }
}
