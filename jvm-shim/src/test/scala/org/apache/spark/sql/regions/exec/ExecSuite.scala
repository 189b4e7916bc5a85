package org.apache.spark.sql.regions.exec

import java.io.File
import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import scala.jdk.CollectionConverters._

import munit.FunSuite

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.regions.{Committed, InputListing, Refusal, StoreOrder, StoreOutcome}

object ExecSession {
  lazy val spark: SparkSession = {
    val session = org.apache.spark.sql.SparkSession.builder()
      .master("local[2,4]").appName("exec")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.shuffle.partitions", "3")
      .config("spark.sql.warehouse.dir", Files.createTempDirectory("warehouse").toString)
      .config("spark.sql.planChangeValidation", "true")
      .config("spark.hadoop.fs.full.impl", classOf[FullFileSystem].getName)
      .getOrCreate().asInstanceOf[SparkSession]
    session.sparkContext.setLogLevel("OFF")
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
    case org.apache.spark.sql.regions.Abandoned(_, reason) => reason
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
  override val munitTimeout = scala.concurrent.duration.Duration(300, "s")

  def folder(): File = Files.createTempDirectory("exec").toFile

  def newStore(
      width: Int = 1,
      maxBytes: Long = Long.MaxValue / 4,
      location: Option[String] = None,
      inputs: Seq[InputListing] = Nil): Store = {
    val entry = "e" + UUID.randomUUID().toString.take(8)
    val outcomes = new ConcurrentLinkedQueue[StoreOutcome]()
    val at = location.getOrElse(new File(folder(), s"data/$entry").toURI.toString)
    new Store(
      StoreOrder(
        entry, at, "lineage", (0 until width).map(i => s"d$i"), maxBytes, inputs, ExecSession.queries.incrementAndGet(),
        outcome => outcomes.add(outcome)),
      outcomes)
  }

  def frame(plan: LogicalPlan): DataFrame = Dataset.ofRows(spark, plan)

  def storeFor(df: DataFrame): Store = newStore(df.schema.size)

  def tee(df: DataFrame, store: Store): DataFrame = frame(Tee(planOf(df), store.order))

  def planOf(df: DataFrame): LogicalPlan = df.asInstanceOf[Dataset[Row]].queryExecution.analyzed

  def executed(df: DataFrame): SparkPlan = df.asInstanceOf[Dataset[Row]].queryExecution.executedPlan

  def opened(store: Store): StoredEntry =
    Entries.open(spark, store.location, store.order.entry)
      .fold(refusal => throw new AssertionError(s"cannot open: $refusal"), identity)

  def recycled(
      df: DataFrame,
      entry: StoredEntry,
      onInvalid: Refusal => Unit = refusal => throw new AssertionError(s"invalid: $refusal"),
      inputs: Seq[InputListing] = Nil): DataFrame = {
    val plan = planOf(df)
    frame(RecycledRelation(plan.output, entry, plan.output.indices, plan, onInvalid, inputs))
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

  def scans(df: DataFrame): Seq[RecycledScanExec] = collect(executed(df)) { case scan: RecycledScanExec => scan }

  def parts(store: Store): Seq[File] =
    Option(store.directory.listFiles()).toSeq.flatten.filter(_.getName.startsWith("part-")).sortBy(_.getName)

  def refusals(): (ConcurrentLinkedQueue[Refusal], Refusal => Unit) = {
    val queue = new ConcurrentLinkedQueue[Refusal]()
    (queue, refusal => queue.add(refusal))
  }

  def codes(queue: ConcurrentLinkedQueue[Refusal]): Seq[String] = queue.asScala.map(_.code).toSeq
}
