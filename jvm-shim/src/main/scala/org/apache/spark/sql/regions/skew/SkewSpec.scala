package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.regions.{Refusal, wire}

/**
 * A partition whose rows go to several tasks.
 *
 * @param left whether it is the left input that is split; the other one's rows go to each slice
 * @param unmatched the slices bring out no unmatched rows of the other input
 * @param maps map tasks of each slice, half-open; empty: each slice takes every n-th row of each map task
 * @param hashed whether each slice looks its partners up in a table of the other input, instead of sorting both
 */
final case class Split(
    partition: Int,
    slices: Int,
    left: Boolean,
    unmatched: Boolean,
    maps: Seq[(Int, Int)],
    hashed: Boolean = false) {

  /** What a slice reads of the input that is split. */
  def read(slice: Int): SliceRead =
    if (maps.isEmpty) SliceRead(partition, roundRobin = Some((slice, slices)))
    else SliceRead(partition, maps = Some(maps(slice)))
}

/** A whole partition (None), or one slice of it. */
final case class PartitionSlice(partition: Int, slice: Option[Int])

/** The planner's decision on one stage, in the form of docs/skew.md. */
final case class SkewSpec(
    kind: String,
    splits: Map[Int, Split],
    tasks: Seq[Seq[PartitionSlice]],
    predictedSeconds: Double,
    plainSeconds: Double,
    boundSeconds: Double,
    reason: Refusal,
    declines: Seq[Refusal]) {

  /** What tasks read of one input: slices of it where it is split, else whole partitions. */
  def reads(tasks: Seq[Seq[PartitionSlice]], left: Boolean = true): Seq[Seq[SliceRead]] = tasks.map(
    _.map { case PartitionSlice(partition, slice) =>
      val split = splits.get(partition).filter(_.left == left)
      split.zip(slice).fold(SliceRead(partition)) { case (split, slice) => split.read(slice) }
    })
}

object SkewSpec {

  /**
   * Checked to have every row in exactly one task, whatever came over the wire.
   *
   * @param maps number of map tasks of the left and the right input
   * @param twoPhases whether the operator merges states of slices
   */
  def parse(
      spec: wire.SkewPlan,
      partitions: Int,
      maps: Seq[Int],
      twoPhases: Boolean = false): Either[Refusal, SkewSpec] = {
    val splits = spec.partitions.map(split)
    val known = splits.map(each => each.partition -> each).toMap
    val tasks = spec.tasks.map(_.map(slice(known, _)))
    val found = summary(spec).copy(splits = known, tasks = tasks)
    val slices = found.tasks.flatten
    val all = (0 until partitions).flatMap { partition =>
      known.get(partition).fold(Seq(PartitionSlice(partition, None)))(split =>
        (0 until split.slices).map(slice => PartitionSlice(partition, Some(slice))))
    }
    val problem =
      if (found.kind == "none" && found.tasks.isEmpty) None
      else if (!Set("order", if (twoPhases) "two_phases" else "split_by_records").contains(found.kind))
        Some(s"kind ${found.kind}")
      else if (found.tasks.exists(_.isEmpty)) Some("a task without slices")
      else if (slices.length != all.length || slices.toSet != all.toSet) Some("not every partition in exactly one task")
      else splits.collectFirst { case each if !covers(each, maps) => s"the slices of partition ${each.partition}" }
    problem.map(Refusal("PLANNER_PROTOCOL", _)).toLeft(found)
  }

  /** What was decided and predicted, without the tasks. */
  def summary(spec: wire.SkewPlan): SkewSpec = SkewSpec(
    spec.kind,
    Map.empty,
    Nil,
    spec.predictedMakespan,
    spec.plainMakespan,
    spec.balancedBound,
    Refusal(spec.reason, spec.detail),
    spec.declines.map(each => Refusal(each.code, each.detail))
  )

  private def split(told: wire.SplitPartition): Split =
    Split(told.partition, told.helpers, told.spread == "left", told.unmatched, told.maps, told.hashed)

  private def slice(splits: Map[Int, Split], told: (Int, Int)): PartitionSlice = {
    val (partition, slice) = told
    PartitionSlice(partition, splits.get(partition).map(_ => slice).orElse(Some(slice).filter(_ != 0)))
  }

  private def covers(split: Split, maps: Seq[Int]): Boolean = {
    val count = maps.lift(if (split.left) 0 else 1)
    split.slices > 1 && count.exists { maps =>
      split.maps.isEmpty || (split.maps.length == split.slices &&
        split.maps.head._1 == 0 && split.maps.last._2 == maps &&
        split.maps.forall { case (start, end) => start < end } &&
        split.maps.zip(split.maps.drop(1)).forall { case (one, next) => one._2 == next._1 })
    }
  }
}
