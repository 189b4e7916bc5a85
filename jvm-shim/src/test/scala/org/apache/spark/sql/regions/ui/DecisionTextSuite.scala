package org.apache.spark.sql.regions.ui

import org.apache.spark.sql.{Row, classic}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.ui.events.Outcome

/** What users read of a decision. */
class DecisionTextSuite extends munit.FunSuite {
  private val failed = Refusal("ENTRY_DAMAGED", "e2 holds other columns")
  private val decision = Decision(
    query = 7,
    session = "s",
    epochMillis = 1,
    planningMillis = 12.4,
    plannerMillis = 3,
    actions = Seq(
      DecidedAction("load", 2, "Aggregate", "e1", 1.5, "COVERED"),
      DecidedAction("load", 3, "Join", "e2", 0.25, "COVERED", Some(failed))),
    declines = Seq(DeclinedNode(4, "Filter", "TOO_SMALL", "3 rows"), DeclinedNode(5, "Project", "SOURCE", ""))
  )
  private val nothing = Decision(8, "s", 1, 0.6, 0, Nil, Nil, Some(Refusal("PLANNER_DOWN", "not started")))
  private val outcome =
    Decision(7, "", 1, 0, 0, Seq(DecidedAction("committed", -1, "", "e3", -1, "COMMITTED", detail = "5 rows")), Nil)

  private def ranIn(query: Long): Option[Long] = Option.when(query == 7)(3L)

  test("the table: refusals, actions, declines; what is not known is null") {
    val spark = LocalSpark.session(_ => ())
    val saved = (_: Long, a: DecidedAction) =>
      if (a.node == 2) Outcome(measured = Some(1.25)) else Outcome(estimated = Some(0.5))
    val told = DecisionsTable(Seq(decision, nothing, outcome), ranIn, (_, a) => a.node != 2, saved)
    val frame = classic.Dataset.ofRows(spark, told)
    assertEquals(frame.schema, DecisionsTable.schema)
    assertEquals(
      frame.collect().toSeq,
      Seq(
        Row(7L, 2, "Aggregate", "load", "e1", 1.5, "COVERED", null, null, 1.25, null, null),
        Row(7L, 3, "Join", "decline", "e2", 0.25, "ENTRY_DAMAGED", "e2 holds other columns", 3L, null, 0.5, null),
        Row(7L, 4, "Filter", "decline", null, null, "TOO_SMALL", "3 rows", 3L, null, null, null),
        Row(7L, 5, "Project", "decline", null, null, "SOURCE", null, 3L, null, null, null),
        Row(8L, null, null, "refused", null, null, "PLANNER_DOWN", "not started", null, null, null, null),
        Row(7L, null, null, "committed", "e3", null, "COMMITTED", "5 rows", 3L, null, 0.5, null)
      )
    )
    assertEquals(classic.Dataset.ofRows(spark, DecisionsTable(Nil, ranIn, (_, _) => true)).count(), 0L)
  }

  test("what another engine was expected to take, and took") {
    val expected = EngineRun(0.3, 100, 800)
    val took = expected.ran(wire.RanRoute(7, 1, "duckdb", 0.75, 0.5, 90, 720))
    def told(engine: EngineRun): DecidedAction =
      DecidedAction("route", 1, "Join", "", 1.5, "ENGINE", detail = "duckdb", engine = Some(engine))
    def column(engine: EngineRun): Any = classic.Dataset.ofRows(
      LocalSpark.session(_ => ()),
      DecisionsTable(Seq(decision.copy(actions = Seq(told(engine)), declines = Nil)), ranIn, (_, _) => true))
      .select("engine").head().get(0)
    assertEquals(column(expected), Row(0.3, 100.0, 800.0, null, null, null): Any)
    assertEquals(column(took), Row(0.3, 100.0, 800.0, 0.25, 90L, 720L): Any)
    assertEquals(
      RegionsExplain.text(decision.copy(actions = Seq(told(took)), declines = Nil)),
      """query 7, decided in 12 ms
        |  route  at Join (1), predicted saving 1.50 s [ENGINE]: duckdb, predicted 0.30 s, 100 rows, 800 bytes; took 0.25 s, 90 rows, 720 bytes""".stripMargin
    )
  }

  test("the text of explain") {
    assertEquals(
      RegionsExplain.text(decision),
      """query 7, decided in 12 ms
        |  load e1 at Aggregate (2), predicted saving 1.50 s [COVERED]
        |  could not load e2 at Join (3) [ENTRY_DAMAGED]: e2 holds other columns
        |  declined Filter (4) [TOO_SMALL]: 3 rows
        |  declined Project (5) [SOURCE]""".stripMargin
    )
    assertEquals(
      RegionsExplain.text(nothing),
      """query 8, decided in 1 ms
        |  nothing decided [PLANNER_DOWN]: not started""".stripMargin)
    assertEquals(
      RegionsExplain.text(nothing.copy(refusal = None)),
      """query 8, decided in 1 ms
        |  nothing stored or loaded""".stripMargin)
  }

  test("explain shows twenty declines and counts the others") {
    val many = decision.copy(actions = Nil, declines = (1 to 23).map(i => DeclinedNode(i, "Filter", "TOO_SMALL", "")))
    val lines = RegionsExplain.text(many).linesIterator.toSeq
    assertEquals(lines.size, 23)
    assertEquals(lines(1), "  nothing stored or loaded")
    assertEquals(lines.last, "  … and 3 more declined")
  }
}
