package org.apache.spark.sql.regions.control

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.python.{EvalPythonExec, MapInBatchExec}
import org.apache.spark.sql.regions.exec.{MaterializedScanExec, TeeExec}

/** Whether an attempt of a task meets the rows that an earlier one met, in the same order (assumption A3 of Amber §6.2). */
private[control] object DeterminedRows {
  private val places = new AtomicLong()

  /** Gives each parameter of a plan its place, and why the rows that it meets there may come otherwise. */
  def placed(plan: SparkPlan): SparkPlan = plan.transformUp {
    case node if node.expressions.exists(has) =>
      lazy val why = unlike(node).getOrElse("")
      node.transformExpressions { case param: Param =>
        param.copy(place = places.incrementAndGet(), unordered = why)
      }
  }

  private def has(expression: Expression): Boolean = expression.exists(_.isInstanceOf[Param])

  /** None if the rows that an operator gives, and those that it computes with, are the same in the same order each time. */
  private def unlike(plan: SparkPlan): Option[String] = plan match {
    case _: AQEShuffleReadExec | _: ShuffleQueryStageExec | _: ShuffleExchangeLike =>
      Some("rows of a shuffle come as they arrive")
    case scan: FileSourceScanExec =>
      // What could not be read the first time may be read the second time.
      val options = new FileSourceOptions(CaseInsensitiveMap(scan.relation.options))
      Option.when(options.ignoreCorruptFiles || options.ignoreMissingFiles)("files that cannot be read are left out")
    case _: RangeExec | _: LocalTableScanExec | _: MaterializedScanExec => None
    case cached: InMemoryTableScanExec =>
      val kept = cached.relation.cachedPlan
      if (kept.exists(_.expressions.exists(has))) Some("cached rows were computed with a parameter") else unlike(kept)
    case join: BroadcastHashJoinExec =>
      random(plan).orElse(unlike(if (join.buildSide == BuildLeft) join.right else join.left))
    case aggregate: BaseAggregateExec if aggregate.groupingExpressions.isEmpty => inOrder(plan)
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec | _: RowToColumnarExec | _: ProbeExec |
        _: TeeExec | _: ProjectExec | _: FilterExec | _: GenerateExec | _: ExpandExec | _: SampleExec | _: UnionExec |
        _: LocalLimitExec | _: GlobalLimitExec | _: CoalesceExec | _: EvalPythonExec | _: MapInBatchExec =>
      inOrder(plan)
    case other => Some(s"the order in which ${other.nodeName} gives rows is not known")
  }

  private def inOrder(plan: SparkPlan): Option[String] = random(plan).orElse(plan.children.flatMap(unlike).headOption)

  private def random(plan: SparkPlan): Option[String] = plan.expressions.flatMap(
    _.collectFirst {
      case own if alone(own) && !seeded(own) =>
        val name = own match {
          case udf: UserDefinedExpression => udf.name
          case _ => own.prettyName
        }
        s"$name may give other values"
    }).headOption

  /** Whether it is not deterministic by itself, whatever it is computed of. */
  private def alone(own: Expression): Boolean = !own.deterministic && (own match {
    case _: AggregateExpression => false
    case _ => own.children.forall(_.deterministic) ||
      !own.mapChildren(child => BoundReference(0, child.dataType, child.nullable)).deterministic
  })

  /** A seed belongs to the plan. */
  private def seeded(expression: Expression): Boolean = expression match {
    case _: Param | _: ExpressionWithRandomSeed | _: MonotonicallyIncreasingID | _: SparkPartitionID => true
    case _: InputFileName | _: InputFileBlockStart | _: InputFileBlockLength => true
    case _ => false
  }
}
