package org.apache.spark.sql.regions.ui

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.regions.ui.events._
import org.apache.spark.sql.regions.ui.store._
import org.apache.spark.status.{ElementTrackingStore, KVUtils}
import org.apache.spark.util.kvstore.InMemoryStore

/** The store behind the tab, filled with events in all orders. */
class StatusListenerSuite extends munit.FunSuite {
  private final class Filled(retained: Int = 1000) {
    val conf: SparkConf = new SparkConf(false).set(StaticSQLConf.UI_RETAINED_EXECUTIONS, retained)
      .set("spark.appStateStore.asyncTracking.enable", "false")
    val kvstore = new ElementTrackingStore(new InMemoryStore, conf)
    val listener = new RegionsStatusListener(conf, kvstore)
    val store = new RegionsStore(kvstore)
    def told(events: SparkListenerEvent*): this.type = {
      events.foreach(listener.onOtherEvent)
      this
    }
  }

  private def tree(json: String): JsonNode = Frames.json.readTree(json)

  private def decided(
      query: Long,
      execution: Long = -1,
      actions: String = "[]",
      declines: String = "[]",
      session: String = "s",
      topic: String = "",
      sums: JsonNode = null): SparkListenerRegionsDecided =
    SparkListenerRegionsDecided(
      query,
      execution,
      1000 + query,
      tree(s"""{"query":$query,"session":"$session","topic":"$topic","planningMillis":12.5,"actions":$actions,
              |"declines":$declines,"refusal":null}""".stripMargin),
      tree("""[{"id":0,"operator":"Join","children":[]}]"""),
      false,
      sums
    )

  private def ran(
      query: Long,
      execution: Long,
      loads: String = "[]",
      queries: String = "[]",
      sums: Seq[JsonNode] = Nil): SparkListenerRegionsRan =
    SparkListenerRegionsRan(query, execution, 2000, "ok", 2.5, 4, tree("""[{"id":0,"rows":3}]"""), tree(loads),
      tree(queries), false, Trees.array(sums))

  private def sums(query: Long, kind: String, predicted: Double, declines: String = "{}"): JsonNode =
    tree(s"""{"query":$query,"done":{"$kind":1},"declines":$declines,"predicted":$predicted}""")

  private def entry(name: String, state: String, query: Long = 1, time: Long = 3000): SparkListenerRegionsEntry =
    SparkListenerRegionsEntry(
      name, state, query, time, 10, 100, 1, 0.5, if (state == "abandoned") "WRITE_FAILED" else "", "")

  private def state(time: Long, entries: String): SparkListenerRegionsState =
    SparkListenerRegionsState(time, "apply", "markov", tree("{}"), tree("""{"healthy":true,"pid":1}"""), tree("{}"),
      tree(entries), tree("""{"nodes":[],"edges":[]}"""), false)

  private val load = """[{"kind":"load","entry":"e1","savingSeconds":2.0,"refusal":null}]"""

  test("a decision before its execution is known is found by the execution once it ran") {
    val loads = """[{"entry":"e1","predicted":2.0,"estimated":1.5}]"""
    val filled = new Filled().told(decided(1, -1, load), ran(1, 9, loads, sums = Seq(sums(1, "load", 2))))
    val Seq(query) = filled.store.ofExecution(9): @unchecked
    assertEquals((query.query, query.outcome, query.estimated, query.predicted), (1L, "ok", 1.5, 2.0))
    assertEquals(filled.store.ofExecution(-1), Nil)
    val all = filled.store.totals
    assertEquals((all.queries, all.predicted, all.estimated, all.loadsEstimated), (1, 2.0, 1.5, 1))
  }

  test("what was measured is no estimate as well; other rows than plain Spark's are a loss") {
    val saving = tree("""{"state":"warm","plain":5.0,"runs":2,"saved":0.1,"choices":
                        |[{"query":1,"node":0,"kind":"load","predicted":2.0,"saved":0.1}]}""".stripMargin)
    val loads = """[{"query":1,"node":0,"entry":"e1","predicted":2.0,"estimated":1.5}]"""
    val note = """[{"kind":"differs","node":-1,"entry":"","detail":"1 of 3 rows","savingSeconds":-1,"refusal":null}]"""
    val filled = new Filled().told(decided(1, 9, load), ran(1, 9, loads).copy(saving = saving),
      decided(1, -1, note, session = ""))
    val query = filled.store.query(1).get
    assertEquals((query.saved, query.estimated.isNaN), (0.1, true))
    val all = filled.store.totals
    assertEquals((all.saved, all.choicesMeasured, all.estimated, all.loadsEstimated), (0.1, 1, 0.0, 0))
    assertEquals(
      filled.store.lost.map(loss => (loss.what, loss.entry, loss.code, loss.detail)).toSet,
      Set(
        ("saved less than predicted", "e1", "CONTRADICTED", ""),
        ("other rows than plain Spark", "", "DIFFERS", "1 of 3 rows"))
    )
  }

  test("the end may be heard before the decision") {
    val filled = new Filled().told(ran(1, 9, sums = Seq(sums(1, "load", 2))), decided(1, -1, load))
    val query = filled.store.query(1).get
    assertEquals((query.executionId, query.outcome, query.seconds, query.operators), (9L, "ok", 2.5, 1))
    assertEquals((query.applied, query.done, query.predicted), (Map("load" -> 1), Map("load" -> 1), 2.0))
  }

  test("what was decided counts once it ran: a subquery with its query, and no plan that was only made") {
    val subqueries = Seq(1L, 2L).map(decided(_, 5, load, """[{"node":0,"code":"TOO_CHEAP"}]"""))
    val both = """[{"kind":"load","node":3,"entry":"e2","savingSeconds":1.0,"refusal":null},
                 |{"kind":"load","node":4,"entry":"e2","savingSeconds":1.0,"refusal":null}]""".stripMargin
    val filled = new Filled().told(subqueries :+ decided(3, 5, both): _*)
    assertEquals((filled.store.totals.predicted, filled.store.totals.actions), (0.0, Map.empty[String, Int]))
    val places = """[{"query":1,"node":-1,"entry":"e1","predicted":2.0,"estimated":1.5},
                   |{"query":3,"node":4,"entry":"e2","predicted":1.0}]""".stripMargin
    filled.told(ran(3, 5, places, "[3,1]", Seq(sums(3, "load", 1), sums(1, "load", 2, """{"TOO_CHEAP":1}"""))))
    val all = filled.store.totals
    assertEquals((all.queries, all.predicted, all.estimated, all.loadsEstimated), (3, 3.0, 1.5, 1))
    assertEquals((all.actions, all.declines), (Map("load" -> 2), Map("TOO_CHEAP" -> 1)))
    val parts = filled.store.ofExecution(5).map(q => (q.query, q.partOf, q.predicted, q.outcome))
    assertEquals(parts, Seq((1L, 3L, 2.0, ""), (2L, -1L, 0.0, ""), (3L, 3L, 1.0, "ok")))
    // Collected once more, it is still the same plan.
    filled.told(ran(3, 6, places.replace(""","estimated":1.5""", ""), "[3,1]"))
    assertEquals(filled.store.totals.predicted, 3.0)
  }

  test("what turns out later is added to its query and counts as no query") {
    val note = decided(1, -1, """[{"kind":"committed","entry":"e1","savingSeconds":-1,"refusal":null}]""", session = "")
    val stage = decided(1, -1, topic = "skew", sums = sums(1, "split_by_records", 0.5))
    val filled = new Filled().told(decided(1, 3), note, stage)
    val query = filled.store.query(1).get
    assertEquals((query.done, query.predicted), (Map("split_by_records" -> 1), 0.5))
    assertEquals(filled.store.totals.predicted, 0.5)
    assertEquals((filled.store.totals.queries, query.executionId, query.planningMillis), (1, 3L, 12.5))
    assertEquals(Packed.open(query.decisions).size, 3)
  }

  test("no more queries are kept than Spark keeps executions; sums go on") {
    val filled = new Filled(retained = 50)
    (1L to 200L).foreach(n =>
      filled.told(decided(n, n, load), ran(n, n, """[{"entry":"e1"}]""", sums = Seq(sums(n, "load", 2)))))
    assert(filled.store.queryCount <= 51, filled.store.queryCount)
    assert(filled.store.query(200).isDefined && filled.store.query(1).isEmpty)
    assertEquals((filled.store.totals.queries, filled.store.totals.predicted), (200, 400.0))
    (1 to 200).foreach(n => filled.told(entry(s"e$n", "abandoned", n, n)))
    assert(filled.store.entries.size <= 51 && filled.store.lost.size <= 51)
    assert(filled.store.entry("e200").isDefined)
  }

  test("a load that saved less than a fifth of what was predicted has lost, and an action that could not be applied") {
    val refused = """[{"kind":"store","node":0,"operator":"Join","entry":"e2","savingSeconds":1.0,
                    |"refusal":{"code":"TYPE_NOT_STORABLE","detail":"map"}}]""".stripMargin
    val filled = new Filled().told(
      decided(1, 5, load),
      ran(1, 5, """[{"entry":"e1","predicted":2.0,"estimated":0.1},{"entry":"e3","predicted":2.0,"estimated":1.0}]"""),
      decided(2, 6, refused),
      entry("e2", "abandoned", 2),
      entry("e4", "abandoned", 2),
      decided(3, 7, declines = """[{"node":0,"operator":"Join","code":"SHADOWED","detail":""}]""")
    )
    val lost = filled.store.lost.map(loss => (loss.query, loss.what, loss.code)).toSet
    assertEquals(
      lost,
      Set(
        (1L, "saved less than predicted, by an estimate", "CONTRADICTED"),
        (2L, "could not store", "TYPE_NOT_STORABLE"),
        (2L, "not stored", "WRITE_FAILED"),
        (3L, "withdrawn", "SHADOWED")
      )
    )
  }

  test("the planner's list gives provenance; what is not in it any more is evicted") {
    val filled = new Filled().told(
      entry("e1", "committed", time = 3000),
      entry("e2", "committed", time = 3000),
      state(4000, """[{"entry":"e1","state":"committed","name":"job","uses":2}]"""),
      entry("e3", "committed", time = 5000)
    )
    assertEquals(filled.store.entries.map(e => e.entry -> e.state).toMap,
      Map("e1" -> "committed", "e2" -> "evicted", "e3" -> "committed"))
    assertEquals(Packed.open(filled.store.entry("e1").get.facts).get("name").asText, "job")
    assertEquals(filled.store.entry("e1").get.rows, 10L)
  }

  test("a list that was made before a commit does not take it back") {
    val filled =
      new Filled().told(entry("e1", "committed", time = 9000), state(4000, """[{"entry":"e1","state":"pending"}]"""))
    assertEquals(filled.store.entry("e1").get.state, "committed")
  }

  private def explored(number: Long, branches: String, status: String = "running"): SparkListenerRegionsExploration =
    SparkListenerRegionsExploration(number, 1, tree(s"""{"status":"$status"}"""), tree(branches), false)

  test("what is told of an exploration's branch replaces what was told before") {
    val filled = new Filled(retained = 50).told(
      explored(1, """[{"branch":10,"state":"running"},{"branch":2,"state":"kept","bytes":100}]"""),
      explored(1, """[{"branch":10,"state":"kept","bytes":7},{"branch":2,"state":"discarded"}]""", "ok")
    )
    val known = filled.store.exploration(1).get
    val branches =
      Trees.elements(Packed.open(known.branches)).map(b => (b.path("branch").asInt, b.path("state").asText))
    assertEquals(branches, Seq((2, "discarded"), (10, "kept")))
    assertEquals((known.bytes, Packed.open(known.facts).path("status").asText), (7L, "ok"))
    val serializer = new KVUtils.KVStoreScalaSerializer
    assertEquals(serializer.deserialize(serializer.serialize(known), classOf[ExplorationRecord]).bytes, 7L)
    (2L to 200L).foreach(number => filled.told(explored(number, "[]")))
    assert(filled.store.explorations.sizeIs <= 51 && filled.store.explorations.head.exploration == 200)
  }

  test("records survive the History Server's disk") {
    val filled = new Filled().told(decided(1, 5, load), entry("e1", "committed"), state(1, "[]"))
    val serializer = new KVUtils.KVStoreScalaSerializer
    val query = filled.store.query(1).get
    val again = serializer.deserialize(serializer.serialize(query), classOf[QueryRecord])
    assertEquals((again.query, again.executionId, again.saved.isNaN), (1L, 5L, true))
    assertEquals(again.applied.map { case (kind, times) => kind -> (times + 1) }, Map("load" -> 2))
    assertEquals(Packed.open(again.nodes), Packed.open(query.nodes))
    val known = filled.store.entry("e1").get
    assertEquals(serializer.deserialize(serializer.serialize(known), classOf[EntryRecord]).bytes, 100L)
  }

  test("an event that makes no sense harms nothing") {
    val filled = new Filled().told(
      SparkListenerRegionsDecided(1, -1, 0, null, null, false),
      SparkListenerRegionsRan(2, -1, 0, null, 0, 0, null, null, null, false),
      SparkListenerRegionsState(0, null, null, null, null, null, null, null, false),
      SparkListenerRegionsDecided(4, -1, 0, tree("[1]"), tree("7"), false),
      SparkListenerRegionsExploration(1, 0, null, null, false),
      decided(3, 3)
    )
    assertEquals(filled.store.query(3).map(_.executionId), Some(3L))
  }
}
