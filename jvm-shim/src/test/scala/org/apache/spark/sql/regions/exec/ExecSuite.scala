package org.apache.spark.sql.regions.exec

import java.io.File
import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import scala.jdk.CollectionConverters._

import munit.FunSuite

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.regions.{Committed, InputListing, LocalSpark, Refusal, StoreOrder, StoreOutcome}

object ExecSession {
  lazy val spark: SparkSession = {
    val session = LocalSpark.session(ServedRule.register)
    session.experimental.extraStrategies = Seq(RegionsStrategy(session))
    session
  }
  val queries = new AtomicLong()
}

/** An order together with what became of it. */
final class Store(val order: StoreOrder, outcomes: ConcurrentLinkedQueue[StoreOutcome]) {
  def location: String = order.location
  def directory: File = new File(new java.net.URI(order.location).getPath)

  /** Ends the query, waits, and gives the one outcome. */
  def end(): StoreOutcome = {
    Stores.finish(order.query)
    assert(Stores.awaitCommits(20000), "commits take too long")
    assert(outcomes.size == 1, s"outcomes: $outcomes")
    outcomes.peek()
  }

  def told: Int = outcomes.size

  def committed(): Committed = end() match {
    case done: Committed => done
    case other => throw new AssertionError(s"not committed: $other")
  }

  def abandoned(): Refusal = end() match {
    case org.apache.spark.sql.regions.Abandoned(_, reason, _) => reason
    case other => throw new AssertionError(s"not abandoned: $other")
  }
}

final class Listing extends InputListing {
  val same = new AtomicBoolean(true)
  override def unchanged(): Boolean = same.get()
  override def describe: String = "test input"
}

abstract class ExecSuite extends FunSuite with AdaptiveSparkPlanHelper {
  lazy val spark: SparkSession = ExecSession.spark
  override def beforeAll(): Unit = LocalSpark.use(spark)
  override val munitTimeout = scala.concurrent.duration.Duration(300, "s")

  def folder(): File = Files.createTempDirectory("exec").toFile

  def newStore(
      width: Int = 1,
      maxBytes: Long = Long.MaxValue / 4,
      location: Option[String] = None,
      maxOverhead: Option[Double] = None,
      spareSeconds: Double = 0,
      inMemory: Boolean = false,
      inputs: Seq[InputListing] = Nil): Store = {
    val entry = "e" + UUID.randomUUID().toString.take(8)
    val outcomes = new ConcurrentLinkedQueue[StoreOutcome]()
    val at = location.getOrElse(new File(folder(), s"data/$entry").toURI.toString)
    new Store(
      StoreOrder(
        entry,
        at,
        "core",
        "lineage",
        (0 until width).map(i => s"d$i"),
        maxBytes,
        maxOverhead,
        spareSeconds,
        inMemory,
        () => true,
        inputs,
        ExecSession.queries.incrementAndGet(),
        outcome => outcomes.add(outcome)
      ),
      outcomes
    )
  }

  def frame(plan: LogicalPlan): DataFrame = Dataset.ofRows(spark, plan)

  def storeFor(df: DataFrame, inMemory: Boolean = false): Store = newStore(df.schema.size, inMemory = inMemory)

  def tee(df: DataFrame, store: Store): DataFrame = frame(Tee(planOf(df), store.order))

  def planOf(df: DataFrame): LogicalPlan = df.asInstanceOf[Dataset[Row]].queryExecution.analyzed

  def executed(df: DataFrame): SparkPlan = df.asInstanceOf[Dataset[Row]].queryExecution.executedPlan

  def opened(store: Store): StoredEntry =
    Entries.open(spark, store.location, store.order.entry)
      .fold(refusal => throw new AssertionError(s"cannot open: $refusal"), identity)

  def stored(df: DataFrame): (Store, StoredEntry) = {
    val store = storeFor(df)
    tee(df, store).collect()
    store.committed()
    (store, opened(store))
  }

  /** A query on what was stored of `df`. */
  def recycled(
      df: DataFrame,
      entry: StoredEntry,
      onInvalid: Refusal => Unit = refusal => throw new AssertionError(s"invalid: $refusal"),
      inputs: Seq[InputListing] = Nil): DataFrame = {
    def source() = {
      val attributes = entry.schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())
      MaterializedRelation(attributes, entry, attributes.indices)
    }
    served(df, entry.entry, source, Entries.check(entry, _).left.toOption, onInvalid, inputs)
  }

  def served(
      df: DataFrame,
      entry: String,
      source: () => LogicalPlan,
      check: MaterializedRead.Check,
      onInvalid: Refusal => Unit,
      inputs: Seq[InputListing]): DataFrame = {
    val original = df.asInstanceOf[Dataset[Row]].queryExecution.optimizedPlan
    frame(Served(planOf(df).output, entry, original, source, inputs, check, onInvalid))
  }

  /** Stores the frame and reads it back. */
  def roundTrip(df: DataFrame): DataFrame = {
    val store = storeFor(df)
    tee(df, store).collect()
    store.committed()
    recycled(df, opened(store))
  }

  def sorted(rows: Array[Row]): Seq[String] = rows.map(_.toString).toSeq.sorted

  def withConf[T](pairs: (String, String)*)(body: => T): T = {
    val before = pairs.map { case (key, _) => key -> spark.conf.getOption(key) }
    pairs.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally before.foreach {
        case (key, Some(value)) => spark.conf.set(key, value)
        case (key, None) => spark.conf.unset(key)
      }
  }

  def scans(df: DataFrame): Seq[MaterializedScanExec] = collect(executed(df)) { case scan: MaterializedScanExec =>
    scan
  }

  def reads(df: DataFrame): Seq[MaterializedReadExec] =
    collectWithSubqueries(executed(df)) { case read: MaterializedReadExec => read }

  def parts(store: Store): Seq[File] =
    Option(store.directory.listFiles()).toSeq.flatten.filter(_.getName.startsWith("part-")).sortBy(_.getName)

  def refusals(): (ConcurrentLinkedQueue[Refusal], Refusal => Unit) = {
    val queue = new ConcurrentLinkedQueue[Refusal]()
    (queue, refusal => queue.add(refusal))
  }

  def codes(queue: ConcurrentLinkedQueue[Refusal]): Seq[String] = queue.asScala.map(_.code).toSeq
}
