package org.apache.spark.sql.regions.ui

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.regions.profile.{LoadMark, Observed, RanPlans}
import org.apache.spark.sql.regions.ui.events._
import org.apache.spark.util.JsonProtocol

/** What lands in the event log: it comes back, it is bounded, and it does not tell what Spark would hide. */
class EventsSuite extends munit.FunSuite {
  private def tree(json: String): JsonNode = Frames.json.readTree(json)
  private def texts(hidden: String = ""): Redaction =
    Redaction(new SparkConf(false), Option(hidden).filter(_.nonEmpty).map(_.r))

  private def decision(declines: Int, detail: String): Decision = Decision(
    7,
    "s",
    1000,
    12.5,
    8,
    Seq(DecidedAction("load", 2, "Aggregate", "e1", 1.5, "BENEFIT", detail = detail, insteadSeconds = 2)),
    Seq.fill(declines)(DeclinedNode(1, "Filter", "TOO_CHEAP", detail))
  )

  private def again(event: SparkListenerEvent): SparkListenerEvent =
    JsonProtocol.sparkEventFromJson(JsonProtocol.sparkEventToJsonString(event))

  test("each event comes back from the event log as it was") {
    val told = Seq(
      EventBodies.decided(decision(2, "0.02 s"), Nil, 4, texts()),
      SparkListenerRegionsRan(
        7,
        4,
        1,
        "ok",
        1.5,
        2.5,
        tree("""[{"id":0,"rows":5}]"""),
        tree("""[{"entry":"e1"}]"""),
        tree("[7,6]"),
        false,
        tree("""[{"query":7,"done":{"load":1},"declines":{},"predicted":1.5}]""")
      ),
      SparkListenerRegionsEntry("e1", "committed", 7, 1, 10, 1L << 40, 2, 0.5, "", ""),
      EventBodies.explored(exploration, Map(1 -> 1024L), 5, texts()),
      SparkListenerRegionsState(1, "apply", "markov", tree("""{"a":"b"}"""), tree("""{"healthy":true}"""),
        tree("""{"loads":1}"""), tree("[]"), tree("""{"nodes":[],"edges":[]}"""), false)
    )
    told.foreach { event =>
      // Numbers may come back in another width, so the texts are compared.
      val back = again(event)
      assertEquals(back.getClass.getName, event.getClass.getName)
      assertEquals(JsonProtocol.sparkEventToJsonString(back), JsonProtocol.sparkEventToJsonString(event))
      assert(JsonProtocol.sparkEventToJsonString(event).contains(s""""Event":"${event.getClass.getName}""""))
    }
  }

  test("of an exploration secrets are hidden, texts and branches bounded, and bytes added to those that hold any") {
    val event = EventBodies.explored(exploration, Map(1 -> 1024L), 5, texts("hush"))
    val Seq(first, second) = Trees.elements(event.branches): @unchecked
    assertEquals((event.exploration, event.facts.path("status").asText, event.truncated), (3L, "running", true))
    assertEquals(second.at("/parameters/token").asText, "*********(redacted)")
    assert(!first.toString.contains("hush") && first.path("bytes").isMissingNode)
    assertEquals(second.path("bytes").asLong, 1024L)
    val many = tree(s"""{"exploration":3,"facts":{},"branches":[${Seq.fill(3000)("{}").mkString(",")}]}""")
    assertEquals(EventBodies.explored(many, Map.empty, 5, texts()).branches.size, EventBodies.mostBranches)
  }

  private def exploration: JsonNode = tree(
    s"""{"exploration":3,"facts":{"status":"running","states":{"kept":1}},"branches":[
       |{"branch":0,"parameters":{"t":"hush"},"why":"${"x" * 600}"},
       |{"branch":1,"parameters":{"token":"abc"},"score":1.5}]}""".stripMargin)

  test("an event of another version replays: unknown fields are ignored, absent ones empty") {
    val name = classOf[SparkListenerRegionsRan].getName
    JsonProtocol.sparkEventFromJson(
      s"""{"Event":"$name","query":3,"later":{"a":[1]},"loads":{"not":"a list"}}""") match {
      case ran: SparkListenerRegionsRan =>
        assertEquals((ran.query, ran.executionId, ran.nodes), (3L, 0L, null))
      case other => fail(other.toString)
    }
  }

  test("declines, nodes and texts are bounded, and the event says so") {
    val event = EventBodies.decided(decision(500, "x" * 2000), Nil, -1, texts())
    assertEquals(event.decision.get("declines").size, EventBodies.mostDeclines)
    assert(event.truncated)
    assert(JsonProtocol.sparkEventToJsonString(event).length < 100 * 700)
    assertEquals(event.decision.at("/actions/0/detail").asText.length, Redaction.longest)
    assert(!EventBodies.decided(decision(3, "short"), Nil, -1, texts()).truncated)
  }

  test("what spark.sql.redaction.string.regex matches is hidden before the text is cut") {
    val secret = "x" * 490 + "pa55word" + "y" * 600
    val event = EventBodies.decided(decision(1, secret), Nil, -1, texts("pa55word"))
    val json = JsonProtocol.sparkEventToJsonString(event)
    assert(!json.contains("pa55"), json)
    assert(json.contains("x****"), json)
  }

  test("values of secret keys are hidden, and a catalog's password") {
    val shown = Redaction.settings(
      new SparkConf(false),
      Seq("spark.regions.token" -> "abc", "spark.regions.recycle.catalog" -> "postgresql://me:hush@host/db"))
    assertEquals(shown("spark.regions.token"), "*********(redacted)")
    assertEquals(shown("spark.regions.recycle.catalog"), "postgresql://***@host/db")
    assertEquals(texts()(tree("""{"password":"a","plain":"b"}""")).get("password").asText, "*********(redacted)")
  }

  test("entries and graph stay within bounds whatever the planner sends") {
    val many = (1 to 3000).map(i => tree(s"""{"entry":"e$i","lineage":"l$i"}"""))
    val edges = (1 to 9000).map(i => s"a$i" -> s"b$i")
    val status = wire.StatusAnswer("", 1, 0, "", "", "", "", "on")
    val cut = texts()
    val (entries, graph) =
      EventBodies.listed(status.copy(entryList = Some(many), graph = Some(wire.EntryGraph(many, edges))), cut)
    assertEquals((entries.size, graph.get("nodes").size, graph.get("edges").size), (500, 500, 2000))
    assert(cut.truncated)
  }

  private def ended(query: Long, outcome: String = "ok") = wire.Executed(query, outcome, 1.0, alone = true)

  test("a load's estimated saving: what it stands for, less its task-seconds over the cores") {
    val savings = new Savings(() => 2)
    assertEquals(savings.decided(decision(0, "")), None)
    assertEqualsDouble(savings.predictedSeconds, 0, 1e-9)
    val plans = RanPlans(Seq(7), Map(LoadMark(7, 2, "e1") -> Observed(Some(5), None, Some(0.5))))
    val ran = EventBodies.ran(ended(7), Seq(7), savings.ran(plans, 4, ended(7)), 4, 1, texts())
    assertEqualsDouble(ran.loads.at("/0/estimated").asDouble, 2 - 0.5 / 2, 1e-9)
    assertEquals(ran.saving, null)
    assertEqualsDouble(savings.estimatedSeconds, 1.75, 1e-9)
    assertEqualsDouble(savings.measuredSeconds, 0, 1e-9)
    assertEqualsDouble(savings.predictedSeconds, 1.5, 1e-9)
    assertEquals(ran.sums.toString, """[{"query":7,"done":{"load":1},"declines":{},"predicted":1.5}]""")
    // The same plan runs once more.
    val again = savings.ran(plans, 5, ended(7))
    assertEquals((again.loads.map(load => (load.predicted, load.estimated)), again.sums), (Seq((None, None)), Nil))
    assertEquals((savings.estimatedReads, savings.measuredChoices), (1L, 0L))
    assertEquals((savings.execution(7), savings.execution(8)), (Some(4L), None))
    assertEquals(savings.outcome(7, decision(0, "").actions.head), Outcome(estimated = Some(1.75)))
  }

  test("what another engine took, once its query ran for the first time") {
    val savings = new Savings(() => 2)
    val routes = Seq(1, 2).map(node =>
      DecidedAction("route", node, "Join", "", 1.0, "ENGINE", engine = Some(EngineRun(0.5, 10, 80))))
    val known = decision(0, "").copy(actions = routes)
    savings.decided(known)
    assertEquals(savings.measured(known), known)
    val asked = Seq(
      wire.RanRoute(7, 1, "duckdb", 1.0, 0.75, 9, 72),
      wire.RanRoute(7, 2, "duckdb", 30, refusal = Some(wire.Why("DEADLINE", ""))))
    def ran() = savings.ran(RanPlans(Seq(7), Map.empty), 4, ended(7).copy(routes = asked))
    val took = EngineRun(0.5, 10, 80, Some(0.25), Some(9), Some(72))
    val told = EventBodies.ran(ended(7), Seq(7), ran(), 4, 1, texts()).statements
    assertEquals((told.size, told.at("/0/node").asInt, told.at("/0/engine/measuredRows").asInt), (1, 1, 9))
    assertEquals(savings.measured(known).actions.flatMap(_.engine), Seq(took, EngineRun(0.5, 10, 80)))
    ran()
    assertEquals(savings.engine, Statements(1, 0.5, 0.25, 9, 72))
  }

  test("a measured saving: plain seconds less those of this run, divided by the predictions") {
    val actions = Seq(
      DecidedAction("load", 2, "Scan", "e1", 3.0, "BENEFIT", insteadSeconds = 2),
      DecidedAction("share", 4, "Join", "", 1.0, "SHARED"),
      DecidedAction("store", 0, "Join", "e2", 9.0, "SKI_RENTAL")
    )
    val known = decision(0, "").copy(actions = actions, baseline = Some(wire.Baseline("warm", Some(5.0), 3)))
    def ran(event: wire.Executed, known: Decision = known): (Savings, RanSums) = {
      val savings = new Savings(() => 2)
      savings.decided(known)
      val plans = RanPlans(Seq(7), Map(LoadMark(7, 2, "e1") -> Observed(Some(5), None, Some(0.5))))
      (savings, savings.ran(plans, 4, event))
    }
    val (savings, came) = ran(ended(7))
    assertEquals(came.saving,
      Some(MeasuredSaving("warm", 5, 3, 4,
          Seq(Choice(7, 2, "load", 3, 3), Choice(7, 4, "share", 1, 1)))))
    assertEquals((savings.measuredSeconds, savings.estimatedSeconds, savings.measuredChoices), (4.0, 0.0, 2L))
    assertEquals(actions.map(savings.outcome(7, _).measured), Seq(Some(3.0), Some(1.0), None))
    val (lost, _) = ran(ended(7).copy(seconds = 7))
    assertEqualsDouble(lost.measuredSeconds, -2, 1e-9)
    // Beside another query, after a failure, or where it was never seen plain in that state, nothing is measured.
    assertEquals(ran(ended(7).copy(alone = false))._2.saving, None)
    assertEquals(ran(ended(7, "failed"))._2.saving, None)
    assertEquals(ran(ended(7), known.copy(baseline = Some(wire.Baseline("cold"))))._2.saving, None)
    assertEquals(ran(ended(7), known.copy(actions = actions.drop(2)))._2.saving, None)
  }

  test("a place that did not run, a plan that did not, and a query that failed bring no saving") {
    val savings = new Savings(() => 2)
    val both = Seq(1, 2).map(node => DecidedAction("load", node, "Scan", "e1", 1.5, "BENEFIT", insteadSeconds = 2))
    Seq(7L, 8L, 9L).foreach(query => savings.decided(decision(0, "").copy(query = query, actions = both)))
    def seen(query: Long, nodes: Int*): RanPlans =
      RanPlans(Seq(query), nodes.map(LoadMark(query, _, "e1") -> Observed(None, None, Some(0.5))).toMap)
    assertEquals(savings.ran(seen(7, 1), 4, ended(7)).sums, Seq(Sums(7, Map("load" -> 1), Map.empty, 1.5)))
    assertEquals(both.map(savings.ran(7, _)), Seq(true, false))
    assertEquals((savings.predictedSeconds, savings.estimatedSeconds, savings.reads), (1.5, 1.75, 1L))
    val failed = savings.ran(seen(8, 1, 2), 5, ended(8, "failed"))
    assertEquals(failed.loads.map(_.estimated), Seq(None, None))
    assertEquals((savings.estimatedSeconds, savings.reads), (1.75, 3L))
    assert(!both.exists(savings.ran(9, _)))
  }

  test("a subquery counts with the query that ran it; a stage, and what turned out, at once") {
    val savings = new Savings(() => 2)
    val share = DecidedAction("share", 1, "Join", "", 1.0, "SHARED")
    val store = DecidedAction("store", 0, "Join", "e2", 4.0, "SKI_RENTAL")
    val failed = share.copy(refusal = Some(Refusal("ATTRIBUTE_CLASH", "")))
    savings.decided(decision(2, ""))
    savings.decided(decision(0, "").copy(query = 8))
    savings.decided(decision(0, "").copy(query = 9, actions = Seq(share, store, failed)))
    val plans = RanPlans(Seq(9, 7), Map(LoadMark(7, 2, "e1") -> Observed(None, None, None)))
    assertEquals(
      savings.ran(plans, 4, ended(9)).sums,
      Seq(Sums(9, Map("share" -> 1, "store" -> 1), Map.empty, 1.0),
        Sums(7, Map("load" -> 1), Map("TOO_CHEAP" -> 2), 1.5)))
    val stage = decision(1, "").copy(
      topic = "skew",
      actions = Seq(share.copy(kind = "split_by_records"), share.copy(kind = "measured", savingSeconds = -1)))
    assertEquals(
      savings.decided(stage),
      Some(Sums(7, Map("split_by_records" -> 1, "measured" -> 1), Map("TOO_CHEAP" -> 1), 1.0)))
    val note = decision(0, "").copy(session = "", actions = Seq(store.copy(kind = "committed", savingSeconds = 9)))
    assertEquals(savings.decided(note), Some(Sums(7, Map("committed" -> 1), Map.empty, 0.0)))
    assertEquals(savings.predictedSeconds, 3.5)
  }

  test("a fault while an event is made ends nothing; what does not fit is counted") {
    val posted = new ConcurrentLinkedQueue[SparkListenerEvent]()
    val entered = new java.util.concurrent.CountDownLatch(1)
    val open = new java.util.concurrent.CountDownLatch(1)
    val poster =
      new EventPoster(new SparkConf(false), event => posted.add(event), () => throw new LinkageError("idle"), 2)
    val event = SparkListenerRegionsEntry("e1", "dropped", 1, 1, 0, 0, 0, 0, "", "")
    poster.offer { () =>
      entered.countDown()
      open.await()
      throw new IllegalStateException("made to fail")
    }
    entered.await()
    (1 to 3).foreach(_ => poster.offer(() => event))
    open.countDown()
    poster.close(5000)
    assertEquals(posted.asScala.toSeq, Seq[SparkListenerEvent](event, event))
    assertEquals(poster.dropped, 1L)
  }

  test("states are reported at the start, when health turns, and then no more often than their size allows") {
    var now = 0L
    val schedule = new StateSchedule(10000, () => now)
    assert(schedule.due("up 0"))
    schedule.reported(0)
    schedule.changed()
    assert(!schedule.due("up 0"))
    assert(schedule.due("down 0"), "a planner that went is reported at once")
    schedule.reported(500)
    schedule.changed()
    now += 10001
    assert(!schedule.due("down 0"), "a large state waits longer")
    now += 40000
    assert(schedule.due("down 0"))
    schedule.reported(0)
    now += 60000
    assert(!schedule.due("down 0"), "nothing has changed")
  }
}
