package org.apache.spark.sql.regions

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions.exec.{Persisted, StoreFiles, Stores, Ties}
import org.apache.spark.sql.regions.profile.{PersistUse, ProfileListener}
import org.apache.spark.sql.regions.rules.{PlannerUdfDigests, SignedQuery, Signer, StoredSources, WrittenFiles}
import org.apache.spark.sql.regions.ui.events.RegionsEvents

/** What an application does with stored results: tells the planner what became of them, and ends what a query left open. */
final class Recycling(
    sc: SparkContext,
    planner: Planner,
    counters: Counters,
    decisions: Ring[Decision],
    profile: ProfileListener,
    events: RegionsEvents)
    extends Logging {

  val persisted = new Persisted
  private[regions] val ties = new Ties
  private val udfDigests = new PlannerUdfDigests(sc, planner, () => sc.conf.get(RegionsConf.plannerDeadline))

  /** Entries that a query was planned to read, until it ends. */
  private val leases = new ConcurrentHashMap[Long, Set[String]]()

  /** Persisted results that a query was planned to compute or to read, until it ends. */
  private val persists = new ConcurrentHashMap[Long, Seq[PersistUse]]()

  val sources = new StoredSources(planner, () => sc.conf.get(RegionsConf.plannerDeadline))
  val written = new WrittenFiles(planner, () => sc.conf.get(RegionsConf.plannerDeadline), wrote)

  profile.ends.add { end =>
    val query = end.query
    written.ended(if (altered) end.copy(failed = true) else end)
    Stores.finish(query)
    Option(leases.remove(query)).foreach(_.foreach(entry => planner.observe(wire.Released(entry, query))))
    Option(persists.remove(query)).foreach(_.foreach(persistUsed(query, _)))
  }

  /** Rows of a query were left out by a debugger: no query is decided on any more, and nothing of before is stored. */
  @volatile var altered = false

  def alter(): Unit = {
    altered = true
    Stores.abandonAll(Refusal("EDITED"))
    persisted.dropAll()
  }

  /** Signed as this session's settings have it; see [[Signer]]. */
  def sign(session: SparkSession, plan: LogicalPlan, part: Boolean = false): SignedQuery =
    sign(session, plan, floats(session), part)

  /** The same, but that rows count as equal only where they are. */
  def signExactly(session: SparkSession, signed: SignedQuery)(plan: LogicalPlan): SignedQuery =
    if (floats(session) || (plan ne signed.nodes.head.plan)) sign(session, plan, floatAggregates = false, part = false)
    else signed

  private def sign(session: SparkSession, plan: LogicalPlan, floatAggregates: Boolean, part: Boolean): SignedQuery =
    Signer.sign(plan, session, udfDigests, floatAggregates, part, written)

  private def floats(session: SparkSession): Boolean =
    session.sessionState.conf.getConf(RegionsConf.recycleFloatAggregates)

  private def wrote(query: Long, outcome: Either[Refusal, String]): Unit = outcome match {
    case Right(detail) => note(query, "registered", "", "REGISTERED", detail)
    case Left(why) => note(query, "unregistered", "", "NOT_REGISTERED", s"${why.code}: ${why.detail}")
  }

  def uses(query: Long, persisted: Seq[PersistUse]): Unit = if (persisted.nonEmpty) persists.put(query, persisted)

  private def persistUsed(query: Long, use: PersistUse): Unit =
    if (use.release) {
      persisted.drop(use.entry)
      note(query, "unpersisted", use.entry, "LAST_USE", "")
      tell(wire.Dropped(use.entry, query, "LAST_USE"))
    } else {
      persisted.bytes(use.entry).foreach { bytes =>
        val seconds = persisted.seconds(use.entry)
        planner.observe(wire.Persisted(use.entry, query, bytes, seconds))
        events.entry(use.entry, "persisted", query, bytes = bytes, seconds = seconds.getOrElse(0.0))
      }
    }

  /** @param nodes the signed plan */
  def decided(decision: Decision, nodes: Seq[SignedNode], changed: Boolean): Unit = {
    // Sources only: each node above would repeat what they say.
    val young = nodes.filter(n => n.children.isEmpty && n.notStorable.exists(_.code == "RACY_INPUT"))
      .map(n => DeclinedNode(n.id, n.operator, n.notStorable.get.code, n.notStorable.get.detail))
    add(decision.copy(declines = decision.declines ++ young), nodes)
    counters.add(Counters.queries)
    counters.add(Counters.declines, decision.declines.size + young.size)
    if (changed) counters.add(Counters.plansChanged)
    val applied = decision.actions.filter(_.refusal.isEmpty)
    val loads = applied.filter(_.kind == "load")
    if (decision.refusal.isEmpty && !applied.exists(a => ActionKind.reads(a.kind))) {
      counters.add(Counters.misses)
    }
    if (loads.nonEmpty) leases.put(decision.query, loads.map(_.entry).toSet)
  }

  /** Called on the store's own thread when a store has ended, well or not. */
  def stored(query: Long, outcome: StoreOutcome, growth: => Option[wire.Growth] = None): Unit = outcome match {
    case Committed(entry, rows, bytes, files, seconds) =>
      val grows = growth
      grows.foreach(sources.stored)
      counters.add(Counters.commits)
      note(query, "committed", entry, "COMMITTED", s"$rows rows, $bytes bytes in $files files")
      events.entry(entry, "committed", query, rows, bytes, files, seconds)
      planner.observe(wire.Committed(entry, query, rows, bytes, files, seconds, grows))
    case Abandoned(entry, reason, seconds) =>
      counters.add(Counters.abandons)
      note(query, "abandoned", entry, reason.code, reason.detail)
      tell(wire.Abandoned(entry, query, reason.code, reason.detail, seconds))
  }

  /** A reader could not use an entry, and computed the rows again. */
  def fellBack(entry: String, query: Long, reason: Refusal): Unit = {
    written.fellBack(query, reason)
    counters.add(Counters.fallbacks)
    note(query, "fallback", entry, reason.code, reason.detail)
    // The entry itself is whole where only the sources went on.
    if (reason.code != "INPUT_CHANGED") tell(wire.Invalid(entry, query, reason.code, reason.detail))
  }

  /** An engine gave no rows for a part of a query, or what was computed from stored ones has ties. */
  def ranInSpark(query: Long, by: String, reason: Refusal): Unit = {
    counters.add(Counters.fallbacks)
    note(query, "fallback", "", reason.code, s"$by: ${reason.detail}")
  }

  /** Rows are equal in the keys of a sort, so that another order than plain Spark's would be seen. */
  def tied(query: Long, digest: String): Unit = {
    ties.add(Seq(digest))
    planner.observe(wire.Tied(digest, query))
  }

  /**
   * A query was run both ways.
   *
   * @param differs what is different in its rows
   * @param pair None where something else ran beside it
   */
  def verified(query: Long, differs: Option[String], rows: Int, pair: Option[RanBothWays]): Unit = {
    counters.add(if (differs.isEmpty) Counters.verified else Counters.differences)
    differs.foreach { what =>
      logWarning(
        s"spark_regions: query $query, run both ways, has OTHER ROWS than plain Spark gives: $what. Nothing is reused in it, " +
          "nor what it read, until `spark-regions cache lift` says so. Please report this")
    }
    val (kind, code) = if (differs.isEmpty) ("verified", "VERIFIED") else ("differs", "DIFFERS")
    val timed = if (differs.isEmpty) pair else None
    val seconds = timed.fold("")(p => f", ${p.plain}%.2f s as plain Spark, ${p.saved}%.2f s saved")
    note(query, kind, "", code, differs.getOrElse(s"$rows rows$seconds"), timed)
    planner.observe(wire.Verified(query, differs.isEmpty, timed.map(_.plain), timed.map(_.saved),
        differs.getOrElse("")))
  }

  /** That an entry cannot be read, or will not be there. */
  def tell(event: wire.Event): Unit = {
    event match {
      case wire.Abandoned(entry, query, code, detail, _) =>
        events.entry(entry, "abandoned", query, why = Refusal(code, detail))
      case wire.Invalid(entry, query, code, detail) =>
        events.entry(entry, "invalid", query, why = Refusal(code, detail))
      case wire.Dropped(entry, query, code, detail) =>
        events.entry(entry, "dropped", query, why = Refusal(code, detail))
      case _ =>
    }
    planner.observe(event)
  }

  /** Deletes the files of evicted entries on file systems that the planner cannot reach. */
  def sweep(session: SparkSession, locations: Seq[String]): Unit = locations.foreach { location =>
    Guard.run(sc.conf, "the sweep of an evicted entry") {
      val path = new Path(location)
      StoreFiles.system(path, session.sessionState.newHadoopConf()).delete(path, true)
    }
  }

  def persistMaxBytes(session: SparkSession): Long =
    session.sessionState.conf.getConf(RegionsConf.persistMaxBytes).getOrElse(storageMemory / (if (announced) 1 else 4))

  /** Whether the program told its next queries: what they have in common is what it would persist itself. */
  @volatile var announced = false

  /** When it was asked for, and the bytes: Spark sends itself a message to find out. */
  @volatile private var asked = (Long.MinValue, 0L)

  private def storageMemory: Long = {
    val now = System.nanoTime()
    val (at, known) = asked
    if (at != Long.MinValue && now - at < Recycling.memoryNanos) known
    else {
      val found = sc.getExecutorMemoryStatus.values.map(_._1).sum
      asked = (now, found)
      found
    }
  }

  def close(): Unit = {
    Stores.abandonAll(Refusal("APPLICATION_ENDED"))
    Stores.awaitCommits(2000)
    written.close(2000)
    persisted.dropAll()
    val (stored, loaded) = (counters(Counters.commits), counters(Counters.loads))
    // A warning, because that is what a driver's log shows by default, and this line is what the plugin is there for.
    if (stored + loaded > 0) {
      logWarning(
        f"spark_regions: stored $stored, loaded $loaded, predicted saving ${events.savings.predictedSeconds}%.1f s")
    }
  }

  /** Keeps a decision where it can be asked for, and tells it to Spark's listeners. */
  def add(decision: Decision, nodes: Seq[SignedNode] = Nil): Unit = {
    decisions.add(decision)
    events.decided(decision, nodes)
  }

  /** Things that turn out only when the query runs are decisions' outcomes, and listed with them. */
  private def note(
      query: Long,
      kind: String,
      entry: String,
      code: String,
      detail: String,
      pair: Option[RanBothWays] = None): Unit =
    add(
      Decision(
        query,
        "",
        System.currentTimeMillis(),
        0,
        0,
        Seq(DecidedAction(kind, -1, "", entry, -1, code, detail = detail, pair = pair)),
        Nil))
}

private object Recycling {

  /** Executors come and go, but not with each query. */
  val memoryNanos: Long = 5L * 1000 * 1000 * 1000
}
