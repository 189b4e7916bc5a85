package org.apache.spark.sql.regions.ui.events

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.regions.{Counters, RegionsConf, RegionsRuntime, Shim, wire}
import org.apache.spark.sql.regions.bridge.PlannerClient
import org.apache.spark.sql.regions.ui.Trees._

/** How things stand, with what only the planner knows; and the planner's last figures, for the metrics. */
final class StateReport(sc: SparkContext, planner: PlannerClient, counters: Counters) {
  import StateReport._
  @volatile private var last: Option[wire.StatusAnswer] = None

  /** Changes when the planner came, went, or came back. */
  def health: String = s"${planner.stateName} ${planner.restarts}"

  def bytesHeld: Long = last.fold(0L)(_.bytes)
  def entriesHeld: Long = last.fold(0L)(_.entries.toLong)
  def evictions: Long = last.fold(0L)(_.evictions.toLong)

  /** Whether the planner has more to tell soon, though nothing else happens. */
  def stale: Boolean = last.flatMap(_.stale).contains(true)
  def plannerRestarts: Int = planner.restarts

  /** @param end whether the planner shall look at everything anew, since nobody will ask again */
  def apply(end: Boolean): SparkListenerRegionsState = {
    val redaction = Redaction(sc)
    val answer = ask(end)
    val (entries, graph) = answer.fold[(JsonNode, JsonNode)](array(Nil) -> record())(EventBodies.listed(_, redaction))
    val settings = confs
    SparkListenerRegionsState(
      System.currentTimeMillis(),
      settings.getOrElse(RegionsConf.mode.key, ""),
      settings.getOrElse(RegionsConf.recycleStrategy.key, ""),
      sorted(Redaction.settings(sc.conf, settings.toSeq.sortBy(_._1))),
      redaction(plannerFacts(answer)),
      sorted(counters.snapshot.toMap),
      entries,
      graph,
      redaction.truncated || answer.flatMap(_.truncated).contains(true)
    )
  }

  /** A planner that is only coming up is not waited for. */
  private def ask(end: Boolean): Option[wire.StatusAnswer] = {
    val answer =
      if (planner.stateName != "up") None
      else planner.request(
        wire.Status(detail = true, end), math.max(waitMillis, sc.conf.get(RegionsConf.plannerDeadline))).toOption
    if (answer.isDefined) last = answer
    last
  }

  private def plannerFacts(answer: Option[wire.StatusAnswer]): JsonNode = {
    val facts = present(
      "healthy" -> (planner.stateName == "up"),
      "state" -> planner.stateName,
      "restarts" -> planner.restarts,
      "version" -> planner.plannerVersion.getOrElse(""),
      "shim" -> Shim.version,
      "startupMillis" -> planner.startupMillis.getOrElse(-1L),
      "observationsDropped" -> planner.observationsDropped,
      "storeDir" -> RegionsRuntime.storeDir(sc),
      "reason" -> planner.refusal.map(why => s"${why.code}: ${why.detail}")
    )
    answer.foreach(told => facts.setAll[ObjectNode](fieldsOf(told, hidden: _*)))
    facts
  }

  /** Of the application's default session: what another one has set for itself is not seen here. */
  private def confs: Map[String, String] = {
    val session = SparkSession.getDefaultSession
    RegionsConf.entries.map { entry =>
      entry.key -> session.flatMap(_.conf.getOption(entry.key)).orElse(sc.conf.getOption(entry.key))
        .getOrElse(RegionsConf.defaultString(entry))
    }.toMap
  }

  private def sorted(pairs: Map[String, Any]): ObjectNode = record(pairs.toSeq.sortBy(_._1): _*)
}

private object StateReport {
  val waitMillis = 1000L

  /** Of the planner's answer, what is told elsewhere. */
  val hidden: Seq[String] =
    "version application data entries entryList graph stale truncated decisions stores behind".split(" ").toSeq
}
