package org.apache.spark.sql.regions.skew

import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.AtomicBoolean

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler.StageInfo
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Literal}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.regions._
import org.apache.spark.util.Utils

/**
 * Writes down what was decided on a stage, among the decisions on its query.
 *
 * @param operator what the stage is of
 * @param refusal why no rows may be split
 * @param inputs the written shuffles that the stage reads
 * @param learned whether it was predicted by what it took before
 * @param counted told the keys that this run counted
 */
private[skew] final case class SkewNote(
    runtime: RegionsRuntime,
    session: SparkSession,
    query: Long,
    operator: String,
    refusal: Option[Refusal],
    inputs: Seq[ShuffleQueryStageExec],
    startedNanos: Long,
    plannerMillis: Double,
    learned: Boolean = false,
    counted: Seq[KeyFrequency] => Unit = _ => ()) {
  private val planningMillis = (System.nanoTime() - startedNanos) / 1e6

  def refused(why: Refusal, declines: Seq[Refusal]): Unit = {
    val all = (why +: (declines ++ refusal)).distinct
    runtime.counters.add(Counters.declines, all.length)
    add(Nil, all.map(each => DeclinedNode(-1, operator, each.code, each.detail)))
  }

  /** To be called by each changed read when it runs; the decision counts once, and each stage. */
  def ran(spec: SkewSpec): SkewRun => Unit = {
    val first = new AtomicBoolean(true)
    val stages = ConcurrentHashMap.newKeySet[Int]()
    val keys = new ConcurrentLinkedQueue[(Int, HeavyKeys)]()
    val found = new ConcurrentLinkedQueue[KeyFrequency]()
    run => {
      run.keys.foreach(found => keys.add(run.rdd -> found))
      runtime.stageTimes.await(run.rdd) { stage =>
        // A job of few partitions, as of toLocalIterator, counts the keys of these only.
        val whole = stage.rddInfos.filter(_.numPartitions <= stage.numTasks).map(_.id).toSet
        if (stages.add(stage.stageId))
          measured(stage, keys.asScala.collect { case (rdd, of) if whole(rdd) => of }.toSeq, found)
      }
      if (first.getAndSet(false)) {
        runtime.counters.add(Counters.skewRepairs)
        val action = DecidedAction(
          spec.kind,
          -1,
          operator,
          "",
          spec.plainSeconds - spec.predictedSeconds,
          spec.reason.code,
          detail = detail(spec),
          splits = splits(spec),
          makespan = Some(
            Makespan(stage, spec.predictedSeconds, spec.plainSeconds, spec.boundSeconds, partitions, spec.tasks.length))
        )
        val declines = spec.declines ++ refusal
        add(Seq(action), declines.map(each => DeclinedNode(-1, operator, each.code, each.detail)))
      }
    }
  }

  /** Calls `told` with the first stage alone. */
  def once(told: ShuffleQueryStageExec => Unit): ShuffleQueryStageExec => Unit = {
    val first = new AtomicBoolean(true)
    stage => if (first.getAndSet(false)) told(stage)
  }

  /** Of a sort whose ties were spread over ranges: what it came to. Its gain stays unknown. */
  def spread(spec: SkewSpec, written: ShuffleQueryStageExec): Unit = {
    val bytes = new ShuffleSizes(written).bytes
    val detail =
      f"predicted ${spec.predictedSeconds}%.2f s, up to ${spec.plainSeconds}%.2f s with all rows in one value; " +
        f"the largest of ${bytes.length} ranges has ${100.0 * bytes.max / math.max(bytes.sum, 1L)}%.0f %% of the bytes"
    runtime.counters.add(Counters.skewRepairs)
    add(
      Seq(DecidedAction(spec.kind, -1, operator, "", -1, spec.reason.code, detail = detail)),
      spec.declines.map(each => DeclinedNode(-1, operator, each.code, each.detail))
    )
  }

  /** @param counts of all stages of this decision: a join may be made in two */
  private def measured(stage: StageInfo, keys: Seq[HeavyKeys], counts: ConcurrentLinkedQueue[KeyFrequency]): Unit =
    for (end <- stage.completionTime; start <- stage.submissionTime) {
      val found = keys.collect { case sampled: SampledKeys => sampled }.flatMap(heaviest)
      val known = keys.collect { case KnownKeys(shares) => shares }.flatten.distinct
      if (keys.exists(_.isInstanceOf[SampledKeys])) {
        counts.addAll(found.asJava)
        counted(counts.asScala.toSeq.sortBy(-_.share).distinctBy(_.key))
      }
      val shares = found ++ known.map(each => each.copy(key = redacted(each.key)))
      val told =
        shares.map(each => f"; ${each.key}: ${100 * each.share}%.1f %% of the rows (± ${100 * each.error}%.1f %%)") ++
          known.headOption.map(_ => ", counted in an earlier run")
      val detail =
        f"stage ${stage.stageId} took ${(end - start) / 1000.0}%.2f s in ${stage.numTasks} tasks" + told.mkString
      val run = StageRun(this.stage, stage.stageId, stage.attemptNumber(), start, end, stage.numTasks, shares)
      add(Seq(DecidedAction("measured", -1, operator, "", -1, "MEASURED", detail = detail, stageRun = Some(run))), Nil)
    }

  /** Shares of the rows of the inputs that have these keys, as far as a sample tells them from nothing. */
  private def heaviest(sampled: SampledKeys): Seq[KeyFrequency] = {
    val names = sampled.keys.map(_.transform { case column: AttributeReference => column.withQualifier(Nil) }.sql)
    val found = sampled.counts.value
    val rows = sampled.rows.toDouble / KeySampler.every
    found.counts.toSeq.sortBy(-_._2).take(SkewNote.keysShown).map { case (key, count) =>
      val values = sampled.keys.zipWithIndex.map { case (of, at) => Literal(key.get(at, of.dataType), of.dataType).sql }
      val text = names.zip(values).map { case (name, value) => s"$name = $value" }.mkString(", ")
      KeyFrequency(
        redacted(text).take(SkewNote.keyLength),
        math.min(count / rows, 1.0),
        (found.error + 2 * math.sqrt(count.toDouble)) / rows
      )
    }.filter(each => rows > 0 && each.share > each.error && each.share >= SkewNote.leastShare)
  }

  private def redacted(text: String): String =
    Utils.redact(session.sessionState.conf.stringRedactionPattern, text)

  private def stage: Int = inputs.head.id
  private def partitions: Int = new ShuffleSizes(inputs.head).bytes.length

  /** The heaviest first. */
  private def splits(spec: SkewSpec): Seq[SkewSplit] = {
    val sizes = inputs.map(new ShuffleSizes(_).weights)
    spec.splits.values.toSeq.map { split =>
      val weights = sizes(if (split.left || sizes.length == 1) 0 else 1)
      val cut = if (split.maps.isEmpty) "row by row" else "by map tasks"
      val how = if (split.hashed) s"$cut, by a hash table" else cut
      SkewSplit(
        split.partition,
        if (split.left) "left" else "right",
        weights(split.partition).toDouble / math.max(weights.sum, 1L),
        split.slices,
        if (split.unmatched) s"$how, unmatched rows apart" else how
      )
    }.sortBy(split => (-split.share, split.partition)).take(SkewNote.splitsShown)
  }

  private def detail(spec: SkewSpec): String = {
    val told = splits(spec).take(SkewNote.splitsTold).map { split =>
      f"; partition ${split.partition} (${100 * split.share}%.0f %% of the ${split.side} input)" +
        f" to ${split.tasks} tasks ${split.how}"
    }
    val more = if (spec.splits.size > told.size) s"; ${spec.splits.size - told.size} more" else ""
    val known = if (learned) ", as it ran before" else ""
    f"predicted ${spec.predictedSeconds}%.2f s, plain ${spec.plainSeconds}%.2f s, balanced ${spec.boundSeconds}%.2f s" +
      s"$known; $partitions partitions in ${spec.tasks.length} tasks" + told.mkString + more
  }

  private def add(actions: Seq[DecidedAction], declines: Seq[DeclinedNode]): Unit = runtime.recycling.add(
    Decision(query, session.sessionUUID, System.currentTimeMillis(), planningMillis, plannerMillis, actions, declines,
      topic = "skew"))
}

private[skew] object SkewNote {
  val splitsShown = 10
  val splitsTold = 3
  val keysShown = 3
  val keyLength = 100
  val leastShare = 0.01
}

/** The number under which a query was decided, for a part of its physical plan. */
private[skew] object SkewQuery {
  val unknown = 0L

  def of(plan: SparkPlan): Long = {
    def found(p: SparkPlan): Iterator[Long] = {
      val own = p.logicalLink.iterator.flatMap(_.collectFirst(Function.unlift(_.getTagValue(Tags.query))))
      val below = p match {
        case stage: QueryStageExec => Iterator(stage.plan)
        case other => other.children.iterator
      }
      own ++ below.flatMap(found)
    }
    found(plan).nextOption().getOrElse(unknown)
  }
}
