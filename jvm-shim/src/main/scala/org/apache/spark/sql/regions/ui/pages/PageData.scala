package org.apache.spark.sql.regions.ui.pages

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.execution.ui.SQLAppStatusStore
import org.apache.spark.sql.regions.RegionsRuntime
import org.apache.spark.sql.regions.control.ControlDriver
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.store._
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.status.AppStatusStore

/** What each page shows, as the JSON that is served beside it; the pages are drawn from nothing else. docs/ui.md has the fields. */
private[pages] final class PageData(store: RegionsStore, sql: SQLAppStatusStore, app: AppStatusStore) {
  private val executions = new Executions(sql, app)

  def overview(numbers: RegionsPage.Numbers): ObjectNode =
    overview(numbers("limit").getOrElse(200L).max(1).min(100000).toInt)

  def overview(limit: Int): ObjectNode = {
    val state = store.state
    val sums = store.totals
    val kept = store.executions
    record(
      "asOf" -> state.whole("time").getOrElse(0L),
      "mode" -> state.text("mode"),
      "strategy" -> state.text("strategy"),
      "saved" ->
        record(
          "predicted" -> sums.predicted,
          "measured" -> sums.saved,
          "choicesMeasured" -> sums.choicesMeasured,
          "estimated" -> sums.estimated,
          "loadsEstimated" -> sums.loadsEstimated
        ),
      "held" -> record(
        "bytes" -> state.path("planner").whole("bytes").getOrElse(0L),
        "entries" -> state.items("entries").count(_.text("state") == "committed")),
      "planner" -> fields(state, "planner"),
      "counters" -> fields(state, "counters"),
      "confs" -> fields(state, "confs"),
      "actions" -> ordered(sums.actions),
      "declines" -> ordered(sums.declines),
      "lost" -> store.lossCount,
      "queriesDecided" -> sums.queries,
      "queriesKept" -> store.queryCount,
      "executionsKept" -> kept.size,
      "executions" -> kept.take(limit).map { case (id, queries) => executed(executions(id, queries)) },
      "queries" -> store.queries(limit).map(summary)
    )
  }

  /** What runs, of this application; not that of a History Server, which has no driver. */
  def running: ObjectNode =
    ControlDriver.current.fold(record("error" -> ControlDriver.off)) { driver =>
      val told = record("badRows" -> RegionsRuntime.current.fold(0L)(_.badRows.count.toLong))
      told.setAll[ObjectNode](Frames.json.readTree(driver.ask(ControlDriver.look, 0.0)).asInstanceOf[ObjectNode])
    }

  private def fields(state: JsonNode, name: String): JsonNode =
    Some(state.path(name)).filter(_.isObject).getOrElse(record())

  def execution(numbers: RegionsPage.Numbers): ObjectNode = {
    val (execution, query) = (numbers("id"), numbers("query"))
    if (execution.isEmpty && query.isEmpty) {
      throw new RegionsPage.WrongRequest("id (of a SQL execution) or query is missing")
    }
    this.execution(execution, query)
  }

  /** The queries of one SQL execution, or one that belongs to none. */
  def execution(execution: Option[Long], query: Option[Long]): ObjectNode = {
    val found = execution.map(store.ofExecution).getOrElse(query.flatMap(store.query).toSeq)
    val number = execution.orElse(found.headOption.map(_.executionId)).getOrElse(-1L)
    val facts =
      if (found.isEmpty) {
        record("executionId" -> number, "description" -> describe(number), "predicted" -> 0.0, "saved" -> None,
          "queries" -> Nil)
      } else {
        val whole = executions(number, found)
        executed(whole).setAll[ObjectNode](record("wall" -> wall(whole), "queries" -> whole.inOrder.map(detail)))
      }
    val title = if (number >= 0) s"SQL execution $number" else s"query ${query.fold("")(_.toString)}"
    facts.put("title", s"Regions of $title")
  }

  /** What an execution comes to, as the line on Spark's page has it, too; None where nothing is known of it. */
  def sums(execution: Long): Option[Execution] =
    Some(store.ofExecution(execution)).filter(_.nonEmpty).map(executions(execution, _))

  /** Sums over the queries that ran in it. */
  private def executed(whole: Execution): ObjectNode = record(
    "executionId" -> whole.id,
    "query" -> whole.main.query,
    "description" -> whole.description,
    "subqueries" -> math.max(0, whole.ran.size - 1),
    "notRun" -> (whole.queries.size - math.max(1, whole.ran.size)),
    "status" -> whole.status,
    "error" -> whole.error,
    "time" -> whole.began,
    "planningMillis" -> whole.planningMillis,
    "notRunMillis" -> whole.restMillis,
    "counted" -> whole.counts,
    "done" -> ordered(whole.done),
    "summary" -> Labels.done(whole),
    "declined" -> whole.declined,
    "refusal" -> whole.main.refusal,
    "predicted" -> whole.predicted,
    "saved" -> whole.saved,
    "estimated" -> whole.estimated,
    "seconds" -> whole.seconds,
    "sinceStart" -> whole.wallSeconds,
    "taskSeconds" -> whole.main.ended(_.taskSeconds),
    "truncated" -> whole.queries.exists(_.truncated)
  )

  /** Where the time of an execution went: before its first job, while a job ran, and between and after jobs. */
  private def wall(whole: Execution): ObjectNode = {
    val jobs = executions.jobs(whole.id).sorted
    val parts = for (first <- jobs.headOption; all <- whole.seconds) yield {
      val (busy, _) = jobs.foldLeft((0L, 0L)) { case ((sum, until), (start, end)) =>
        (sum + math.max(0, end - math.max(start, until)), math.max(until, end))
      }
      val before = math.max(0, first._1 - whole.began) / 1000.0
      record("beforeJobs" -> before, "inJobs" -> busy / 1000.0, "rest" -> math.max(0, all - before - busy / 1000.0))
    }
    parts.getOrElse(record())
  }

  def cache: ObjectNode = {
    val state = store.state
    record(
      "asOf" -> state.whole("time").getOrElse(0L),
      "truncated" -> state.flag("truncated"),
      "entries" -> store.entries.map(entry).sortBy(-_.number("used").getOrElse(0.0))
    )
  }

  def graph: ObjectNode = {
    val state = store.state
    record(
      "asOf" -> state.whole("time").getOrElse(0L),
      "operators" -> state.path("planner").whole("graphOperators").getOrElse(0L),
      "nodes" -> state.path("graph").items("nodes"),
      "edges" -> state.path("graph").items("edges")
    )
  }

  def explorations: ObjectNode = record("explorations" -> store.explorations.map(explored))

  /** With all that goes on from its branches, to any depth, and what it goes on from itself. */
  def exploration(numbers: RegionsPage.Numbers): ObjectNode = {
    val number = numbers("id").getOrElse(throw new RegionsPage.WrongRequest("id (of an exploration) is missing"))
    val all = store.explorations
    val parents =
      all.map(each => each.exploration -> Packed.open(each.facts).items("parents").map(_.path(0).asLong)).toMap
    // One that goes on from another has the higher number.
    val below = all.map(_.exploration).sorted.foldLeft(Set(number))((found, one) =>
      if (parents(one).exists(found)) found + one else found)
    val above = all.map(_.exploration).foldLeft(Set(number))((found, one) =>
      if (found(one)) found ++ parents(one) else found)
    val shown = all.reverse.filter(each => below(each.exploration)).map(each =>
      explored(each).set[ObjectNode]("tree", array(elements(Packed.open(each.branches)))))
    record("title" -> s"Exploration $number", "exploration" -> number, "above" -> (above - number).toSeq.sorted,
      "explorations" -> shown)
  }

  private def explored(each: ExplorationRecord): ObjectNode = {
    val facts = Packed.open(each.facts) match {
      case told: ObjectNode => told
      case _ => record()
    }
    if (facts.text("status") == "running" && executions.over) facts.put("status", "unfinished")
    facts.put("exploration", each.exploration).put("time", each.time).put("truncated", each.truncated)
      .put("bytes", each.bytes)
  }

  def lost: ObjectNode = record("lost" -> store.lost.map { loss =>
    val execution = if (loss.executionId >= 0) loss.executionId else executionOf(loss.query)
    fieldsOf(loss, "id").put("executionId", execution).put("reason", Reasons.all.getOrElse(loss.code, ""))
  })

  /** It may have become known since. */
  private def executionOf(query: Long): Long = store.query(query).map(_.executionId).getOrElse(-1L)

  private def summary(q: QueryRecord): ObjectNode = fieldsOf(q, "decisions", "nodes", "ran").setAll(
    record(
      "description" -> describe(q.executionId),
      "applied" -> ordered(q.applied),
      "done" -> ordered(q.done),
      "seconds" -> q.ended(_.seconds),
      "taskSeconds" -> q.ended(_.taskSeconds)
    ))

  private def detail(q: QueryRecord): ObjectNode = {
    val ran = Packed.open(q.ran)
    val measured = ran.items("nodes").map(node => node.whole("id").getOrElse(-1L) -> node).toMap
    val nodes = elements(Packed.open(q.nodes)).map { node =>
      val merged = node.deepCopy[ObjectNode]()
      val own = measured.get(node.whole("id").getOrElse(-1L))
      Seq("rows", "bytes", "seconds").foreach(name =>
        merged.set[JsonNode](name, own.map(_.path(name)).filterNot(_.isMissingNode).orNull))
      for (name <- Seq("region", "exchange", "exchangeBytes"); ran <- own; value <- Option(ran.get(name)))
        merged.set[JsonNode](name, value)
      merged
    }
    val loads = ran.items("loads")
    val places = loads.flatMap(_.whole("node")).toSet
    // Where the reads do not name their nodes, every one counts.
    def read(node: Long): Boolean = places(node) || places.isEmpty && loads.nonEmpty
    val engines = ran.items("statements").map(each => each.whole("node") -> each.path("engine")).toMap
    val decisions = elements(Packed.open(q.decisions))
    decisions.flatMap(_.items("actions")).foreach {
      case action: ObjectNode =>
        val stands = action.text("kind") != "load" || read(action.whole("node").getOrElse(-1L))
        action.put("ran", q.partOf >= 0 && stands && !action.path("refusal").isObject)
        if (action.path("engine").isObject)
          engines.get(action.whole("node")).foreach(action.set[JsonNode]("engine", _))
      case _ =>
    }
    summary(q).setAll[ObjectNode](record("nodes" -> nodes, "decisions" -> decisions, "loads" -> loads,
        "choices" -> ran.items("choices")))
  }

  private def entry(e: EntryRecord): ObjectNode = {
    val fields = Packed.open(e.facts) match {
      case listed: ObjectNode => listed
      case _ => record("entry" -> e.entry)
    }
    fields.put("state", e.state)
    if (e.rows > 0 || !fields.has("rows")) fields.put("rows", e.rows)
    if (e.bytes > 0 || !fields.has("bytes")) fields.put("bytes", e.bytes)
    if (e.query >= 0) {
      fields.put("query", e.query).put("executionId", executionOf(e.query))
      fields.put("files", e.files).put("writeSeconds", e.seconds).put("here", true)
    }
    val readers = e.readers.toSeq.flatMap(store.query)
    fields.set[JsonNode]("readBy", array(readers.map(q => record("query" -> q.query, "executionId" -> q.executionId))))
    Seq("used", "created").filterNot(fields.has).foreach(fields.put(_, e.time / 1000.0))
    fields.put("code", e.code).put("detail", e.detail)
  }

  private def describe(execution: Long): String =
    if (execution < 0) "" else sql.execution(execution).map(_.description).getOrElse("")

  /** The most frequent first. */
  private def ordered(sums: Map[String, Int]): ObjectNode =
    record(sums.toSeq.sortBy { case (key, n) => (-n, key) }: _*)
}
