package org.apache.spark.sql.regions.profile

import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.window.WindowExecBase
import org.apache.spark.sql.regions.{Policy, wire}
import org.apache.spark.sql.regions.exec.{RowBatches, TeeExec}

/** What is known of a node, or of a load, after a run; None where Spark does not count it. */
final case class Observed(rows: Option[Long], bytes: Option[Long], seconds: Option[Double])

/** What Spark materialized between a node and the one above it; `bytes` as they were written, None of a broadcast. */
final case class Exchanged(kind: String, bytes: Option[Long])

/**
 * The measurements of one execution, put together: operators of the plan that ran, and sums of the stages.
 *
 * @param failed then row counts are those of an unfinished run, and are not reported
 * @param weights by which a stage's time is divided over its operators
 * @param whole of a plan that ran as a part of another one: that one, which its stages were divided over
 */
final class ExecutedQuery(
    walked: WalkedPlan,
    stages: Seq[StageSums],
    failed: Boolean,
    weights: Weights = Weights.fixed,
    whole: Option[ExecutedQuery] = None) {
  private val operators = walked.operators
  private val segmentOf: Map[Long, Int] = operators.iterator.flatMap(operator =>
    operator.plan.metrics.iterator.collect {
      case (name, metric) => metric.id -> (if (ExecutedQuery.isWriteMetric(name)) operator.writes else operator.reads)
    }).toMap
  private val stagesOf: Map[Int, Seq[StageSums]] = stages
    .flatMap(stage => stage.metrics.flatMap(segmentOf.get).toSet[Int].map(_ -> stage))
    .groupMap(_._1)(_._2)

  /** Stages that count for rows: before a range exchange, a stage that only samples reads everything once more. */
  private val countedStages: Map[Int, Seq[StageSums]] = {
    val ranged = operators.collect { case operator if operator.writes != operator.reads => operator }
      .flatMap(operator =>
        operator.plan match {
          case exchange: ShuffleExchangeExec if exchange.outputPartitioning.isInstanceOf[RangePartitioning] =>
            id(operator, "shuffleRecordsWritten").map(operator.writes -> _)
          case _ => None
        })
    stagesOf ++ ranged.flatMap { case (segment, written) =>
      stagesOf.get(segment).map(ran => ran.filter(_(written).nonEmpty)).filter(_.nonEmpty).map(segment -> _)
    }
  }

  private val rowsOut: Array[Option[Long]] = {
    val rows = Array.fill[Option[Long]](operators.size)(None)
    // Parents come before their children, so backwards every child is known.
    operators.reverseIterator.foreach(operator => rows(operator.index) = countRows(operator, rows))
    rows
  }

  private val partsOf: Seq[(StageSums, IndexedSeq[(Operator, StagePart)])] = stages.map { stage =>
    val segments = stage.metrics.flatMap(segmentOf.get).toSet
    stage -> operators.filter(operator => segments(operator.reads) || segments(operator.writes))
      .map(operator => operator -> part(operator, stage, segments))
  }

  private val secondsOf: Array[Double] =
    whole.fold(divided)(all => operators.map(each => all.secondsOf(each.plan)).toArray)

  private def divided: Array[Double] = {
    val seconds = Array.fill(operators.size)(0.0)
    partsOf.foreach { case (stage, parts) =>
      parts.map(_._1).zip(Attribution.split(stage.seconds, parts.map(_._2), weights))
        .foreach { case (operator, share) => seconds(operator.index) += share }
    }
    seconds
  }

  private def secondsOf(plan: SparkPlan): Double =
    operators.find(_.plan eq plan).fold(0.0)(each => secondsOf(each.index))

  def taskSeconds: Double = if (whole.isEmpty) stages.map(_.seconds).sum else secondsOf.sum
  def fitted: Double = weights.fitted

  /** What the stages took, those that tell something of what rows cost: the longest, and of an unfinished run none. */
  def timed: Seq[wire.TimedStage] =
    if (failed || whole.nonEmpty) Nil
    else partsOf
      .collect {
        case (stage, parts) if stage.seconds * 1000 >= Policy.timedStageLeastMillis && parts.nonEmpty =>
          val own = parts.map(_._2)
          wire.TimedStage(
            stage.seconds,
            stage.cpuSeconds,
            math.min(stage.seconds, own.map(_.exactSeconds).sum),
            stage.tasks,
            own.groupMapReduce(_.kind)(_.rows)(_ + _),
            own.map(part => part.rows * part.expressions).sum
          )
      }
      .sortBy(-_.seconds).take(Policy.timedStagesMost)

  /** Task-seconds of storing and keeping rows. */
  lazy val writeSeconds: Double = operators.map(operator =>
    Seq(TeeExec.writeTime, RowBatches.keepTime)
      .flatMap(name => id(operator, name)).flatMap(metric => stages.flatMap(_(metric))).sum / 1e9).sum

  /**
   * Plans that the user cached, which this execution computed, all of them and for the first time. Of one that was there, or of
   * which partitions were computed before, a part of its metrics is in none of the stages.
   */
  lazy val cached: Seq[ExecutedQuery] =
    if (operators.exists(each => each.foreign && counted(each).exists(_._2 > 0))) cachedNow else Nil

  private def cachedNow: Seq[ExecutedQuery] = operators.map(_.plan)
    .collect { case scan: InMemoryTableScanExec if scan.relation.cacheBuilder.isCachedColumnBuffersLoaded => scan }
    .map(scan => PlanWalk(scan.relation.cachedPlan))
    .distinctBy(_.query)
    .filter { part =>
      val rows = part.operators.flatMap(counted)
      part.query != walked.query && rows.exists(_._2 > 0) && rows.forall { case (ever, here) => ever == here }
    }
    .map(new ExecutedQuery(_, stages, failed, weights, Some(this)))

  /** Rows that tasks counted, in all executions and in this one; those of a broadcast are the driver's. */
  private def counted(operator: Operator): Option[(Long, Long)] = operator.plan match {
    case _: BroadcastExchangeLike => None
    case plan => plan.metrics.get("numOutputRows").map(rows => rows.value -> stages.flatMap(_(rows.id)).sum)
  }

  def query: Option[Long] = walked.query

  /** By node id, of those that ran. */
  lazy val nodes: Map[Int, Observed] = {
    val own = operators.filter(operator => operator.node.isDefined && operator.entry.isEmpty && !isTee(operator))
      .groupBy(_.node.get).map { case (id, group) =>
        id -> Observed(exactRows(group.head), dataSize(group.head), ran(group))
      }
    // A projection that was planned into its child's operator passes the child's rows, at no cost of its own.
    own ++ walked.passed.collect {
      case (id, below) if !own.contains(id) && own.contains(below) =>
        id -> Observed(own(below).rows, None, own(below).seconds.map(_ => 0.0))
    }
  }

  /** By the place that reads. */
  lazy val loads: Map[LoadMark, Observed] = operators.filter(_.entry.isDefined).groupBy(_.entry.get)
    .map { case (mark, group) => mark -> Observed(exactRows(group.head), dataSize(group.head), ran(group)) }

  /** By node id: the region that made its rows, a stage of Spark's; numbered in an order in which they can run. */
  lazy val regions: Map[Int, Int] = {
    val number = walked.inOrder.zipWithIndex.map { case (segment, place) => segment -> (place + 1) }.toMap
    val own = operators.filter(operator => operator.node.isDefined && !isTee(operator)).groupBy(_.node.get)
      .map { case (id, group) => id -> number(group.head.reads) }
    val used = own.values.toSeq.distinct.sorted.zipWithIndex.map { case (region, place) => region -> (place + 1) }.toMap
    (own ++ walked.passed.collect { case (id, below) if !own.contains(id) && own.contains(below) => id -> own(below) })
      .map { case (id, region) => id -> used(region) }
  }

  /** By id of the node whose rows went through it. */
  lazy val exchanges: Map[Int, Exchanged] = operators.filterNot(_.foreign).flatMap(exchanged).groupMap(_._1)(_._2)
    .map { case (id, all) =>
      val written = all.flatMap(_.bytes)
      id -> Exchanged(all.last.kind, Option.when(written.nonEmpty)(written.sum))
    }

  private def exchanged(operator: Operator): Option[(Int, Exchanged)] = {
    def input(above: Operator): Option[Int] = above.children.headOption
      .flatMap(child => child.node.filterNot(operator.node.contains).orElse(input(child)))
    val what = operator.plan match {
      case _: ShuffleExchangeLike =>
        Some(Exchanged("shuffle", value(operator, "shuffleBytesWritten", operator.writes).filterNot(_ => failed)))
      case _: BroadcastExchangeLike => Some(Exchanged("broadcast", None))
      case _ => None
    }
    // Of nodes that share an operator, the topmost: numbers are in pre-order.
    def top(id: Int): Int = walked.passed.collect { case (above, `id`) => above }.minOption.fold(id)(math.min(_, id))
    for (id <- input(operator); found <- what) yield top(id) -> found
  }

  private def isTee(operator: Operator): Boolean = operator.kind == "TeeExec"

  private def ran(group: Iterable[Operator]): Option[Double] =
    if (group.exists(operator => stagesOf.contains(operator.reads) || stagesOf.contains(operator.writes))) {
      Some(group.map(operator => secondsOf(operator.index)).sum)
    } else None

  private def exactRows(operator: Operator): Option[Long] = operator.plan match {
    // With filters pushed into it, a scan's output is not the relation's.
    case scan: FileSourceScanLike if scan.dataFilters.nonEmpty || scan.partitionFilters.nonEmpty => None
    case _ => rowsOut(operator.index)
  }

  private def countRows(operator: Operator, rows: Array[Option[Long]]): Option[Long] = {
    def ofChild: Option[Long] = operator.children.headOption.flatMap(child => rows(child.index))
    operator.plan match {
      case _ if failed => None
      case reused: ReusedExchangeExec =>
        operators.find(_.plan eq reused.child).flatMap(original => rows(original.index))
          .orElse(value(reused.child, "shuffleRecordsWritten", Nil))
      case _: ShuffleExchangeLike => value(operator, "shuffleRecordsWritten", operator.writes).orElse(ofChild)
      case _: BroadcastExchangeLike => ofChild.orElse(value(operator, "numOutputRows", operator.writes))
      case union: UnionExec =>
        val inputs = operator.children.map(child => rows(child.index))
        if (inputs.size == union.children.size && inputs.forall(_.isDefined)) Some(inputs.flatten.sum) else None
      case plan if plan.metrics.contains("numOutputRows") && !ExecutedQuery.passesRows(plan) =>
        if (operator.partial) None else value(operator, "numOutputRows", operator.reads)
      case plan if plan.metrics.contains("pythonNumRowsReceived") =>
        if (operator.partial) None else value(operator, "pythonNumRowsReceived", operator.reads)
      case plan if ExecutedQuery.passesRows(plan) => ofChild
      case _ => None
    }
  }

  /** Of rows that a shuffle counted. What a broadcast counts is its hash table, mostly empty where rows are few. */
  private def dataSize(operator: Operator): Option[Long] =
    Some(operator.parent).filter(_ >= 0).map(operators)
      .collect { case above if above.plan.isInstanceOf[ShuffleExchangeLike] => above }
      .filterNot(_ => failed)
      .flatMap(above => value(above, "dataSize", above.writes)).filter(_ > 0)

  private def id(operator: Operator, metric: String): Option[Long] = operator.plan.metrics.get(metric).map(_.id)

  private def value(operator: Operator, name: String, segment: Int): Option[Long] =
    if (operator.foreign) None else value(operator.plan, name, countedStages.getOrElse(segment, Nil))

  /** Summed over the stages that count; a metric that the driver sets itself is in none of them. */
  private def value(plan: SparkPlan, name: String, ran: Seq[StageSums]): Option[Long] =
    plan.metrics.get(name).flatMap { metric =>
      val counted = ran.flatMap(_(metric.id))
      if (counted.nonEmpty) Some(counted.sum)
      else Some(metric.value).filter(value => value > 0 || ran.nonEmpty).map(math.max(0L, _))
    }

  private def part(operator: Operator, stage: StageSums, segments: Set[Int]): StagePart = {
    def seconds(name: String, unitsPerSecond: Double): Double =
      id(operator, name).flatMap(stage(_)).map(_ / unitsPerSecond).getOrElse(0.0)
    val out = if (operator.foreign) stageRows(operator, stage) else rowsForCost(operator)
    val in = operator.children.map(child => if (operator.foreign) stageRows(child, stage) else rowsForCost(child)).sum
    val exact = seconds("sortTime", 1e3) + seconds(TeeExec.writeTime, 1e9) + seconds(RowBatches.keepTime, 1e9) +
      (if (segments(operator.writes)) seconds("shuffleWriteTime", 1e9) else 0) +
      (if (segments(operator.reads)) seconds("fetchWaitTime", 1e3) else 0)
    val atLeast = seconds("scanTime", 1e3) + seconds("pythonProcessingTime", 1e3)
    val reads = operator.reads != operator.writes && segments(operator.reads)
    val kind = if (reads) operator.kind + ExecutedQuery.reading else operator.kind
    StagePart(kind, math.max(in, out), exact, atLeast, ExpressionCosts(operator.plan))
  }

  private def stageRows(operator: Operator, stage: StageSums): Double =
    id(operator, "numOutputRows").flatMap(stage(_)).map(_.toDouble).getOrElse(0.0)

  /** Where rows are not exactly known, a rough count still divides time better than none. */
  private def rowsForCost(operator: Operator): Double = rowsOut(operator.index).map(_.toDouble)
    .orElse(operator.plan.metrics.get("numOutputRows").map(_.value.toDouble).filter(_ > 0))
    .orElse(operator.children.map(child => rowsForCost(child)).maxOption)
    .getOrElse(0.0)
}

object ExecutedQuery {
  private val reading = ".read"
  private val writeMetrics = Set("dataSize", "shuffleBytesWritten", "shuffleRecordsWritten", "shuffleWriteTime")

  def isWriteMetric(name: String): Boolean = writeMetrics(name)

  /** Operators whose output has as many rows as their input. */
  def passesRows(plan: SparkPlan): Boolean = plan match {
    case _: ProjectExec | _: SortExec | _: CoalesceExec | _: CollectMetricsExec | _: WindowExecBase |
        _: DeserializeToObjectExec | _: SerializeFromObjectExec | _: MapElementsExec | _: SubqueryExec => true
    case other => other.getClass.getSimpleName == "TeeExec"
  }
}
