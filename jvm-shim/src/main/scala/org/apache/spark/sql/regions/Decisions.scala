package org.apache.spark.sql.regions

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/** A part of a skewed input that several tasks read; `share` is that of the input's bytes. */
final case class SkewSplit(partition: Int, side: String, share: Double, tasks: Int, how: String)

/**
 * Seconds from the start of a skewed stage to the end of its last task.
 *
 * @param stage number of the first of its inputs in the query's adaptive plan
 * @param predicted as it is arranged
 * @param plain as Spark had planned it
 * @param balanced the same work spread evenly over the cores
 * @param partitions of its inputs
 * @param tasks that read them
 */
final case class Makespan(stage: Int, predicted: Double, plain: Double, balanced: Double, partitions: Int, tasks: Int)

/**
 * A stage of Spark's that ran a skewed stage, or a part of one.
 *
 * @param stage as in [[Makespan]]
 * @param began, ended milliseconds since the epoch
 * @param keys the heaviest that its tasks read
 */
final case class StageRun(
    stage: Int,
    sparkStage: Int,
    attempt: Int,
    began: Long,
    ended: Long,
    tasks: Int,
    keys: Seq[KeyFrequency] = Nil)

/**
 * A key with many rows of a skewed stage, by a sample of them.
 *
 * @param key column = value, redacted as Spark redacts a plan's text
 * @param share of the rows of the input that it is of, less than the true one by no more than `error`
 */
final case class KeyFrequency(key: String, share: Double, error: Double)

/**
 * Of a part of a query that another engine computes: seconds with its rows, but without the engine's start; rows and bytes of its
 * result. Nothing is measured before it ran, nor where Spark ran the part after all.
 */
final case class EngineRun(
    predictedSeconds: Double,
    predictedRows: Double,
    predictedBytes: Double,
    measuredSeconds: Option[Double] = None,
    measuredRows: Option[Long] = None,
    measuredBytes: Option[Long] = None) {

  def ran(told: wire.RanRoute): EngineRun = copy(
    measuredSeconds = Some(math.max(0, told.seconds - told.startSeconds)),
    measuredRows = Some(told.rows),
    measuredBytes = Some(told.bytes))

  def text: String = f"predicted $predictedSeconds%.2f s, $predictedRows%.0f rows, $predictedBytes%.0f bytes" +
    measuredSeconds.fold("")(s => f"; took $s%.2f s, ${measuredRows.sum} rows, ${measuredBytes.sum} bytes")
}

/**
 * An action of the planner on a node, and whether it was applied.
 *
 * @param insteadSeconds what the query would have spent in its place, less the fixed part of a read; -1 where unknown
 */
final case class DecidedAction(
    kind: String,
    node: Int,
    operator: String,
    entry: String,
    savingSeconds: Double,
    reason: String,
    refusal: Option[Refusal] = None,
    detail: String = "",
    insteadSeconds: Double = -1,
    splits: Seq[SkewSplit] = Nil,
    makespan: Option[Makespan] = None,
    stageRun: Option[StageRun] = None,
    pair: Option[RanBothWays] = None,
    engine: Option[EngineRun] = None)

/**
 * Seconds of a query that was run both ways, nothing else beside it.
 *
 * @param plain as Spark itself planned it
 * @param saved by running it as decided, deciding included
 */
final case class RanBothWays(plain: Double, saved: Double)

/** Kinds of actions by what they do for the query that they are decided on. */
object ActionKind {

  /** Rows are there already: in the store, or kept by this application. */
  def reads(kind: String): Boolean = kind == "load" || kind == "recall"

  /** Those that spare the query work; a store pays off later. */
  def spares(kind: String): Boolean = reads(kind) || kind == "share" || kind == "route"
}

/** A node that was left alone, and why. */
final case class DeclinedNode(node: Int, operator: String, code: String, detail: String)

/**
 * What was decided on one query, or (`topic` skew) on one stage of it. `refusal`: why nothing was decided at all. `regions`: the query's regions, the labels of the
 * edges between them, and the predicted seconds, as docs/protocol.md has them. `laps`: milliseconds of the parts of deciding.
 * `baseline`: what plain execution took, which alone a saving is measured against.
 */
final case class Decision(
    query: Long,
    session: String,
    epochMillis: Long,
    planningMillis: Double,
    plannerMillis: Double,
    actions: Seq[DecidedAction],
    declines: Seq[DeclinedNode],
    refusal: Option[Refusal] = None,
    regions: Option[JsonNode] = None,
    topic: String = "",
    laps: Map[String, Double] = Map.empty,
    baseline: Option[wire.Baseline] = None)

/** The last `limit` values, thread-safe. */
final class Ring[T](limit: Int) {
  private val values = mutable.ArrayDeque.empty[T]

  def add(value: T): Unit = synchronized {
    if (values.size >= limit) values.removeHead()
    values.append(value)
  }

  /** The newest `count`, the newest last. */
  def last(count: Int): Seq[T] = synchronized(values.takeRight(math.max(0, count)).toVector)
  def size: Int = synchronized(values.size)
}

/** Counts since the application started; the names are the keys of the status. */
final class Counters {
  import Counters._
  private val counts = new ConcurrentHashMap[String, LongAdder]()
  names.foreach(name => counts.put(name, new LongAdder))

  def add(name: String, count: Long = 1): Unit = counts.computeIfAbsent(name, _ => new LongAdder).add(count)
  def apply(name: String): Long = Option(counts.get(name)).map(_.sum()).getOrElse(0L)
  def snapshot: Seq[(String, Long)] =
    counts.asScala.toSeq.map { case (name, count) => name -> count.sum() }.sortBy(_._1)
}

object Counters {
  val queries = "queries"
  val plansChanged = "plansChanged"
  val misses = "misses"
  val loads = "loads"
  val shares = "shares"
  val routes = "routes"
  val stores = "stores"
  val persists = "persists"
  val recalls = "recalls"
  val commits = "commits"
  val abandons = "abandons"
  val declines = "declines"
  val fallbacks = "fallbacks"
  val skewRepairs = "skewRepairs"
  val verified = "verified"
  val differences = "differences"
  val names: Seq[String] =
    Seq(queries, plansChanged, misses, loads, stores, persists, recalls, shares, routes, commits, abandons, declines,
      fallbacks,
      skewRepairs, verified, differences)
}
