package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions.{Expression, UserDefinedExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ExchangeQueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, REPARTITION_BY_COL, ShuffleOrigin}
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python._
import org.apache.spark.sql.execution.window.{WindowExec, WindowExecBase, WindowGroupLimitExec}
import org.apache.spark.sql.regions.{Refusal, SparkMinor}
import org.apache.spark.sql.regions.exec.RecordedWriteExec

/**
 * Inputs of a stage whose partitions are read together.
 *
 * @param path from the stage's root to the node that reads them
 * @param join the node, if it is a join whose two inputs are read by nothing in between that a split would change
 * @param window the node, if it is a window of values over whole partitions that can be merged
 * @param streamed whether each row goes its own way from the read to the stage's end, or to an aggregate of rows
 * @param fixed why not even whole partitions may go to other tasks
 * @param refusal why no rows may be split, only partitions be packed and put into another order
 */
final case class ReduceGroup(
    path: Seq[SparkPlan],
    inputs: Seq[ReduceInput],
    join: Option[ShuffledJoin],
    refusal: Option[Refusal] = None,
    window: Option[WindowExec] = None,
    streamed: Boolean = false,
    fixed: Option[Refusal] = None) {

  /** As `spark_regions.skew.operators` names it. */
  def operator: String = join.map(_.joinType) match {
    case Some(_: InnerLike) => "inner_join"
    case Some(LeftOuter) => "left_join"
    case Some(RightOuter) => "right_join"
    case Some(FullOuter) => "full_join"
    case Some(LeftAnti) => "anti_join"
    // At most one row for each of the left side's, so that the right side may not be spread.
    case Some(_) => "semi_join"
    case None if window.isDefined => "partition_window"
    case None if streamed => "repartition"
    case None => path.reverseIterator.flatMap(ReduceGroup.named).nextOption().getOrElse("reduce")
  }

  /** Whether rows of a partition may go to several tasks. */
  def splittable: Boolean = join.isDefined || window.isDefined || streamed

  def name: String = join.map(j => s"${j.nodeName} ${j.joinType.toString.takeWhile(_ != '(')}")
    .orElse(path.reverseIterator.find(ReduceGroup.telling).map(_.nodeName))
    .getOrElse(path.last.nodeName)

  /** Whether it runs functions of the user's. */
  def opaque: Boolean = path.init.exists {
    case plan if ReduceGroup.named(plan).contains("group_apply") => true
    case _: EvalPythonExec => true
    case plan => plan.expressions.exists(_.exists(_.isInstanceOf[UserDefinedExpression]))
  }

  /** Whether it relies on them for groups whose states can be merged behind an exchange, instead of their rows. */
  def reliesForStates: Boolean = reliant.exists {
    case aggregate: BaseAggregateExec =>
      ReduceGroup.complete(aggregate) || aggregate.child.isInstanceOf[BaseAggregateExec]
    case _ => false
  }

  /** The first operator above that needs the rows as they are partitioned. */
  def reliant: Option[SparkPlan] = path.zip(path.drop(1)).reverseIterator.collectFirst {
    case (above, below) if !ReduceGroup.indifferent(above, below) => above
  }
}

object ReduceGroup {

  /**
   * Of a stage that is about to run.
   *
   * @param digits whether sums of floating-point numbers keep their last digits
   */
  def of(plan: SparkPlan, digits: Boolean): Seq[ReduceGroup] =
    if (plan.exists(orderMatters)) Nil
    else below(plan, Nil).filter(_.inputs.forall(movable)).map { group =>
      val rounded = if (digits) group.path.flatMap(SplitRefusal.rounding) else Nil
      val shown = group.path.flatMap(SplitRefusal.firstComer) ++ rounded.map(_._1)
      group.copy(
        join = group.join.filter(_ => shown.isEmpty),
        window = group.window.filter(_ => shown.isEmpty),
        streamed = group.streamed && shown.isEmpty,
        refusal = group.refusal.orElse(shown.headOption),
        fixed = rounded.collectFirst { case (refusal, true) => refusal }
      )
    }

  private def below(plan: SparkPlan, above: Seq[SparkPlan]): Seq[ReduceGroup] = {
    val path = above :+ plan
    plan match {
      case ReduceInput(stage, tasks) => Seq(single(path, ReduceInput(plan, stage, tasks)))
      case _: AQEShuffleReadExec | _: SkewReadExec => Nil
      case unary: UnaryExecNode => below(unary.child, path)
      case _: UnionExec | _: CartesianProductExec | _: BroadcastHashJoinExec | _: BroadcastNestedLoopJoinExec =>
        plan.children.flatMap(below(_, path))
      case other if other.children.nonEmpty && other.collectLeaves().forall(_.isInstanceOf[ExchangeQueryStageExec]) =>
        together(other, path).toSeq
      case _ => Nil
    }
  }

  /** One input, and what the first operator that is not row by row makes of it. */
  private def single(path: Seq[SparkPlan], input: ReduceInput): ReduceGroup = {
    val above = path.init.reverse.dropWhile(rowwise)
    val group = ReduceGroup(path, Seq(input), None, streamed = streamed(path, input.stage.shuffle.shuffleOrigin))
    above.headOption match {
      case Some(window: WindowExec) =>
        val hash = Some(input.stage.shuffle.outputPartitioning).collect { case found: HashPartitioning => found }
        SplitWindow.refusal(window, hash, input.stage.shuffle.runtimeStatistics.rowCount.map(_.toDouble)) match {
          case None => group.copy(path = above.reverse, window = Some(window))
          case refusal => group.copy(refusal = refusal)
        }
      case Some(_: WindowGroupLimitExec) => group.copy(refusal = Some(Refusal("GROUP_LIMITED", "WindowGroupLimit")))
      case Some(aggregate: BaseAggregateExec) if !group.streamed => group.copy(refusal = SplitRefusal.large(aggregate))
      case _ => group
    }
  }

  /**
   * Whether nobody relies on which rows are together, but for an aggregate of rows, which can be made in two steps.
   * The user's own repartition must stay where its partitions might be seen.
   */
  private def streamed(path: Seq[SparkPlan], origin: ShuffleOrigin): Boolean = {
    val rest = path.init.zip(path.tail).reverse.dropWhile { case (above, below) => streams(above, below) }
    rest.map(_._1) match {
      case Nil => origin == ENSURE_REQUIREMENTS
      case (sort: SortExec) +: (aggregate: BaseAggregateExec) +: _ => !sort.global && ofRows(aggregate)
      case (aggregate: BaseAggregateExec) +: _ => ofRows(aggregate)
      case _ =>
        path.head.isInstanceOf[DataWritingCommandExec] && rest.init.forall {
          case (_: WriteFilesExec | _: RecordedWriteExec, _) => true
          case (sort: SortExec, _) => !sort.global
          case (above, below) => streams(above, below)
        }
    }
  }

  /** Whether an operator makes of each row of its input what it makes of it among any others, once. */
  private def streams(above: SparkPlan, below: SparkPlan): Boolean = above match {
    case _: ProjectExec | _: FilterExec | _: GenerateExec | _: ExpandExec | _: EvalPythonExec => true
    case join: BroadcastHashJoinExec => read(join, join.buildSide) eq below
    case join: BroadcastNestedLoopJoinExec =>
      (read(join, join.buildSide) eq below) && (join.joinType match {
        case _: InnerLike => true
        case RightOuter => join.buildSide == BuildLeft
        case LeftOuter | LeftExistence(_) => join.buildSide == BuildRight
        case _ => false
      })
    case _ => false
  }

  private def read(join: BaseJoinExec, build: BuildSide): SparkPlan = if (build == BuildLeft) join.right else join.left

  /** Made in one step, or the first of two. One without functions may be the second, of rows that are few already. */
  private def ofRows(aggregate: BaseAggregateExec): Boolean =
    (complete(aggregate) && aggregate.aggregateExpressions.nonEmpty) ||
      (aggregate.requiredChildDistribution == Seq(UnspecifiedDistribution) &&
        aggregate.aggregateExpressions.forall(call => call.mode == Partial && !call.isDistinct))

  private def together(plan: SparkPlan, path: Seq[SparkPlan]): Option[ReduceGroup] = {
    val inputs = reads(plan)
    plan match {
      // A read that is not of whole partitions: Spark has split this join itself, or reads it locally.
      case _ if inputs.exists(_.isEmpty) => None
      case join: ShuffledJoin if inputs.length == 2 && join.children.forall(rowByRow) =>
        val group = ReduceGroup(path, inputs.flatten, Some(join))
        group.reliant match {
          case Some(above) if above.children.length > 1 =>
            Some(group.copy(join = None, refusal = Some(Refusal("CO_PARTITIONED", above.nodeName))))
          case _ => Some(group)
        }
      case _ => Some(ReduceGroup(path, inputs.flatten, None, Some(Refusal("CO_PARTITIONED", plan.nodeName))))
    }
  }

  /** An aggregate of rows, in one step, that could be made in two. */
  def complete(aggregate: BaseAggregateExec): Boolean = aggregate.groupingExpressions.nonEmpty &&
    aggregate.aggregateExpressions.forall(call => call.mode == Complete && !call.isDistinct)

  private def reads(plan: SparkPlan): Seq[Option[ReduceInput]] = plan match {
    case ReduceInput(stage, tasks) => Seq(Some(ReduceInput(plan, stage, tasks)))
    case _: AQEShuffleReadExec | _: SkewReadExec | _: ShuffleQueryStageExec => Seq(None)
    case other => other.children.flatMap(reads)
  }

  /** Between a join and its input, only what gives the same rows when its input comes in slices, or twice. */
  private def rowByRow(plan: SparkPlan): Boolean = plan match {
    case ReduceInput(_, _) => true
    case other => rowwise(other) && other.children.forall(rowByRow)
  }

  private def rowwise(plan: SparkPlan): Boolean = plan match {
    case sort: SortExec => !sort.global
    case _: ProjectExec | _: FilterExec => plan.expressions.forall(repeats)
    case _ => false
  }

  /** A function of the user's may have effects, which are not to be seen twice. */
  private[skew] def repeats(expression: Expression): Boolean =
    expression.deterministic && !expression.exists(_.isInstanceOf[UserDefinedExpression])

  /** Shuffles whose rows may be read by other tasks. */
  private[skew] val origins: Seq[ShuffleOrigin] = Seq(ENSURE_REQUIREMENTS, REPARTITION_BY_COL)

  /** Packing keeps the rows of a key together, but not the number of partitions, nor the order of ranges. */
  private def movable(input: ReduceInput): Boolean = {
    val shuffle = input.stage.shuffle
    origins.contains(shuffle.shuffleOrigin) && !shuffle.supportsColumnar &&
    shuffle.outputPartitioning.isInstanceOf[HashPartitioningLike] && shuffle.numPartitions > 1
  }

  /** What depends on the number or the order of the partitions. */
  private def orderMatters(plan: SparkPlan): Boolean = plan match {
    case _: BaseLimitExec | _: CollectLimitExec | _: CollectTailExec | _: TakeOrderedAndProjectExec | _: SampleExec =>
      true
    case other => SparkMinor.stateful(other) || other.expressions.exists(!_.deterministic)
  }

  private[skew] def indifferent(above: SparkPlan, below: SparkPlan): Boolean = {
    val at = above.children.indexWhere(_ eq below)
    UnknownPartitioning(2).satisfies(above.requiredChildDistribution(at))
  }

  /** What a reader of the plan knows the stage by. */
  private def telling(plan: SparkPlan): Boolean =
    named(plan).isDefined || plan.isInstanceOf[BroadcastHashJoinExec] || plan.isInstanceOf[BroadcastNestedLoopJoinExec]

  private[skew] def named(plan: SparkPlan): Option[String] = plan match {
    case _: WindowExecBase => Some("window")
    case _: FlatMapGroupsInBatchExec | _: FlatMapCoGroupsInBatchExec => Some("group_apply")
    case _ if SparkMinor.pandasAggregate(plan) => Some("group_apply")
    case _: BaseAggregateExec => Some("aggregate")
    case _ => None
  }
}
