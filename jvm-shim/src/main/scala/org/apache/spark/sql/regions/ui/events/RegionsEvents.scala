package org.apache.spark.sql.regions.ui.events

import java.util.concurrent.ConcurrentLinkedQueue

import scala.util.matching.Regex

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.profile.RanPlans
import org.apache.spark.sql.regions.wire.Frames

/**
 * Tells Spark's listeners what is decided and what comes of it. Nothing is told where nobody shows it: no UI, no event
 * log, or `spark.regions.ui.enabled=false`.
 */
final class RegionsEvents(sc: SparkContext, state: StateReport) {
  private val reported = sc.conf.get(RegionsConf.uiEnabled) && (sc.ui.isDefined || sc.isEventLogEnabled)
  private val cores = new LastCores(sc)
  val savings = new Savings(cores)
  private val schedule = new StateSchedule(RegionsEvents.stateMillis)
  private val poster = new EventPoster(sc.conf, post, () => stateIfDue())

  /** What is told once the application has ended: the bus may be closed, but the event log is not yet. */
  private val late = new ConcurrentLinkedQueue[SparkListenerEvent]()
  @volatile private var closing = false

  if (reported && sc.isEventLogEnabled) sc.listenerBus.addToEventLogQueue(
    new SparkListener {
      override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
        Guard.run(sc.conf, "the last events of the Regions tab") {
          RegionsRuntime.stop(sc)
          // On the event log's own thread, which is the only one that may write it.
          sc.eventLogger.foreach(log => late.forEach(event => log.onOtherEvent(event)))
        }
    })

  private def post(event: SparkListenerEvent): Unit =
    if (reported) {
      // The bus closes some time after the context says that it stops, and takes no event from then on.
      if ((closing || sc.isStopped) && sc.isEventLogEnabled) late.add(event) else sc.listenerBus.post(event)
    }

  def dropped: Long = poster.dropped

  /** Called on the thread that plans the query, which knows the execution if there is one yet. */
  def decided(decision: Decision, nodes: Seq[SignedNode]): Unit = {
    cores()
    val sums = savings.decided(decision)
    schedule.changed()
    if (reported) {
      val execution = RegionsEvents.executionOf(sc)
      val hidden = RegionsEvents.hidden()
      poster.offer(() => EventBodies.decided(decision, nodes, execution, Redaction(sc.conf, hidden), sums))
    }
  }

  /** The event with what the query saved, as measured. */
  def ran(event: wire.Executed, plans: RanPlans, execution: Long): wire.Executed = {
    schedule.changed()
    val came = savings.ran(plans, execution, event)
    if (reported) {
      val time = System.currentTimeMillis()
      poster.offer(() => EventBodies.ran(event, plans.queries, came, execution, time, Redaction(sc)))
    }
    event.copy(saved = came.saving.map(_.saved))
  }

  def entry(
      entry: String,
      state: String,
      query: Long,
      rows: Long = 0,
      bytes: Long = 0,
      files: Int = 0,
      seconds: Double = 0,
      why: Refusal = Refusal("")): Unit = {
    schedule.changed()
    if (reported) {
      val (time, redaction) = (System.currentTimeMillis(), Redaction(sc))
      poster.offer(() =>
        SparkListenerRegionsEntry(
          entry, state, query, time, rows, bytes, files, seconds, why.code, redaction(why.detail)))
    }
  }

  /**
   * @param told by Python, as JSON
   * @param held what is persisted for branches, by their numbers
   * @return whether anybody listens
   */
  def explored(told: String, held: Map[Int, DataFrame]): Boolean = {
    if (reported) {
      val (time, hidden) = (System.currentTimeMillis(), RegionsEvents.hidden())
      poster.offer(() => {
        val bytes = held.flatMap { case (branch, frame) => RegionsEvents.bytesOf(frame).map(branch -> _) }
        EventBodies.explored(Frames.json.readTree(told), bytes, time, Redaction(sc.conf, hidden))
      })
    }
    reported
  }

  private def stateIfDue(): Unit = if (schedule.due(state.health)) reportState(last = false)

  private def reportState(last: Boolean): Unit = {
    val event = state(last)
    schedule.reported(event.entries.size + event.graph.path("nodes").size + event.graph.path("edges").size)
    if (state.stale) schedule.changed()
    post(event)
  }

  /** The last word, while the planner still answers. */
  def close(): Unit = {
    closing = true
    poster.close(2000)
    Guard.run(sc.conf, "the last event of the Regions tab")(reportState(last = true))
  }
}

object RegionsEvents {
  private val stateMillis = 10000L

  private def executionOf(sc: SparkContext): Long =
    Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).flatMap(_.toLongOption).getOrElse(-1L)

  /** Of what is persisted for it, as far as it has been computed. */
  private def bytesOf(frame: DataFrame): Option[Long] =
    frame.sparkSession.sharedState.cacheManager.lookupCachedData(frame)
      .map(cached => SparkMinor.cachedBytes(cached.cachedRepresentation.cacheBuilder))

  /** What this session hides in the texts of its plans. */
  private def hidden(): Option[Regex] = SQLConf.get.stringRedactionPattern
}

/** Tasks that run at once; as they were last seen, once the context has stopped and cannot be asked any more. */
private final class LastCores(sc: SparkContext) extends (() => Int) {
  @volatile private var seen = 1

  override def apply(): Int = {
    try seen = sc.defaultParallelism
    catch { case _: IllegalStateException if sc.isStopped => }
    seen
  }
}
