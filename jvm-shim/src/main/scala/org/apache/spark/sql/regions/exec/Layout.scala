package org.apache.spark.sql.regions.exec

import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec, ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.regions.skew
import org.apache.spark.sql.regions.rules.{Digest, PlanOrigin}

/**
 * Where plain Spark has the rows of a plan and in which order, so far as that is known before it runs.
 *
 * @param exact digest of all of the physical plan
 * @param shape digest of its [[PlanShape]]
 * @param beside shuffles from outside of the plan that its last stage reads, too: adaptive execution coalesces them together
 * @param shuffles whether rows are shuffled in it
 * @param origin digest of what plain Spark plans it from, with the query around it
 */
final case class Layout(
    exact: String,
    shape: Option[String],
    beside: String,
    shuffles: Boolean,
    origin: Option[String] = None)

/**
 * How rows were stored.
 *
 * @param partitions of the plan as it ran, empty ones included; -1 where nothing is claimed, since Spark's own relation knows them
 * @param planned whether adaptive execution changed no operator
 * @param single whether it read each shuffle as one partition, as it would with fewer or narrower rows
 * @param boundaries first and last (exclusive) partition of the shuffle in each partition that was read of it
 */
final case class StoredLayout(
    plan: Layout,
    partitions: Int,
    planned: Boolean,
    single: Boolean,
    boundaries: Seq[(Int, Int)])

/** What is claimed of the rows that a read gives. */
final case class Arranged(partitioning: Partitioning, ordering: Seq[SortOrder]) {

  private[exec] def references: AttributeSet = AttributeSet(ordering.flatMap(_.references) ++ (partitioning match {
    case keys: Expression => keys.references
    case _ => Nil
  }))

  /** Computes the rows of `plan` so that the claims hold. */
  private[exec] def of(plan: SparkPlan): SparkPlan = {
    val placed = partitioning match {
      case wanted if wanted == plan.outputPartitioning => plan
      case _: UnknownPartitioning => plan
      case PartitioningCollection(Seq(first, _*)) => exchanged(first, plan)
      case wanted => exchanged(wanted, plan)
    }
    val sorted = (placed eq plan) && SortOrder.orderingSatisfies(plan.outputOrdering, ordering)
    if (ordering.isEmpty || sorted) placed else SortExec(ordering, global = false, placed)
  }

  private def exchanged(wanted: Partitioning, plan: SparkPlan): SparkPlan = wanted match {
    case CoalescedHashPartitioning(hash, boundaries) =>
      GroupedExec(ShuffleExchangeExec(hash, plan), boundaries.map(b => (b.startReducerIndex, b.endReducerIndex)))
    case other => ShuffleExchangeExec(other, plan)
  }
}

/** Reads several partitions of a shuffle as one. */
private[exec] final case class GroupedExec(child: SparkPlan, boundaries: Seq[(Int, Int)]) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output

  override protected def doExecute(): RDD[InternalRow] =
    child.execute().coalesce(boundaries.size, shuffle = false, Some(new Groups(boundaries)))

  override protected def withNewChildInternal(newChild: SparkPlan): GroupedExec = copy(child = newChild)
}

private final class Groups(boundaries: Seq[(Int, Int)]) extends PartitionCoalescer with Serializable {
  override def coalesce(most: Int, parent: RDD[_]): Array[PartitionGroup] = boundaries.map { case (from, to) =>
    val group = new PartitionGroup()
    group.partitions ++= parent.partitions.slice(from, to)
    group
  }.toArray
}

object Layout {

  /**
   * @param plan what plain Spark plans
   * @param whole what it plans for all of the query
   */
  def of(plan: SparkPlan, whole: SparkPlan): Option[Layout] = {
    val leaves = plan.collectLeaves().map(PlanShape.source)
    val shape = PlanShape.of(plan)
    val found = occurrences(plan, shape, whole)
    if (leaves.exists(_.isEmpty) || found.isEmpty) None
    else {
      val shuffles = plan.exists(_.isInstanceOf[ShuffleExchangeLike])
      val rules = if (shuffles) settings(plan) else Nil
      val beside = found.map(besides(whole, _, plan)).distinct
      if (beside.size > 1) None
      else
        Some(
          Layout(
            Digest.of("plan", exact(plan) +: rules),
            shape.map(text => Digest.of("shape", text +: rules)),
            beside.head,
            shuffles))
    }
  }

  /** Whether what plain Spark has above `plan` in `whole` goes by how its rows are partitioned, or sorted within partitions. */
  def reliedOn(plan: SparkPlan, whole: SparkPlan): Boolean = occurrences(plan, PlanShape.of(plan), whole).exists {
    part =>
      whole.exists { above =>
        above.children.lazyZip(above.requiredChildDistribution).lazyZip(above.requiredChildOrdering).exists {
          (child, distribution, ordering) =>
            (distribution != UnspecifiedDistribution || ordering.nonEmpty) && contains(child, part, within)
        }
      }
  }

  /** As it runs: `plan` is what adaptive execution made of it. None where we arranged its rows otherwise than plain Spark. */
  def stored(static: Layout, plan: SparkPlan, partitions: Int): Option[StoredLayout] =
    if (rearranged(plan)) None else Some(asItRan(static, plan, partitions))

  private def asItRan(static: Layout, plan: SparkPlan, partitions: Int): StoredLayout = {
    val rules = settings(plan)
    val planned = !static.shuffles ||
      static.shape.isDefined && PlanShape.of(plan).map(text => Digest.of("shape", text +: rules)) == static.shape
    val boundaries = lastReads(plan).map(_.partitionSpecs).distinct match {
      case Seq(specs) if specs.forall(_.isInstanceOf[CoalescedPartitionSpec]) =>
        specs.collect { case CoalescedPartitionSpec(start, end, _) => (start, end) }
      case _ => Nil
    }
    val single = planned && readAsOne(plan)
    StoredLayout(static, partitions, planned, single, if (boundaries.size == partitions) boundaries else Nil)
  }

  /**
   * Whether rows that were stored as `stored` come in plain Spark's partitions and order; then what to claim of them.
   *
   * @param plain what plain Spark plans in their place
   */
  def arranged(layout: Layout, plain: SparkPlan, stored: StoredLayout): Option[Arranged] = {
    val same = layout.exact == stored.plan.exact
    val alike = layout.shape.isDefined && layout.shape == stored.plan.shape && stored.planned
    val still = !layout.shuffles || stored.single || !plain.conf.adaptiveExecutionEnabled
    val partitioning = plain.outputPartitioning
    val whole = partitioning.numPartitions == stored.partitions
    if (layout.beside != stored.plan.beside || !(same || alike && still)) None
    // A shuffle beside it would not be coalesced with it.
    else if (layout.beside.nonEmpty && !whole) None
    else if (!stored.planned) Some(Arranged(UnknownPartitioning(stored.partitions), Nil))
    else claimed(partitioning, stored).map(Arranged(_, plain.outputOrdering))
  }

  private def claimed(plain: Partitioning, stored: StoredLayout): Option[Partitioning] = plain match {
    case _: UnknownPartitioning => Some(UnknownPartitioning(stored.partitions))
    case _ if plain.numPartitions == stored.partitions => Some(plain)
    case _ if stored.partitions == 1 => Some(SinglePartition)
    case hash: HashPartitioning if stored.boundaries.nonEmpty =>
      Some(CoalescedHashPartitioning(hash, stored.boundaries.map { case (from, to) => CoalescedBoundary(from, to) }))
    case PartitioningCollection(all) =>
      val each = all.map(claimed(_, stored))
      if (each.forall(_.isDefined)) Some(PartitioningCollection(each.flatten)) else None
    case _ => None
  }

  /** What adaptive execution goes by. */
  private def settings(plan: SparkPlan): Seq[String] = {
    val conf = plan.session.sessionState.conf
    if (!conf.adaptiveExecutionEnabled) Seq("static")
    else
      conf.getAllConfs.toSeq.filter(_._1.startsWith("spark.sql.adaptive.")).sorted.map { case (k, v) => s"$k=$v" } :+
        s"cores=${plan.session.sparkContext.defaultParallelism}"
  }

  private def exact(plan: SparkPlan): String = {
    val tree = plan.canonicalized.treeString(verbose = true, maxFields = Int.MaxValue)
    val text = PlanOrigin.text(generated.replaceAllIn(tree, ""))
    val sources = plan.collectLeaves().map(PlanShape.source)
    if (sources.exists(_.isEmpty)) text
    else Digest.of("exact", located.replaceAllIn(text, "") +: sources.flatten)
  }

  /** Numbers of stages whose code is generated, which depend on what is around them. */
  private val generated = "\\*\\([0-9]+\\) ".r

  /** Where files are, which are told one by one. */
  private val located = ", Location: [^,]+ paths?[)]\\[.*?(?=, PartitionFilters: )".r

  private def occurrences(plan: SparkPlan, shape: Option[String], whole: SparkPlan): Seq[SparkPlan] = {
    val top = operator(plan)
    lazy val similar = whole.collect { case each if each.getClass == top.getClass => each }
    shape match {
      case _ if contains(whole, plan, _.children) => Seq(plan)
      case Some(text) => similar.filter(PlanShape.of(_).contains(text))
      case None => similar.filter(_.sameResult(top))
    }
  }

  /** The uppermost operator that is not there for columns or filters alone. */
  @annotation.tailrec
  private def operator(plan: SparkPlan): SparkPlan = plan match {
    case _: ProjectExec | _: FilterExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec =>
      operator(plan.children.head)
    case other => other
  }

  /** Empty where the last stage of `plan` reads no shuffle, or where nothing is coalesced. */
  private def besides(whole: SparkPlan, part: SparkPlan, plan: SparkPlan): String =
    if (!plan.conf.adaptiveExecutionEnabled || boundary(part, null).isEmpty) ""
    else {
      val stage = stages(whole).find(contains(_, part, within)).getOrElse(whole)
      val others = boundary(stage, part)
      if (others.isEmpty) "" else Digest.of("beside", others.map(exact).sorted)
    }

  /** The children of a union are one: how far each is coalesced depends on the sizes of all. */
  private def stages(whole: SparkPlan): Seq[SparkPlan] = whole +: whole.collect {
    case exchange: Exchange => exchange.children
  }.flatten

  private def within(stage: SparkPlan): Seq[SparkPlan] = stage match {
    case _: Exchange => Nil
    case other => other.children
  }

  private def contains(plan: SparkPlan, part: SparkPlan, below: SparkPlan => Seq[SparkPlan]): Boolean =
    (plan eq part) || below(plan).exists(contains(_, part, below))

  /** Shuffles that a stage reads, apart from those below `part`. */
  private def boundary(stage: SparkPlan, part: SparkPlan): Seq[SparkPlan] =
    if (stage eq part) Nil
    else
      stage match {
        case shuffle: ShuffleExchangeLike => Seq(shuffle)
        case other => within(other).flatMap(boundary(_, part))
      }

  private def rearranged(plan: SparkPlan): Boolean = plan match {
    case stage: QueryStageExec => rearranged(stage.plan)
    case ReusedExchangeExec(_, child) => rearranged(child)
    case other => rearranges(other) || other.children.exists(rearranged)
  }

  /** Each of our operators but those that give rows as they come to them, or as plain Spark would. */
  private def rearranges(plan: SparkPlan): Boolean = plan match {
    case _: TeeExec | _: MaterializedReadExec | _: MaterializedScanExec | _: skew.RowCountsExec => false
    case other => other.getClass.getName.startsWith("org.apache.spark.sql.regions.")
  }

  private def lastReads(plan: SparkPlan): Seq[AQEShuffleReadExec] = plan match {
    case read: AQEShuffleReadExec => Seq(read)
    case _: QueryStageExec => Nil
    case other => other.children.flatMap(lastReads)
  }

  private def readAsOne(plan: SparkPlan): Boolean = plan match {
    case AQEShuffleReadExec(stage: QueryStageExec, specs) =>
      specs.size == 1 && stage.plan.children.forall(readAsOne)
    case stage: QueryStageExec => readAsOne(stage.plan)
    case ReusedExchangeExec(_, child) => readAsOne(child)
    case shuffle: ShuffleExchangeLike => shuffle.numPartitions == 1 && readAsOne(shuffle.child)
    case other => other.children.forall(readAsOne)
  }
}
