package org.apache.spark.sql.regions.ui.pages

import java.util.{Date, UUID}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.{JobExecutionStatus, SparkConf}
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.execution.ui.{SQLAppStatusStore, SQLExecutionUIData}
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.regions.ui.Trees
import org.apache.spark.sql.regions.ui.events._
import org.apache.spark.sql.regions.ui.store.{RegionsStatusListener, RegionsStore}
import org.apache.spark.status.{AppStatusStore, ElementTrackingStore}
import org.apache.spark.util.kvstore.InMemoryStore

/** SQL executions with their subqueries, as the overview, their page and the line on Spark's page have them. */
class ExecutionsSuite extends munit.FunSuite {
  private val conf = new SparkConf(false).set("spark.appStateStore.asyncTracking.enable", "false")
  private val kvstore = new ElementTrackingStore(new InMemoryStore, conf)
  private val listener = new RegionsStatusListener(conf, kvstore)
  private val facts =
    new PageData(new RegionsStore(kvstore), new SQLAppStatusStore(kvstore), new AppStatusStore(kvstore))

  private def told(events: SparkListenerEvent*): Unit = events.foreach(listener.onOtherEvent)

  private def decided(query: Long, execution: Long): SparkListenerRegionsDecided = SparkListenerRegionsDecided(
    query,
    execution,
    query,
    Frames.json.readTree(
      s"""{"query":$query,"session":"s","topic":"","planningMillis":100,"plannerMillis":10,"actions":
         |[{"kind":"load","node":0,"entry":"e1","savingSeconds":2.0,"refusal":null},
         |{"kind":"load","node":1,"entry":"e1","savingSeconds":2.0,"refusal":null}],
         |"declines":[{"node":0,"operator":"Join","code":"TOO_CHEAP","detail":""}],"refusal":null}""".stripMargin),
    Frames.json.readTree("""[{"id":0,"operator":"Join","children":[]}]"""),
    false
  )

  private def ran(query: Long, execution: Long, queries: String, outcome: String = "ok"): SparkListenerRegionsRan = {
    val loads = s"""[{"query":$query,"node":0,"entry":"e1","predicted":2.0,"estimated":1.5}]"""
    val plans = Frames.json.readTree(queries)
    val sums = Trees.elements(plans).map { plan =>
      val done = if (plan.asLong == query) """{"load":1}""" else "{}"
      Frames.json.readTree(
        s"""{"query":$plan,"done":$done,"declines":{"TOO_CHEAP":1},"predicted":${if (plan.asLong == query) 2
          else 0}}""")
    }
    SparkListenerRegionsRan(query, execution, 2000, outcome, 2.5, 4, Frames.json.readTree("[]"),
      Frames.json.readTree(loads), plans, false, Trees.array(sums))
  }

  /** As Spark keeps it. */
  private def spark(id: Long, ended: Boolean, error: Option[String] = None): Unit = kvstore.write(
    new SQLExecutionUIData(
      id,
      id,
      s"collect $id",
      "",
      "",
      Map.empty,
      Nil,
      System.currentTimeMillis() - 5000,
      if (ended) Some(new Date()) else None,
      error,
      Map.empty[Int, JobExecutionStatus],
      Set.empty,
      null,
      new UUID(0, id)
    ))

  test("one row for an execution, with the sums of what ran in it") {
    spark(5, ended = true, error = Some(""))
    told(decided(1, 5), decided(2, 5), decided(3, 5), ran(3, 5, "[3,1]"))
    val row = facts.overview(10).get("executions").get(0)
    assertEquals((row.get("query").asLong, row.get("subqueries").asInt, row.get("notRun").asInt), (3L, 1, 1))
    assertEquals((row.get("planningMillis").asDouble, row.get("notRunMillis").asDouble), (200.0, 100.0))
    assertEquals(
      (row.get("done").toString, row.get("declined").asInt, row.get("predicted").asDouble,
        row.get("estimated").asDouble),
      ("""{"load":1}""", 2, 2.0, 1.5))
    assertEquals((row.get("status").asText, row.get("seconds").asDouble), ("ok", 2.5))
    assertEquals(facts.sums(5).map(Labels.summary), Some("loaded, 2 operators left alone"))
    val actions = facts.execution(Some(5), None).get("queries").get(0).get("decisions").get(0).get("actions")
    assertEquals((actions.get(0).get("ran").asBoolean, actions.get(1).get("ran").asBoolean), (true, false))
  }

  test("a running, a failed and a forgotten execution, and a plan that was only explained") {
    spark(6, ended = false)
    spark(7, ended = true, error = Some("\n[DIVIDE_BY_ZERO] Division by zero.\n\tat Somewhere"))
    told(decided(11, 6), decided(12, 7), ran(12, 7, "[12]", "failed"), decided(13, 8), ran(13, 8, "[13]"),
      decided(14, -1))
    val rows = facts.overview(10).get("executions")
    def row(query: Long) = (0 until rows.size).map(i => rows.get(i)).find(_.get("query").asLong == query).get
    assertEquals(Seq(11L, 12L, 13L, 14L).map(row(_).get("status").asText), Seq("running", "failed", "ok", "planned"))
    assert(
      row(11).get("sinceStart").asDouble >= 5 && row(11).get("seconds").isNull && !row(11).get("counted").asBoolean)
    assertEquals(row(12).get("error").asText, "[DIVIDE_BY_ZERO] Division by zero.")
    assertEquals(row(14).get("done").toString, """{"load":2}""")
  }

  test("a part that another engine computed: as expected, and as it ran") {
    val event = decided(15, 9)
    event.decision.get("actions").get(0).asInstanceOf[ObjectNode].put("kind", "route")
      .set[JsonNode]("engine", Frames.json.readTree("""{"predictedSeconds":0.5,"measuredSeconds":null}"""))
    def engine() = facts.execution(Some(9), None).at("/queries/0/decisions/0/actions/0/engine/measuredSeconds")
    told(event)
    assert(engine().isNull)
    val statements = """[{"query":15,"node":0,"engine":{"predictedSeconds":0.5,"measuredSeconds":0.25}}]"""
    told(ran(15, 9, "[15]").copy(statements = Frames.json.readTree(statements)))
    assertEquals(engine().asDouble, 0.25)
  }

  test("an entry knows the last queries that read it") {
    val entry = facts.cache.get("entries").get(0)
    val readers = (0 until entry.get("readBy").size).map(i => entry.get("readBy").get(i).get("query").asLong)
    assertEquals((entry.get("entry").asText, readers), ("e1", Seq(15L, 13L, 12L, 3L)))
  }
}
