package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{Exchange, ValidateRequirements}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.rules.RowOrder

/** One group of inputs of a stage that is about to run: measured, asked about, and arranged otherwise. */
private[skew] final class SkewDecision(session: SparkSession, runtime: RegionsRuntime, group: ReduceGroup) {
  private val conf = session.sessionState.conf
  private val cores = session.sparkContext.defaultParallelism
  private val sizes = group.inputs.map(input => new ShuffleSizes(input.stage))
  private val key = StageKey.of(group)
  private val started = System.nanoTime()

  def apply(plan: SparkPlan): SparkPlan =
    if (!alike) plan
    else {
      val query = SkewQuery.of(plan)
      watch(query, group.inputs.head.tasks)
      if (!worthAsking) plan else decided(plan, query)
    }

  private def decided(plan: SparkPlan, query: Long): SparkPlan =
    if (fixed.isDefined) {
      if (worthTelling) note(query, None, 0).refused(fixed.get, Nil)
      plan
    } else {
      // Far less than starting the tasks takes.
      val deadline = runtime.plannerDeadlineMillis + sizes.head.bytes.length / Policy.partitionsPerMilli
      val request = SkewRequest(group, key, sizes, query, session.sparkContext, cores, deadline, conf)
      val asked = System.nanoTime()
      val answer = runtime.planner.request(request, deadline)
      val told = note(query, group.refusal, (System.nanoTime() - asked) / 1e6)
        .copy(
          learned = answer.exists(_.learned),
          counted = found => runtime.planner.observe(SkewRequest.counted(query, key, group.name, found))
        )
      answer.flatMap(parsed).flatMap(spec => arranged(spec).map(spec -> _)) match {
        case Left(refusal) => if (worthTelling) told.refused(refusal, Nil)
        case Right((spec, _)) if spec.kind == "none" => if (worthTelling) told.refused(spec.reason, spec.declines)
        case Right((spec, _)) if conf.getConf(RegionsConf.mode) == "observe" =>
          told.refused(Refusal("OBSERVE_ONLY", spec.reason.detail), spec.declines)
        case Right((spec, changed)) =>
          val once = told.ran(spec)
          val known = answer.toOption.flatMap(_.keys).map(_.map(key => KeyFrequency(key.key, key.share, key.error)))
          watch(query, spec.tasks.map(task => if (task.forall(_.slice.isEmpty)) task.map(_.partition) else Nil))
          changed.foreach {
            case read: SkewReadExec if read.getTagValue(SkewReadExec.onRun).isEmpty =>
              read.setTagValue(SkewReadExec.onRun, once)
              sampled(spec, read).filter(_.nonEmpty).foreach { heavy =>
                known.fold(read.setTagValue(SkewReadExec.sampled, heavy))(read.setTagValue(SkewReadExec.known, _))
              }
            case _ =>
          }
          return changed
      }
      plan
    }

  private lazy val fixed = group.fixed.orElse(Option.when(ordered)(Refusal("ROW_ORDER", group.name)))

  /** Whether somebody may see in which order the stage has its rows. An exchange is linked to what reads it. */
  private def ordered: Boolean =
    group.path.find(p => !p.isInstanceOf[Exchange] && p.logicalLink.isDefined).forall(RowOrder.seen(session, _))

  private def note(query: Long, refusal: Option[Refusal], plannerMillis: Double): SkewNote =
    SkewNote(runtime, session, query, group.name, refusal, group.inputs.map(_.stage), started, plannerMillis)

  /** Of groups of equal numbers of partitions only; others read all of one input in one task. */
  private def alike: Boolean =
    sizes.map(_.bytes.length).distinct.length == 1 && group.inputs.map(_.tasks).distinct.length == 1

  /** Bytes tell nothing of what a function of the user's takes: what it took before may. */
  private def worthAsking: Boolean = if (group.opaque) gain > 0 else worthTelling

  private def worthTelling: Boolean =
    gain > (if (conf.getConf(RegionsConf.skewStrategy) == "always") 0 else 1)

  /** By bytes or by rows, whatever is more of what is worth asking about. */
  private lazy val gain: Double = {
    def of(each: ShuffleSizes => Array[Long]): Double = {
      val together = sizes.map(each).transpose.map(_.sum.toDouble)
      SkewBound.gain(group.inputs.head.tasks.map(_.map(together).sum), cores)
    }
    math.max(of(_.bytes) / Policy.skewBytesWorthAsking, of(_.rowsByPartition) / Policy.skewRowsWorthAsking)
  }

  /** @param read whole partitions of each task */
  private def watch(query: Long, read: Seq[Seq[Int]]): Unit =
    if (sizes.head.bytes.length <= SkewDecision.mostWatched) {
      runtime.stageLoads.await(sizes.head.shuffle, key, read.length) { loads =>
        Guard.run(session.sparkContext.conf, "what a stage took") {
          if (loads.map(_.millis).sum >= Policy.stageLeastMillis) {
            runtime.planner.observe(SkewRequest.ran(query, key, sizes, read, loads))
          }
        }
      }
    }

  /** Of a read, the heavy partitions whose rows it reads once: not those that it copies to each slice of the other input. */
  private def sampled(spec: SkewSpec, read: SkewReadExec): Option[Set[Int]] =
    group.inputs.zip(sizes).zipWithIndex.collectFirst {
      case ((input, size), at) if input.stage eq read.child =>
        val weights = size.weights
        val fair = weights.sum.toDouble / cores
        val copied =
          spec.splits.values.filter(split => group.join.isDefined && split.left != (at == 0)).map(_.partition).toSet
        weights.indices.filter(p => weights(p) > fair / 2 && !copied(p)).toSet
    }.filter(_ => conf.getConf(RegionsConf.skewKeys))

  private def parsed(answer: wire.SkewDecision): Either[Refusal, SkewSpec] =
    SkewSpec.parse(answer.spec, sizes.head.bytes.length, sizes.map(_.maps), twoPhases = group.window.isDefined)

  private def arranged(spec: SkewSpec): Either[Refusal, SparkPlan] = {
    val changed = group.join match {
      case _ if spec.kind == "none" => group.path.head
      case Some(join) if spec.splits.nonEmpty =>
        val Seq(left, right) = group.inputs
        Rearranged.split(group, new SplitJoin(join, left, right, spec)(), spec)
      case _ if spec.splits.nonEmpty && group.window.isDefined =>
        Rearranged.split(group, new SplitWindow(group.window.get, group.inputs.head, spec)(), spec)
      case None if group.streamed && spec.splits.nonEmpty => Rearranged.streamed(group, spec)
      case _ if spec.splits.nonEmpty => throw new IllegalArgumentException(s"a split of ${group.name}")
      case _ => Rearranged(group, spec)
    }
    if (ValidateRequirements.validate(changed)) Right(changed)
    else Left(Refusal("CO_PARTITIONED", s"${spec.reason.code} at ${group.name}"))
  }
}

private[skew] object SkewDecision {

  /** What a stage with more partitions took is not kept: a record of it would be large. */
  val mostWatched = 5000
}
