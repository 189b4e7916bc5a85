package org.apache.spark.sql.regions.ui.events

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.regions.{Counters, RegionsConf, RegionsRuntime, Shim}
import org.apache.spark.sql.regions.bridge.{Frames, PlannerClient}

/** How things stand, with what only the planner knows; and the planner's last figures, for the metrics. */
final class StateReport(sc: SparkContext, planner: PlannerClient, counters: Counters) {
  import StateReport._
  @volatile private var last: JsonNode = Frames.json.createObjectNode()

  /** Changes when the planner came, went, or came back. */
  def health: String = s"${planner.stateName} ${planner.restarts}"

  def bytesHeld: Long = last.path("bytes").asLong(0)
  def entriesHeld: Long = last.path("entries").asLong(0)
  def evictions: Long = last.path("evictions").asLong(0)

  /** Whether the planner has more to tell soon, though nothing else happens. */
  def stale: Boolean = last.path("stale").asBoolean(false)
  def plannerRestarts: Int = planner.restarts

  /** @param end whether the planner shall look at everything anew, since nobody will ask again */
  def apply(end: Boolean): SparkListenerRegionsState = {
    val texts = Texts(sc)
    val answer = ask(end)
    val (entries, graph) = EventBodies.listed(answer, texts)
    val settings = confs
    SparkListenerRegionsState(
      System.currentTimeMillis(),
      settings.getOrElse(RegionsConf.mode.key, ""),
      settings.getOrElse(RegionsConf.recycleStrategy.key, ""),
      tree(Texts.settings(sc.conf, settings.toSeq.sortBy(_._1))),
      texts(plannerFacts(answer)),
      tree(counters.snapshot.toMap),
      entries,
      graph,
      texts.truncated || answer.path("truncated").asBoolean(false)
    )
  }

  /** A planner that is only coming up is not waited for. */
  private def ask(end: Boolean): JsonNode = {
    val message = java.util.Map.of[String, Any]("type", "status", "detail", true, "end", end)
    val answer =
      if (planner.stateName != "up") None
      else planner.request(message, math.max(waitMillis, sc.conf.get(RegionsConf.plannerDeadline))).toOption
    answer.filterNot(_.has("error")).foreach(last = _)
    last
  }

  private def plannerFacts(answer: JsonNode): JsonNode = {
    val facts = Frames.json.createObjectNode()
    facts.put("healthy", planner.stateName == "up")
    facts.put("state", planner.stateName)
    facts.put("restarts", planner.restarts)
    facts.put("version", planner.plannerVersion.getOrElse(""))
    facts.put("shim", Shim.version)
    facts.put("startupMillis", planner.startupMillis.getOrElse(-1L))
    facts.put("observationsDropped", planner.observationsDropped)
    facts.put("storeDir", RegionsRuntime.storeDir(sc))
    planner.refusal.foreach(why => facts.put("reason", s"${why.code}: ${why.detail}"))
    asked.foreach(name => Option(answer.get(name)).foreach(facts.set[JsonNode](name, _)))
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

  private def tree(pairs: Map[String, Any]): JsonNode = {
    val fields = Frames.json.createObjectNode()
    pairs.toSeq.sortBy(_._1).foreach { case (key, value) => fields.set[JsonNode](key, Frames.json.valueToTree(value)) }
    fields
  }
}

private object StateReport {
  val waitMillis = 1000L

  /** Of the planner's answer, what is shown. */
  val asked: Seq[String] =
    Seq(
      "pid",
      "rssBytes",
      "namespace",
      "catalog",
      "recycle",
      "reasons",
      "bytes",
      "reservedBytes",
      "hits",
      "commits",
      "abandoned",
      "evictions",
      "errors",
      "graphOperators"
    )
}
