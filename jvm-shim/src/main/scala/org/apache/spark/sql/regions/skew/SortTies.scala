package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{RangePartitioning, UnknownPartitioning}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec, ValidateRequirements}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.RecordedWriteExec
import org.apache.spark.sql.regions.rules.RowOrder

/**
 * Lets the rows of one sort key go to several ranges of a global sort, before its shuffle is written.
 *
 * Spark sorts by ranges of (x): all rows of one x are in one range, and one task. Ranges of (x, number of the map task)
 * are in the order of x as well, which is all that the sort requires (`RangePartitioning` satisfies the ordering of a
 * prefix of its own), and Spark's own sample then finds the bounds inside of a heavy x. Within each range Spark sorts by
 * x, as before. So the rows are the same, and their order by x; that of ties is no part of a sort.
 *
 * Only where the sort's rows go straight to the caller or to files: any other operator above could tell ties apart, or
 * rely on equal keys in one partition.
 */
final class SortTiesRule(session: SparkSession) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    val conf = session.sessionState.conf
    if (!conf.getConf(RegionsConf.skewEnabled) || !plan.exists(SortTies.unapply(_).isDefined)) plan
    else Guard(session.sparkContext.conf, "a decision on a sort", plan) {
      RegionsRuntime.of(session).fold(
        _ => plan,
        runtime => new SortTies(session, runtime)(plan))
    }
  }
}

private final class SortTies(session: SparkSession, runtime: RegionsRuntime) {
  private val conf = session.sessionState.conf
  private val always = conf.getConf(RegionsConf.skewStrategy) == "always"

  def apply(plan: SparkPlan): SparkPlan =
    plan.collect { case SortTies(sort, exchange) => sort -> exchange }
      .filter { case (_, exchange) => bytes(exchange) >= (if (always) 1 else Policy.skewBytesWorthAsking) }
      .foldLeft(plan) { case (before, (sort, exchange)) => decided(before, sort, exchange) }

  private def decided(plan: SparkPlan, sort: SortExec, exchange: ShuffleExchangeExec): SparkPlan = {
    val started = System.nanoTime()
    val query = SkewQuery.of(plan)
    def note(asked: Double) = SkewNote(runtime, session, query, sort.nodeName, None, Nil, started, asked)
    val known = sort.logicalLink.flatMap(_.getTagValue(SortTies.decided))
    val asked = System.nanoTime()
    val answer = known.getOrElse(refusal(plan, sort, exchange).toLeft(()).flatMap(_ => ask(exchange, query)))
    val told = note((System.nanoTime() - asked) / 1e6)
    val changed = answer.flatMap(spec => spread(plan, exchange, spec, told))
    sort.logicalLink.foreach(_.setTagValue(SortTies.decided, changed.flatMap(_ => answer)))
    if (known.isEmpty) changed.left.foreach(told.refused(_, Nil))
    changed.getOrElse(plan)
  }

  private def bytes(exchange: ShuffleExchangeExec): Double =
    exchange.child.logicalLink.fold(0.0)(_.stats.sizeInBytes.toDouble)

  private def refusal(plan: SparkPlan, sort: SortExec, exchange: ShuffleExchangeExec): Option[Refusal] = {
    val execution = session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    if (exchange.shuffleOrigin != ENSURE_REQUIREMENTS)
      Some(Refusal("REPARTITION", exchange.shuffleOrigin.toString))
    else if (execution == null) Some(Refusal("PARTITIONS_VISIBLE", "not planned for an action"))
    else if (RowOrder.seen(session, sort)) Some(Refusal("ROW_ORDER", sort.nodeName))
    else if (exchange.child.outputPartitioning.numPartitions == 1) Some(Refusal("ONE_BLOCK", ""))
    else SortTies.between(plan, sort).map {
      case limit: LimitExec => Refusal("LIMIT_WITHOUT_TOTAL_ORDER", limit.nodeName)
      case other => Refusal("ORDER_DEPENDENT", other.nodeName)
    }
  }

  private def ask(exchange: ShuffleExchangeExec, query: Long): Either[Refusal, SkewSpec] = {
    val deadline = runtime.plannerDeadlineMillis
    runtime.planner.request(request(exchange, query, deadline), deadline).flatMap(parsed)
  }

  /** Nothing is known of single ranges before they are written: as if they were even. */
  private def request(exchange: ShuffleExchangeExec, query: Long, deadline: Long): wire.DecideSkew = {
    // The exchange's own number of partitions would run the sample.
    val parts = exchange.outputPartitioning.numPartitions
    val width = exchange.output.map(_.dataType.defaultSize).sum + 8
    val each = (math.min(bytes(exchange), SortTies.mostBytes) / parts).toLong
    val shuffle = wire.ShuffleRead(
      Seq.fill(parts)(each),
      Seq.fill(parts)(math.max(each / width, 1L)),
      math.max(exchange.child.outputPartitioning.numPartitions, 1))
    SkewRequest(
      query, deadline, conf, wire.ReduceStage("sort", session.sparkContext.defaultParallelism, shuffle))
  }

  private def parsed(answer: wire.SkewDecision): Either[Refusal, SkewSpec] = {
    val found = SkewSpec.summary(answer.spec)
    if (found.kind == "none") Left(found.reason)
    else if (found.kind != "spread_ties") Left(Refusal("PLANNER_PROTOCOL", s"kind ${found.kind}"))
    else if (conf.getConf(RegionsConf.mode) == "observe") Left(Refusal("OBSERVE_ONLY", found.reason.detail))
    else Right(found)
  }

  private def spread(
      plan: SparkPlan,
      exchange: ShuffleExchangeExec,
      spec: SkewSpec,
      note: SkewNote): Either[Refusal, SparkPlan] = {
    val range = exchange.outputPartitioning.asInstanceOf[RangePartitioning]
    val finer = exchange.copy(
      outputPartitioning =
        range.copy(ordering = range.ordering :+ SortOrder(MapTask(), Ascending)))
    finer.copyTagsFrom(exchange)
    finer.setTagValue(SortTies.onRead, note.once(stage => note.spread(spec, stage)))
    val changed = Rearranged.replaced(plan, exchange, finer)
    // What relied on equal keys in one partition no longer finds them there.
    if (ValidateRequirements.validate(changed)) Right(changed) else Left(Refusal("CO_PARTITIONED", "Sort"))
  }
}

private[skew] object SortTies {

  /** A size that a planner can still count with; estimates of unknown sources are far above it. */
  val mostBytes: Double = 1e15

  /** At the logical node: a plan is made anew whenever one of its stages is written. */
  val decided: TreeNodeTag[Either[Refusal, SkewSpec]] =
    TreeNodeTag[Either[Refusal, SkewSpec]]("spark_regions.skew.sortDecided")

  /** Told the shuffle once it is written and about to be read. */
  val onRead: TreeNodeTag[ShuffleQueryStageExec => Unit] =
    TreeNodeTag[ShuffleQueryStageExec => Unit]("spark_regions.skew.onRead")

  /** A global sort whose shuffle is not written yet. */
  def unapply(plan: SparkPlan): Option[(SortExec, ShuffleExchangeExec)] = plan match {
    case sort @ SortExec(_, true, exchange: ShuffleExchangeExec, _) =>
      exchange.outputPartitioning match {
        case range: RangePartitioning if range.numPartitions > 1 => Some(sort -> exchange)
        case _ => None
      }
    case _ => None
  }

  /** The first operator on the way from the root to the sort that could tell ties apart. */
  def between(plan: SparkPlan, sort: SortExec): Option[SparkPlan] = plan match {
    case found if found eq sort => None
    case _: ProjectExec | _: FilterExec if plan.expressions.forall(_.deterministic) =>
      between(plan.children.head, sort)
    case _: DataWritingCommandExec | _: WriteFilesExec | _: RecordedWriteExec if indifferent(plan) =>
      between(plan.children.head, sort)
    case other => Some(other)
  }

  private def indifferent(plan: SparkPlan): Boolean =
    plan.requiredChildDistribution.forall(required => UnknownPartitioning(2).satisfies(required))

  /** Of a stage that is about to run. */
  def read(plan: SparkPlan): Unit = plan.foreach {
    case stage: ShuffleQueryStageExec if stage.mapStats.isDefined =>
      stage.plan.collectFirst(Function.unlift(_.getTagValue(onRead))).foreach(_.apply(stage))
    case _ =>
  }
}
