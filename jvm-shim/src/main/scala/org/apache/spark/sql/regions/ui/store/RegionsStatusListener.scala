package org.apache.spark.sql.regions.ui.store

import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.sql.regions.Guard
import org.apache.spark.sql.regions.wire.Frames
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
  import RegionsStatusListener._

  private val kept = new RegionsStore(store)
  private val regressions = new Regressions(store)

  retain[QueryRecord](None)
  retain[EntryRecord](Some("time"))
  retain[RegressionRecord](Some("time"))
  retain[ExplorationRecord](None)

  override def onOtherEvent(event: SparkListenerEvent): Unit =
    try event match {
        case decision: SparkListenerRegionsDecided => decided(decision)
        case end: SparkListenerRegionsRan => ran(end)
        case result: SparkListenerRegionsEntry => entry(result)
        case told: SparkListenerRegionsExploration => explored(told)
        case report: SparkListenerRegionsState => state(report)
        case _: SparkListenerSQLExecutionStart => onExecution()
        case _ =>
      }
    catch { case error: Throwable if Guard.isOurs(error) => Guard.warnOnce("the store of the Regions tab", error) }

  private def decided(event: SparkListenerRegionsDecided): Unit = {
    val decision = event.decision
    val base = kept.query(event.query).getOrElse(QueryRecord(event.query, time = event.time))
    val main = isMain(decision)
    val applied = decision.items("actions").filterNot(_.path("refusal").isObject).map(_.text("kind"))
    val decisions = elements(Packed.open(base.decisions)).takeRight(decisionsKept - 1) :+ decision
    val known = base.copy(
      executionId = if (base.executionId >= 0) base.executionId else event.executionId,
      applied = plus(base.applied, applied.groupMapReduce(identity)(_ => 1)(_ + _)),
      declined = base.declined + decision.items("declines").size,
      truncated = base.truncated || event.truncated,
      decisions = Packed(array(decisions))
    )
    val told =
      if (!main) known
      else known.copy(
        time = event.time,
        planningMillis = decision.number("planningMillis").getOrElse(0.0),
        operators = event.nodes.size,
        refusal = decision.path("refusal").text("code"),
        nodes = Packed(event.nodes)
      )
    store.write(added(told, Option(event.sums)), true)
    regressions.decided(event)
    total(if (main) 1 else 0, Option(event.sums).toSeq)
  }

  /** The plans that ran: what was decided on them is in the sums once it counts. */
  private def ran(event: SparkListenerRegionsRan): Unit = {
    val loads = elements(event.loads)
    val sums = elements(event.sums)
    val plans = (event.query +: elements(event.queries).map(_.asLong)).distinct
    plans.foreach { number =>
      val base = kept.query(number).getOrElse(QueryRecord(number, time = event.time))
      val own = loads.filter(load => load.whole("query").getOrElse(event.query) == number)
      store.write(added(ended(event, base, own), sums.find(_.whole("query").contains(number))), true)
    }
    regressions.ran(event)
    read(event, loads)
    total(0, sums, choices(event).flatMap(_.number("saved")), estimates(event, loads))
  }

  /** What spared the query work, each with what it saved, if that was measured. */
  private def choices(event: SparkListenerRegionsRan): Seq[JsonNode] =
    Option(event.saving).map(_.items("choices")).getOrElse(Nil)

  /** Seconds that loads saved, where what the query saved was not measured. */
  private def estimates(event: SparkListenerRegionsRan, loads: Seq[JsonNode]): Seq[Double] =
    if (Option(event.saving).flatMap(_.number("saved")).isEmpty) loads.flatMap(_.number("estimated")) else Nil

  private def ended(event: SparkListenerRegionsRan, base: QueryRecord, loads: Seq[JsonNode]): QueryRecord = {
    val estimated = estimates(event, loads)
    def of(items: Seq[JsonNode]): Seq[JsonNode] = items.filter(_.whole("query").contains(base.query))
    val own = of(choices(event))
    val statements = of(elements(event.statements))
    val saved = own.flatMap(_.number("saved"))
    val ran = base.copy(
      executionId = event.executionId,
      partOf = event.query,
      saved = if (saved.isEmpty) base.saved else saved.sum,
      estimated = if (estimated.isEmpty) base.estimated else estimated.sum,
      truncated = base.truncated || event.truncated,
      ran = Packed(record("loads" -> loads, "choices" -> own, "statements" -> statements))
    )
    if (base.query != event.query) ran
    else ran.copy(
      outcome = event.outcome,
      seconds = event.seconds,
      taskSeconds = event.taskSeconds,
      ran = Packed(
        record("nodes" -> event.nodes, "loads" -> loads, "choices" -> own, "statements" -> statements))
    )
  }

  /** @param sums [[Sums]] of the query, if anything is to be added */
  private def added(query: QueryRecord, sums: Option[JsonNode]): QueryRecord = sums.foldLeft(query)((all, one) =>
    all.copy(done = plus(all.done, counts(one, "done")), predicted = all.predicted + predicted(one)))

  private def total(
      queries: Int,
      sums: Seq[JsonNode],
      saved: Seq[Double] = Nil,
      estimated: Seq[Double] = Nil): Unit = {
    val before = kept.totals
    store.write(
      sums.foldLeft(
        before.copy(
          queries = before.queries + queries,
          saved = before.saved + saved.sum,
          choicesMeasured = before.choicesMeasured + saved.size,
          estimated = before.estimated + estimated.sum,
          loadsEstimated = before.loadsEstimated + estimated.size
        ))((all, one) =>
        all.copy(
          predicted = all.predicted + predicted(one),
          actions = plus(all.actions, counts(one, "done")),
          declines = plus(all.declines, counts(one, "declines")))))
  }

  private def entry(event: SparkListenerRegionsEntry): Unit = {
    val before = kept.entry(event.entry).getOrElse(EntryRecord(event.entry, event.state, event.time))
    store.write(
      before.copy(
        state = event.state,
        query = event.query,
        time = event.time,
        rows = if (event.rows > 0) event.rows else before.rows,
        bytes = if (event.bytes > 0) event.bytes else before.bytes,
        files = if (event.files > 0) event.files else before.files,
        seconds = if (event.seconds > 0) event.seconds else before.seconds,
        code = event.code,
        detail = event.detail
      ),
      true
    )
    regressions.entry(event)
  }

  private def explored(event: SparkListenerRegionsExploration): Unit = {
    val before = kept.exploration(event.exploration)
    val known = elements(Packed.open(before.map(_.branches).orNull)) ++ elements(event.branches)
    val newest = known.map(branch => branch.whole("branch").getOrElse(-1L) -> branch).toMap.toSeq.sortBy(_._1).map(_._2)
    store.write(
      ExplorationRecord(
        event.exploration,
        event.time,
        event.truncated || before.exists(_.truncated),
        newest.flatMap(_.whole("bytes")).sum,
        Packed(event.facts),
        Packed(array(newest))
      ),
      true
    )
  }

  /** The planner's list is the whole truth on what is stored; what is not in it any more is gone. */
  private def state(event: SparkListenerRegionsState): Unit = {
    store.write(StateRecord(RegionsStore.only, event.time, Packed(Frames.json.valueToTree[JsonNode](event))))
    val listed = elements(event.entries).map(facts => facts.text("entry") -> facts).toMap
    val complete = elements(event.entries).sizeIs < EventBodies.mostEntries && event.planner.path("pid").isNumber
    kept.entries.foreach { known =>
      if (complete && !listed.contains(known.entry) && known.state == "committed" && known.time < event.time) {
        store.write(known.copy(state = "evicted", time = event.time))
      }
    }
    listed.foreach { case (name, facts) =>
      val known =
        kept.entry(name).getOrElse(EntryRecord(name, "", (1000 * facts.number("used").getOrElse(0.0)).toLong))
      // What this application saw last is newer than a list that was made before.
      val state = if (known.state.isEmpty || known.time < event.time) facts.text("state") else known.state
      store.write(known.copy(state = state, facts = Packed(facts)), true)
    }
  }

  /** An entry that was read was there, whether the planner has listed it by now or not. */
  private def read(event: SparkListenerRegionsRan, loads: Seq[JsonNode]): Unit =
    loads.groupMap(_.text("entry"))(_.whole("query").getOrElse(event.query)).foreach { case (name, queries) =>
      val known = kept.entry(name).getOrElse(EntryRecord(name, "committed", event.time))
      val readers = (queries.distinct.sorted.reverse ++ known.readers).distinct.take(readersKept)
      store.write(known.copy(readers = readers.toArray), true)
    }

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

  def predicted(sums: JsonNode): Double = sums.number("predicted").getOrElse(0.0)

  def counts(sums: JsonNode, name: String): Map[String, Int] =
    sums.path(name).fields().asScala.map(each => each.getKey -> each.getValue.asInt).toMap

  def plus(sums: Map[String, Int], more: Map[String, Int]): Map[String, Int] =
    more.foldLeft(sums) { case (all, (key, times)) => all.updated(key, all.getOrElse(key, 0) + times) }
}
