package org.apache.spark.sql.regions.skew

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.window.WindowExec
import org.apache.spark.sql.regions.Refusal

/**
 * Values over whole partitions of a window, for skewed shuffle partitions that are read in slices.
 *
 * Each slice is aggregated by key, like the map side of a group-by; the states go through a shuffle of the same hash
 * partitions, which every slice of a partition reads as a whole; merged, they are joined with the rows of the slice:
 *
 * {{{
 *   slice 1 ─► states ─┐            ┌─► merged ─► join with the rows of slice 1
 *   slice 2 ─► states ─┴─ shuffle ──┴─► merged ─► join with the rows of slice 2
 * }}}
 *
 * Every row is in one slice, each of its keys in the merged states exactly once, so the join brings out each row once.
 * Keys are compared as the aggregates compare them, null included; they are what the window compares, normalized NaN and
 * zero included.
 */
private[skew] final class SplitWindow(window: WindowExec, input: ReduceInput, spec: SkewSpec) {

  def apply(): SparkPlan = {
    val (apart, plain) = spec.tasks.partition(_.exists(each => spec.splits.contains(each.partition)))
    val parts = whole(plain) ++ sliced(apart)
    if (parts.length == 1) parts.head else linked(UnionExec(parts))
  }

  private def whole(tasks: Seq[Seq[PartitionSlice]]): Seq[SparkPlan] =
    if (tasks.isEmpty) Nil else Seq(linked(window.copy(child = rows(window.child, tasks))))

  private def sliced(tasks: Seq[Seq[PartitionSlice]]): Seq[SparkPlan] = if (tasks.isEmpty) Nil
  else {
    val keys = window.partitionSpec.zipWithIndex.map { case (key, at) => Alias(key, s"key$at")() }
    val found = keys.map(_.toAttribute)
    def slices = rows(SplitJoin.unsorted(window.child), tasks)
    val values = merged(keys, slices, tasks)
    val joined = KeyedValuesExec(slices, values, window.partitionSpec, found)
    Seq(linked(ProjectExec(window.output, joined)))
  }

  private def rows(plan: SparkPlan, tasks: Seq[Seq[PartitionSlice]]): SparkPlan =
    Rearranged.replaced(plan, input.read, Rearranged.read(input, spec.reads(tasks)))

  /** The window's values for the keys of each task's partitions. */
  private def merged(keys: Seq[Alias], slices: SparkPlan, tasks: Seq[Seq[PartitionSlice]]): SparkPlan = {
    val calls = mutable.ArrayBuffer.empty[AggregateExpression]
    val values = window.windowExpression.map(
      _.transform { case WindowExpression(call: AggregateExpression, _) =>
        val merged = MergedAggregate(call)
        calls ++= merged.calls
        merged.value
      }.asInstanceOf[NamedExpression])
    val last = AggUtils.planAggregateWithoutDistinct(keys, calls.toSeq, keys.map(_.toAttribute) ++ values, slices).head
    val states = SplitWindow.ordered(last.children.head)
    val at = input.stage.shuffle.outputPartitioning.asInstanceOf[HashPartitioning]
    // What the rows were partitioned by is among the window's keys, so that a key's states get its rows' number.
    val by = at.expressions.map { each =>
      keys.find(_.child.semanticEquals(each)).map(_.toAttribute)
        .getOrElse(throw new IllegalArgumentException(s"$each is no key of the window"))
    }
    val shuffle = ShuffleExchangeExec(HashPartitioning(by, at.numPartitions), states)
    val copied = CopiedExec(shuffle, tasks.map(_.map(_.partition).distinct))
    SplitWindow.ordered(SplitWindow.anywhere(last).withNewChildren(Seq(copied)))
  }

  private def linked(plan: SparkPlan): SparkPlan = {
    window.logicalLink.foreach(plan.setLogicalLink)
    plan
  }
}

private[skew] object SplitWindow {

  /**
   * Why the values of a window cannot be merged from those of slices.
   *
   * @param shuffle by which its rows were partitioned
   * @param rows at most in a partition
   */
  def refusal(window: WindowExec, shuffle: Option[HashPartitioning], rows: Option[Double]): Option[Refusal] = {
    val expressions = window.windowExpression.flatMap(_.collect { case each: WindowExpression => each })
    def of(code: String, each: Expression) = Some(Refusal(code, each.prettyName))
    val keys = window.partitionSpec
    val differing = keys.find(key => MergedAggregate.equalButDifferent(key.dataType))
    val byKeys = shuffle.exists(_.expressions.forall(each => keys.exists(_.semanticEquals(each))))
    val outside = window.windowExpression.exists(
      _.transform { case _: WindowExpression => Literal(0) }.references.nonEmpty)
    if (differing.isDefined) Some(Refusal("EQUAL_BUT_DIFFERENT", differing.get.dataType.catalogString))
    else if (!byKeys || outside) Some(Refusal("NOT_MERGEABLE", "Window"))
    else expressions.iterator.flatMap {
      case WindowExpression(call: AggregateExpression, WindowSpecDefinition(_, _, Whole()))
          if !call.isDistinct && call.filter.isEmpty =>
        if (call.aggregateFunction.children.forall(ReduceGroup.repeats))
          MergedAggregate.inexact(call.aggregateFunction, rows)
        else of("UNDIGESTIBLE_FUNCTION", call.aggregateFunction)
      case WindowExpression(call, _) => of("NOT_MERGEABLE", call)
    }.nextOption()
  }

  private object Whole {
    def unapply(frame: WindowFrame): Boolean = frame match {
      case SpecifiedWindowFrame(_, UnboundedPreceding, UnboundedFollowing) => true
      case _ => false
    }
  }

  /** States come by the shuffle partitions that each task asks for. */
  private def anywhere(plan: SparkPlan): SparkPlan = plan match {
    case hash: HashAggregateExec => hash.copy(requiredChildDistributionExpressions = None)
    case hash: ObjectHashAggregateExec => hash.copy(requiredChildDistributionExpressions = None)
    case sort: SortAggregateExec => sort.copy(requiredChildDistributionExpressions = None)
    case other => throw new IllegalArgumentException(s"an aggregate by ${other.nodeName}")
  }

  /** With its children sorted as it needs them. */
  private def ordered(plan: SparkPlan): SparkPlan =
    plan.withNewChildren(
      plan.children.zip(plan.requiredChildOrdering).map { case (child, order) =>
        if (SortOrder.orderingSatisfies(child.outputOrdering, order)) child
        else SortExec(order, global = false, child)
      })
}
