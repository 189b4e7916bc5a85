package org.apache.spark.sql.regions.ui.store

import scala.reflect.ClassTag

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.sql.regions.{ActionKind, Guard}
import org.apache.spark.sql.regions.bridge.Frames
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.events._
import org.apache.spark.status.{ElementTrackingStore, KVUtils}

/**
 * Fills the UI's store from our events, live or from an event log. Events may come in any order, and some may be missing.
 *
 * @param onExecution called at the start of each SQL execution
 */
final class RegionsStatusListener(
    conf: SparkConf,
    store: ElementTrackingStore,
    onExecution: () => Unit = () => ())
    extends SparkListener {

  private val kept = new RegionsStore(store)
  private val losses = new Losses(store)

  retain[QueryRecord](None)
  retain[EntryRecord](Some("time"))
  retain[LossRecord](Some("time"))

  override def onOtherEvent(event: SparkListenerEvent): Unit =
    try event match {
        case told: SparkListenerRegionsDecided => decided(told)
        case told: SparkListenerRegionsRan => ran(told)
        case told: SparkListenerRegionsEntry => entry(told)
        case told: SparkListenerRegionsState => state(told)
        case _: SparkListenerSQLExecutionStart => onExecution()
        case _ =>
      }
    catch { case error: Throwable if Guard.isOurs(error) => Guard.warnOnce("the store of the Regions tab", error) }

  private def decided(told: SparkListenerRegionsDecided): Unit = {
    val decision = told.decision
    val before = kept.query(told.query)
    val main = isMain(decision)
    val applied = Applied(decision)
    val skew = decision.text("topic") == "skew"
    val decisions = Frames.json.createArrayNode()
    before.foreach(b => elements(Packed.open(b.decisions)).takeRight(decisionsKept - 1).foreach(decisions.add))
    decisions.add(decision)
    val base = before.getOrElse(RegionsStatusListener.unknown(told.query, told.time))
    // The plan may have run before this is heard. What turns out, and stages that are rearranged, are told when they run.
    val counted = if (!main || base.partOf >= 0) applied else Nil
    val predicted = saving(if (main || skew) counted else Nil, skew)
    val refusal = if (main) decision.path("refusal").text("code") else base.refusal
    store.write(
      new QueryRecord(
        told.query,
        if (base.executionId >= 0) base.executionId else told.executionId,
        base.partOf,
        if (main) told.time else base.time,
        if (main) decision.number("planningMillis").getOrElse(0.0) else base.planningMillis,
        if (main) told.nodes.size else base.operators,
        plus(base.applied, applied),
        plus(base.done, counted),
        base.declined + decision.items("declines").size,
        refusal,
        base.predicted + predicted,
        base.saved,
        base.outcome,
        base.seconds,
        base.taskSeconds,
        base.truncated || told.truncated,
        Packed(decisions),
        if (main) Packed(told.nodes) else base.nodes,
        base.ran
      ),
      true
    )
    losses.decided(told)
    count(
      if (main) 1 else 0,
      predicted,
      counted,
      if (!main || base.partOf >= 0) decision.items("declines") else Nil)
  }

  /** The plans that ran, each for the first time: only now what was decided on them counts. */
  private def ran(told: SparkListenerRegionsRan): Unit = {
    val loads = elements(told.loads)
    val plans = (told.query +: elements(told.queries).map(_.asLong)).distinct
    plans.foreach { number =>
      val base = kept.query(number).getOrElse(RegionsStatusListener.unknown(number, told.time))
      val own = loads.filter(load => load.whole("query").getOrElse(told.query) == number)
      if (base.partOf < 0) first(told, base, own)
      else again(told, base, own)
    }
    losses.ran(told)
    read(told, loads)
    val saved = loads.flatMap(_.number("saved"))
    if (saved.nonEmpty) {
      val sums = kept.totals
      store.write(
        new TotalsRecord(RegionsStore.only, sums.queries, sums.predicted, sums.saved + saved.sum,
          sums.loadsMeasured + saved.size, kept.lossCount, sums.actions, sums.declines))
    }
  }

  private def first(told: SparkListenerRegionsRan, base: QueryRecord, loads: Seq[JsonNode]): Unit = {
    val main = elements(Packed.open(base.decisions)).filter(isMain)
    val counted = main.flatMap(Applied(_, loads))
    val predicted = saving(counted, skew = false)
    store.write(ended(told, base, loads, base.predicted + predicted, plus(base.done, counted)), true)
    count(0, predicted, counted, main.flatMap(_.items("declines")))
  }

  /** A DataFrame that is collected twice is planned once. */
  private def again(told: SparkListenerRegionsRan, base: QueryRecord, loads: Seq[JsonNode]): Unit =
    store.write(ended(told, base, loads, base.predicted, base.done), true)

  private def ended(
      told: SparkListenerRegionsRan,
      base: QueryRecord,
      loads: Seq[JsonNode],
      predicted: Double,
      done: Map[String, String]): QueryRecord = {
    val saved = loads.flatMap(_.number("saved"))
    val itself = base.query == told.query
    val facts = Frames.json.createObjectNode()
    if (itself) facts.set[JsonNode]("nodes", told.nodes)
    facts.set[JsonNode]("loads", EventBodies.array(loads))
    new QueryRecord(
      base.query,
      told.executionId,
      told.query,
      base.time,
      base.planningMillis,
      base.operators,
      base.applied,
      done,
      base.declined,
      base.refusal,
      predicted,
      if (saved.isEmpty) base.saved else saved.sum,
      if (itself) told.outcome else base.outcome,
      if (itself) told.seconds else base.seconds,
      if (itself) told.taskSeconds else base.taskSeconds,
      base.truncated || told.truncated,
      base.decisions,
      base.nodes,
      Packed(facts)
    )
  }

  private def saving(actions: Seq[JsonNode], skew: Boolean): Double = actions.filter { action =>
    if (skew) Savings.rearranges(action.text("kind")) else ActionKind.spares(action.text("kind"))
  }.flatMap(_.number("savingSeconds")).filter(_ > 0).sum

  private def count(queries: Int, predicted: Double, actions: Seq[JsonNode], declines: Seq[JsonNode]): Unit = {
    val sums = kept.totals
    store.write(
      new TotalsRecord(
        RegionsStore.only,
        sums.queries + queries,
        sums.predicted + predicted,
        sums.saved,
        sums.loadsMeasured,
        kept.lossCount,
        plus(sums.actions, actions),
        declines.foldLeft(sums.declines)((all, decline) => plus(all, decline.text("code")))
      ))
  }

  private def entry(told: SparkListenerRegionsEntry): Unit = {
    val before = kept.entry(told.entry)
    store.write(
      new EntryRecord(
        told.entry,
        told.state,
        told.query,
        told.time,
        if (told.rows > 0) told.rows else before.map(_.rows).getOrElse(0L),
        if (told.bytes > 0) told.bytes else before.map(_.bytes).getOrElse(0L),
        if (told.files > 0) told.files else before.map(_.files).getOrElse(0),
        if (told.seconds > 0) told.seconds else before.map(_.seconds).getOrElse(0.0),
        told.code,
        told.detail,
        before.map(_.readers).getOrElse(Array.empty),
        before.map(_.facts).orNull
      ),
      true
    )
    losses.entry(told)
  }

  /** The planner's list is the whole truth on what is stored; what is not in it any more is gone. */
  private def state(told: SparkListenerRegionsState): Unit = {
    store.write(new StateRecord(RegionsStore.only, told.time, Packed(Frames.json.valueToTree[JsonNode](told))))
    val listed = elements(told.entries).map(facts => facts.text("entry") -> facts).toMap
    val complete = elements(told.entries).sizeIs < EventBodies.mostEntries && told.planner.path("pid").isNumber
    kept.entries.foreach { known =>
      if (complete && !listed.contains(known.entry) && known.state == "committed" && known.time < told.time) {
        store.write(changed(known, "evicted", told.time, known.facts))
      }
    }
    listed.foreach { case (name, facts) =>
      val known = kept.entry(name).getOrElse(
        RegionsStatusListener.unlisted(name, "", (1000 * facts.number("used").getOrElse(0.0)).toLong))
      // What this application saw last is newer than a list that was made before.
      val state = if (known.state.isEmpty || known.time < told.time) facts.text("state") else known.state
      store.write(changed(known, state, known.time, Packed(facts)), true)
    }
  }

  private def changed(known: EntryRecord, state: String, time: Long, facts: Array[Byte]): EntryRecord =
    changed(known, state, time, known.readers, facts)

  private def changed(
      known: EntryRecord,
      state: String,
      time: Long,
      readers: Array[Long],
      facts: Array[Byte]): EntryRecord =
    new EntryRecord(known.entry, state, known.query, time, known.rows, known.bytes, known.files, known.seconds,
      known.code, known.detail, readers, facts)

  /** An entry that was read was there, whether the planner has listed it by now or not. */
  private def read(told: SparkListenerRegionsRan, loads: Seq[JsonNode]): Unit =
    loads.groupMap(_.text("entry"))(_.whole("query").getOrElse(told.query)).foreach { case (name, queries) =>
      val known = kept.entry(name).getOrElse(RegionsStatusListener.unlisted(name, "committed", told.time))
      val readers = (queries.distinct.sorted.reverse ++ known.readers).distinct.take(readersKept)
      store.write(changed(known, known.state, known.time, readers.toArray, known.facts), true)
    }

  private def plus(sums: Map[String, String], actions: Seq[JsonNode]): Map[String, String] =
    actions.foldLeft(sums)((all, action) => plus(all, action.text("kind")))

  private def plus(sums: Map[String, String], key: String): Map[String, String] =
    sums.updated(key, (sums.getOrElse(key, "0").toInt + 1).toString)

  private val decisionsKept = 200
  private val readersKept = 10

  /** As many as Spark's own tab keeps of its executions, the newest. */
  private def retain[T: ClassTag](index: Option[String]): Unit = {
    val kind = implicitly[ClassTag[T]].runtimeClass.asInstanceOf[Class[T]]
    val limit = conf.get(StaticSQLConf.UI_RETAINED_EXECUTIONS)
    store.addTrigger(kind, limit) { count =>
      val excess = count - limit
      if (excess > 0) {
        val view = index.fold(store.view(kind))(store.view(kind).index(_))
        // A tenth more, so that this is not to be done again at once.
        KVUtils.viewToSeq(view, math.max(excess, limit / 10).toInt)(_ => true).foreach { old =>
          store.delete(kind, RegionsStore.key(old))
        }
      }
    }
  }
}

private object RegionsStatusListener {

  /** A query of which something else was heard first. */
  def unknown(query: Long, time: Long): QueryRecord =
    new QueryRecord(
      query, -1, -1, time, 0, 0, Map.empty, Map.empty, 0, "", 0, Double.NaN, "", -1, 0, false, null, null, null)

  /** An entry of which this application knows no more than its name. */
  def unlisted(name: String, state: String, time: Long): EntryRecord =
    new EntryRecord(name, state, -1, time, 0, 0, 0, 0, "", "", Array.empty, null)
}
