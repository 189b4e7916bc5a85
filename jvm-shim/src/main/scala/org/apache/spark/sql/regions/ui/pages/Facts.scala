package org.apache.spark.sql.regions.ui.pages

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.execution.ui.SQLAppStatusStore
import org.apache.spark.sql.regions.bridge.Frames
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.events.EventBodies.array
import org.apache.spark.sql.regions.ui.store._
import org.apache.spark.status.AppStatusStore

/** What each page shows, as the JSON that is served beside it; the pages are drawn from nothing else. */
private[pages] final class Facts(store: RegionsStore, sql: SQLAppStatusStore, app: AppStatusStore) {
  private val executions = new Executions(sql, app)

  def overview(limit: Int): ObjectNode = {
    val state = store.state
    val sums = store.totals
    val facts = Frames.json.createObjectNode()
    facts.put("asOf", state.whole("time").getOrElse(0L))
    facts.put("mode", state.text("mode")).put("strategy", state.text("strategy"))
    facts.set[JsonNode](
      "saved",
      Frames.json.createObjectNode().put("predicted", sums.predicted).put("measured", sums.saved)
        .put("loadsMeasured", sums.loadsMeasured))
    facts.set[JsonNode](
      "held",
      Frames.json.createObjectNode().put("bytes", state.path("planner").whole("bytes").getOrElse(0L))
        .put("entries", state.items("entries").count(_.text("state") == "committed"))
    )
    Seq("planner", "counters", "confs").foreach(name => facts.set[JsonNode](name, state.path(name)))
    facts.set[JsonNode]("actions", counts(sums.actions))
    facts.set[JsonNode]("declines", counts(sums.declines))
    facts.put("lost", store.lossCount).put("queriesDecided", sums.queries).put("queriesKept", store.queryCount)
    val kept = store.executions
    facts.put("executionsKept", kept.size)
    facts.set[JsonNode](
      "executions",
      array(kept.take(limit).map { case (id, queries) => executed(executions(id, queries)) }))
    facts.set[JsonNode]("queries", array(store.queries(limit).map(summary)))
    facts
  }

  /** The queries of one SQL execution, or one that belongs to none. */
  def execution(execution: Option[Long], query: Option[Long]): ObjectNode = {
    val found = execution.map(store.ofExecution).getOrElse(query.flatMap(store.query).toSeq)
    val number = execution.orElse(found.headOption.map(_.executionId)).getOrElse(-1L)
    if (found.isEmpty) {
      val facts = Frames.json.createObjectNode().put("executionId", number).put("description", describe(number))
      facts.put("predicted", 0.0).putNull("saved").set[ObjectNode]("queries", array(Nil))
    } else {
      val whole = executions(number, found)
      val facts = executed(whole)
      facts.set[JsonNode]("wall", wall(whole))
      facts.set[JsonNode]("queries", array(whole.inOrder.map(detail)))
      facts
    }
  }

  /** What an execution comes to, as the line on Spark's page has it, too; None where nothing is known of it. */
  def sums(execution: Long): Option[Execution] =
    Some(store.ofExecution(execution)).filter(_.nonEmpty).map(executions(execution, _))

  /** Sums over the queries that ran in it. */
  private def executed(whole: Execution): ObjectNode = {
    val fields = Frames.json.createObjectNode()
    fields.put("executionId", whole.id).put("query", whole.main.query).put("description", whole.description)
    fields.put("subqueries", math.max(0, whole.ran.size - 1))
    fields.put("notRun", whole.queries.size - math.max(1, whole.ran.size))
    fields.put("status", whole.status).put("error", whole.error).put("time", whole.began)
    fields.put("planningMillis", whole.planningMillis).put("notRunMillis", whole.restMillis)
    fields.put("counted", whole.counts)
    fields.set[JsonNode]("done", ordered(whole.done))
    fields.put("declined", whole.declined).put("refusal", whole.main.refusal).put("predicted", whole.predicted)
    number(fields, "saved", whole.saved.getOrElse(Double.NaN))
    number(fields, "seconds", whole.seconds.getOrElse(Double.NaN))
    number(fields, "sinceStart", whole.wallSeconds.getOrElse(Double.NaN))
    number(fields, "taskSeconds", if (whole.main.seconds < 0) Double.NaN else whole.main.taskSeconds)
    fields.put("truncated", whole.queries.exists(_.truncated))
  }

  /** Where the time of an execution went: before its first job, while a job ran, and between and after jobs. */
  private def wall(whole: Execution): ObjectNode = {
    val jobs = executions.jobs(whole.id).sorted
    val fields = Frames.json.createObjectNode()
    for (first <- jobs.headOption; all <- whole.seconds) {
      val (busy, _) = jobs.foldLeft((0L, 0L)) { case ((sum, until), (start, end)) =>
        (sum + math.max(0, end - math.max(start, until)), math.max(until, end))
      }
      val before = math.max(0, first._1 - whole.began) / 1000.0
      fields.put("beforeJobs", before).put("inJobs", busy / 1000.0)
      fields.put("rest", math.max(0, all - before - busy / 1000.0))
    }
    fields
  }

  def cache: ObjectNode = {
    val state = store.state
    val facts = Frames.json.createObjectNode()
    facts.put("asOf", state.whole("time").getOrElse(0L))
    facts.put("truncated", state.flag("truncated"))
    facts.set[JsonNode]("entries", array(store.entries.map(entry).sortBy(-_.number("used").getOrElse(0.0))))
    facts
  }

  def graph: ObjectNode = {
    val state = store.state
    val facts = Frames.json.createObjectNode()
    facts.put("asOf", state.whole("time").getOrElse(0L))
    facts.put("operators", state.path("planner").whole("graphOperators").getOrElse(0L))
    facts.set[JsonNode]("nodes", array(state.path("graph").items("nodes")))
    facts.set[JsonNode]("edges", array(state.path("graph").items("edges")))
    facts
  }

  def lost: ObjectNode = {
    val facts = Frames.json.createObjectNode()
    facts.set[JsonNode](
      "lost",
      array(
        store.lost.map { loss =>
          val fields = Frames.json.createObjectNode()
          fields.put("query", loss.query).put("executionId", executionOf(loss)).put("time", loss.time)
          fields.put("what", loss.what).put("entry", loss.entry).put("operator", loss.operator)
          number(fields, "predicted", loss.predicted)
          number(fields, "measured", loss.measured)
          fields.put("code", loss.code).put("reason", Reasons.sentence(loss.code)).put("detail", loss.detail)
        })
    )
    facts
  }

  /** The execution may have become known since. */
  private def executionOf(loss: LossRecord): Long =
    if (loss.executionId >= 0) loss.executionId else store.query(loss.query).map(_.executionId).getOrElse(-1L)

  private def summary(q: QueryRecord): ObjectNode = {
    val fields = Frames.json.createObjectNode()
    fields.put("query", q.query).put("executionId", q.executionId).put("partOf", q.partOf)
    fields.put("description", describe(q.executionId))
    fields.put("time", q.time).put("planningMillis", q.planningMillis).put("operators", q.operators)
    fields.set[JsonNode]("applied", counts(q.applied))
    fields.set[JsonNode]("done", counts(q.done))
    fields.put("declined", q.declined).put("refusal", q.refusal).put("predicted", q.predicted)
    number(fields, "saved", q.saved)
    fields.put("outcome", q.outcome)
    number(fields, "seconds", if (q.seconds < 0) Double.NaN else q.seconds)
    number(fields, "taskSeconds", if (q.seconds < 0) Double.NaN else q.taskSeconds)
    fields.put("truncated", q.truncated)
  }

  private def detail(q: QueryRecord): ObjectNode = {
    val fields = summary(q)
    val ran = Packed.open(q.ran)
    val measured = ran.items("nodes").map(node => node.whole("id").getOrElse(-1L) -> node).toMap
    val nodes = elements(Packed.open(q.nodes)).map { node =>
      val merged = node.deepCopy[ObjectNode]()
      val own = measured.get(node.whole("id").getOrElse(-1L))
      Seq("rows", "bytes", "seconds").foreach { name =>
        merged.set[JsonNode](name, own.flatMap(m => Option(m.get(name))).getOrElse(Frames.json.nullNode()))
      }
      for (name <- Seq("region", "exchange", "exchangeBytes"); ran <- own; value <- Option(ran.get(name)))
        merged.set[JsonNode](name, value)
      merged
    }
    fields.set[JsonNode]("nodes", array(nodes))
    val loads = ran.items("loads")
    val decisions = elements(Packed.open(q.decisions))
    decisions.foreach { decision =>
      val counted = if (isMain(decision)) Applied(decision, loads) else Applied(decision)
      decision.items("actions").foreach {
        case action: ObjectNode => action.put("ran", q.partOf >= 0 && counted.exists(_ eq action))
        case _ =>
      }
    }
    fields.set[JsonNode]("decisions", array(decisions))
    fields.set[JsonNode]("loads", array(loads))
    fields
  }

  private def entry(e: EntryRecord): ObjectNode = {
    val listed = Packed.open(e.facts)
    val fields = listed match {
      case facts: ObjectNode => facts
      case _ => Frames.json.createObjectNode().put("entry", e.entry)
    }
    fields.put("state", e.state)
    if (e.rows > 0 || !fields.has("rows")) fields.put("rows", e.rows)
    if (e.bytes > 0 || !fields.has("bytes")) fields.put("bytes", e.bytes)
    if (e.query >= 0) {
      fields.put("query", e.query)
      fields.put("executionId", store.query(e.query).map(_.executionId).getOrElse(-1L))
      fields.put("files", e.files).put("writeSeconds", e.seconds).put("here", true)
    }
    fields.set[JsonNode](
      "readBy",
      array(
        e.readers.toSeq.flatMap(store.query).map { q =>
          Frames.json.createObjectNode().put("query", q.query).put("executionId", q.executionId)
        }))
    if (!fields.has("used")) fields.put("used", e.time / 1000.0)
    if (!fields.has("created")) fields.put("created", e.time / 1000.0)
    fields.put("code", e.code).put("detail", e.detail)
  }

  private def describe(execution: Long): String =
    if (execution < 0) "" else sql.execution(execution).map(_.description).getOrElse("")

  private def counts(sums: Map[String, String]): ObjectNode = ordered(sums.map { case (key, n) => key -> n.toInt })

  /** The most frequent first. */
  private def ordered(sums: Map[String, Int]): ObjectNode = {
    val fields = Frames.json.createObjectNode()
    sums.toSeq.sortBy { case (key, n) => (-n, key) }.foreach { case (key, n) => fields.put(key, n) }
    fields
  }

  private def number(fields: ObjectNode, name: String, value: Double): ObjectNode =
    if (value.isNaN) fields.putNull(name) else fields.put(name, value)
}
