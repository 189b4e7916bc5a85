package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.joins._

/**
 * A shuffled join whose skewed partitions are read in slices, each against all rows of the other input's partition.
 *
 * Let L be the input that is split into slices Lᵢ, R the other one. For every join that may split L, the join of L and R
 * is the union of the joins of Lᵢ and R. Where rows of R count that meet no partner, that would bring them out once for
 * each slice. These partitions are joined without them, and they come once, from an anti-join:
 *
 * {{{
 *   full outer (L, R) = ⋃ left outer (Lᵢ, R) ∪ (R anti keys(L)),   right outer (L, R) = ⋃ inner (Lᵢ, R) ∪ (R anti keys(L))
 * }}}
 *
 * and the same with both sides changed. The anti-join has Spark's own comparison of keys; keys(L) are the distinct keys
 * of all slices, found in parallel. It is right only if a partner is found by its keys alone: the join has no further
 * condition.
 *
 * A semi or anti join whose right side is split needs no more of it than its keys:
 *
 * {{{
 *   L semi R = L semi keys(R),   L anti R = L anti keys(R)
 * }}}
 *
 * Slices whose other input is small look their partners up in a table of it, so that no slice has to be sorted.
 */
private[skew] final class SplitJoin(join: ShuffledJoin, left: ReduceInput, right: ReduceInput, spec: SkewSpec) {

  def apply(): SparkPlan = {
    val (apart, others) = spec.tasks.partition(_.exists(split(_).exists(_.unmatched)))
    require(apart.isEmpty || join.condition.isEmpty, "unmatched rows of a join with a further condition")
    val (lefts, rights) = apart.partition(_.exists(each => spec.splits(each.partition).left))
    val parts = slices(lefts, leftSplit = true) ++ slices(rights, leftSplit = false) ++
      joined(others, join.joinType) ++
      rest(lefts, leftSplit = true) ++ rest(rights, leftSplit = false)
    if (parts.length == 1) parts.head else linked(UnionExec(parts.map(shaped)))
  }

  private def split(slice: PartitionSlice): Option[Split] = spec.splits.get(slice.partition)

  private def slices(tasks: Seq[Seq[PartitionSlice]], leftSplit: Boolean): Seq[SparkPlan] =
    (join.joinType, leftSplit) match {
      case _ if tasks.isEmpty => Nil
      case (LeftExistence(_), false) => Nil // of the right side, only the keys count
      case (FullOuter, true) => joined(tasks, LeftOuter)
      case (FullOuter, false) => joined(tasks, RightOuter)
      case (RightOuter, true) | (LeftOuter, false) => joined(tasks, Inner)
      case (other, _) => throw new IllegalArgumentException(s"unmatched rows of a $other join")
    }

  /** Those that look partners up, by the side that is split: tables are built of the other one. */
  private def joined(tasks: Seq[Seq[PartitionSlice]], joinType: JoinType): Seq[SparkPlan] = {
    val (looked, sorted) = tasks.partition(_.exists(split(_).exists(_.hashed)))
    val (lefts, rights) = looked.partition(_.exists(split(_).exists(_.left)))
    Seq(lefts, rights, sorted).filter(_.nonEmpty).map(sliced(_, joinType))
  }

  private def sliced(tasks: Seq[Seq[PartitionSlice]], joinType: JoinType): SparkPlan = {
    val splits = tasks.flatten.flatMap(split)
    val looked = splits.nonEmpty && splits.forall(_.hashed)
    def of(plan: SparkPlan, input: ReduceInput, isLeft: Boolean) =
      side(if (looked) SplitJoin.unsorted(plan) else plan, input, tasks, isLeft)
    val one = of(join.left, left, isLeft = true)
    val two = of(join.right, right, isLeft = false)
    linked(
      join match {
        case merge: SortMergeJoinExec if looked =>
          val build = if (splits.head.left) BuildRight else BuildLeft
          ShuffledHashJoinExec(merge.leftKeys, merge.rightKeys, joinType, build, merge.condition, one, two,
            isSkewJoin = true)
        case merge: SortMergeJoinExec =>
          merge.copy(joinType = joinType, left = one, right = two, isSkewJoin = true)
        case hash: ShuffledHashJoinExec =>
          hash.copy(joinType = joinType, left = one, right = two, isSkewJoin = true, buildSide = build(hash, joinType))
        case other => throw new IllegalArgumentException(s"a split of ${other.nodeName}")
      })
  }

  /** Of a join that lost its unmatched rows, the input that is not split: it is there for each slice. */
  private def build(hash: ShuffledHashJoinExec, joinType: JoinType): BuildSide = joinType match {
    case same if same == hash.joinType => hash.buildSide
    case LeftOuter => BuildRight
    case RightOuter => BuildLeft
    case _ => if (hash.joinType == RightOuter) BuildRight else BuildLeft
  }

  private def side(plan: SparkPlan, input: ReduceInput, tasks: Seq[Seq[PartitionSlice]], isLeft: Boolean): SparkPlan =
    Rearranged.replaced(plan, input.read, Rearranged.read(input, spec.reads(tasks, isLeft)))

  /** Rows of the other input that have no partner in any slice. */
  private def rest(tasks: Seq[Seq[PartitionSlice]], leftSplit: Boolean): Seq[SparkPlan] = if (tasks.isEmpty) Nil
  else {
    val partitions = tasks.flatten.map(_.partition).distinct.map(partition => Seq(PartitionSlice(partition, None)))
    val (kept, keptKeys) =
      if (leftSplit) (side(SplitJoin.unsorted(join.right), right, partitions, isLeft = false), join.rightKeys)
      else (side(SplitJoin.unsorted(join.left), left, partitions, isLeft = true), join.leftKeys)
    val (spread, spreadKeys) =
      if (leftSplit) (side(SplitJoin.unsorted(join.left), left, tasks, isLeft = true), join.leftKeys)
      else (side(SplitJoin.unsorted(join.right), right, tasks, isLeft = false), join.rightKeys)
    val keys = distinct(spread, spreadKeys)
    val found = keys.output
    val joinType = join.joinType match {
      case existence @ LeftExistence(_) => existence
      case _ => LeftAnti
    }
    val count = tasks.length
    val (rows, others) = (byKey(kept, keptKeys, count), byKey(keys, found, count))
    val unmatched = join match {
      case _: ShuffledHashJoinExec =>
        ShuffledHashJoinExec(keptKeys, found, joinType, BuildRight, None, rows, others)
      case _ =>
        val (one, two) = (SplitJoin.sorted(rows, keptKeys), SplitJoin.sorted(others, found))
        SortMergeJoinExec(keptKeys, found, joinType, None, one, two)
    }
    Seq(unmatched)
  }

  private def distinct(rows: SparkPlan, keys: Seq[Expression]): SparkPlan = {
    val named = keys.zipWithIndex.map { case (key, at) => Alias(key, s"key$at")() }
    val projected = ProjectExec(named, rows)
    val columns = projected.output
    // Keys that cannot be hashed stay as many as they are.
    if (!Aggregate.supportsHashAggregate(Nil, columns)) projected
    else HashAggregateExec(None, isStreaming = false, None, columns, Nil, Nil, 0, columns, projected)
  }

  private def byKey(rows: SparkPlan, keys: Seq[Expression], count: Int): SparkPlan =
    ShuffleExchangeExec(HashPartitioning(keys, count), rows)

  /** With the join's columns, null where a part has none of that side. */
  private def shaped(part: SparkPlan): SparkPlan = {
    val has = part.outputSet
    if (join.output.forall(has.contains)) part
    else linked(
      ProjectExec(
        join.output.map { column =>
          if (has.contains(column)) part.output.find(_.exprId == column.exprId).get
          else Alias(Literal.create(null, column.dataType), column.name)(column.exprId, column.qualifier)
        },
        part
      ))
  }

  private def linked(plan: SparkPlan): SparkPlan = {
    join.logicalLink.foreach(plan.setLogicalLink)
    plan
  }
}

private[skew] object SplitJoin {

  /** Whether slices may look their partners up: the keys have one form of bits for each value. */
  def hashable(join: ShuffledJoin): Boolean = join match {
    case merge: SortMergeJoinExec =>
      (merge.leftKeys ++ merge.rightKeys).forall(key => UnsafeRowUtils.isBinaryStable(key.dataType))
    case _ => false
  }

  def sorted(rows: SparkPlan, keys: Seq[Expression]): SortExec =
    SortExec(keys.map(SortOrder(_, Ascending)), global = false, rows)

  /** A sort would be in vain below an exchange, or below another sort. */
  def unsorted(plan: SparkPlan): SparkPlan = plan match {
    case SortExec(_, false, child, _) => child
    case other => other
  }
}
