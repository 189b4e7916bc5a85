package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions.SortOrder
import org.apache.spark.sql.catalyst.plans.physical.UnspecifiedDistribution
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SortExec, SparkPlan, UnionExec}
import org.apache.spark.sql.execution.aggregate.{AggUtils, BaseAggregateExec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/** A stage's plan whose inputs are read as a decision says. */
private[skew] object Rearranged {

  /** Whole partitions only: each input is read in the same way. */
  def apply(group: ReduceGroup, spec: SkewSpec): SparkPlan =
    group.inputs.foldLeft(group.path.head) { (plan, input) =>
      replaced(plan, input.read, read(input, spec.reads(spec.tasks)))
    }

  /** One input, of which partitions are read in slices. */
  def streamed(group: ReduceGroup, spec: SkewSpec): SparkPlan =
    split(group, read(group.inputs.head, spec.reads(spec.tasks)), spec)

  /** The join, window or read in slices, and above it the exchange that an operator needs which relied on the partitions. */
  def split(group: ReduceGroup, sliced: SparkPlan, spec: SkewSpec): SparkPlan = {
    def above(plans: Seq[SparkPlan]): SparkPlan = plans match {
      case Seq(_) => sliced
      case (aggregate: BaseAggregateExec) +: below
          if group.reliant.exists(_ eq aggregate) && ReduceGroup.complete(aggregate) =>
        inTwoSteps(aggregate, above(below), spec.tasks.length)
      case plan +: below =>
        val at = plan.children.indexWhere(_ eq below.head)
        over(plan, at, fitted(plan, at, above(below), spec.tasks.length))
    }
    above(group.path)
  }

  /** Slices are aggregated each for itself, and their states after an exchange. */
  private def inTwoSteps(aggregate: BaseAggregateExec, rows: SparkPlan, tasks: Int): SparkPlan = {
    val last = AggUtils.planAggregateWithoutDistinct(
      aggregate.groupingExpressions, aggregate.aggregateExpressions, aggregate.resultExpressions, rows).head
    val states = last.children.head
    val sorted = over(states, 0, fitted(states, 0, rows, tasks))
    val merged = last.withNewChildren(Seq(fitted(last, 0, sorted, tasks)))
    aggregate.logicalLink.foreach(merged.setLogicalLink)
    merged
  }

  /**
   * An operator above the parts of a split. One that makes of each row, or of the rows of each task, what it makes of them
   * wherever they are, comes once above each part: Spark compiles it into one function with the part's join, which it
   * cannot do across a union of joins (measured: 0.82 instead of 1.02 µs a row).
   */
  private def over(plan: SparkPlan, at: Int, child: SparkPlan): SparkPlan = (plan, child) match {
    case (_: ProjectExec | _: FilterExec | Partial(), union: UnionExec) if union.children.forall(alike(union, _)) =>
      val parts = UnionExec(union.children.map(part => plan.withNewChildren(Seq(part))))
      plan.logicalLink.foreach(parts.setLogicalLink)
      parts
    case _ => plan.withNewChildren(plan.children.updated(at, child))
  }

  /** A union of the user's has columns of its own. */
  private def alike(one: SparkPlan, other: SparkPlan): Boolean = one.output.map(_.exprId) == other.output.map(_.exprId)

  private object Partial {
    def unapply(aggregate: BaseAggregateExec): Boolean =
      aggregate.requiredChildDistribution == Seq(UnspecifiedDistribution)
  }

  /** What Spark's own EnsureRequirements would add, for one input. */
  private def fitted(parent: SparkPlan, at: Int, child: SparkPlan, tasks: Int): SparkPlan = {
    val distribution = parent.requiredChildDistribution(at)
    val order = parent.requiredChildOrdering(at)
    val distributed =
      if (child.outputPartitioning.satisfies(distribution)) child
      else ShuffleExchangeExec(distribution.createPartitioning(tasks), child)
    if (SortOrder.orderingSatisfies(distributed.outputOrdering, order)) distributed
    else SortExec(order, global = false, distributed)
  }

  def read(input: ReduceInput, tasks: Seq[Seq[SliceRead]]): SkewReadExec = {
    val read = SkewReadExec(input.stage, tasks)
    input.read.logicalLink.orElse(input.stage.logicalLink).foreach(read.setLogicalLink)
    read
  }

  /** By identity, and not below what was put in: the new read has the old stage as its child. */
  def replaced(plan: SparkPlan, old: SparkPlan, by: SparkPlan): SparkPlan =
    if (plan eq old) by else plan.mapChildren(replaced(_, old, by))
}
