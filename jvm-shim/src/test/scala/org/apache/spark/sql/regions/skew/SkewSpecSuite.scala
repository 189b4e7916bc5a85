package org.apache.spark.sql.regions.skew

import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.wire.{Frames, SkewPlan}

/** What comes over the wire must have every row in exactly one task, or it is not used. */
class SkewSpecSuite extends munit.FunSuite {

  private def plan(text: String): SkewPlan = SkewPlan.codec.read(Frames.json.readTree(text), "")

  private def parsed(partitions: String, tasks: String, kind: String = "split_by_records"): Either[Refusal, SkewSpec] =
    SkewSpec.parse(
      plan(s"""{"kind":"$kind","partitions":[$partitions],"tasks":$tasks,"reason":"X"}"""),
      3,
      Seq(4, 2))

  private val cut = """{"partition":1,"helpers":2,"spread":"left","replicate":"right","maps":[[0,3],[3,4]]}"""

  test("whole partitions, cut ones and dealt ones") {
    val spec = parsed(cut, """[[[1,1]],[[1,0]],[[2,0],[0,0]]]""").toOption.get
    assertEquals(spec.tasks.map(_.map(_.slice)), Seq(Seq(Some(1)), Seq(Some(0)), Seq(None, None)))
    assertEquals(spec.splits(1).read(1), SliceRead(1, maps = Some((3, 4))))
    val dealt = """{"partition":2,"helpers":2,"spread":"right","unmatched":true}"""
    val other = parsed(dealt, """[[[2,0]],[[2,1]],[[0,0]],[[1,0]]]""").toOption.get
    assertEquals(other.splits(2).read(0), SliceRead(2, roundRobin = Some((0, 2))))
    assert(other.splits(2).unmatched && !other.splits(2).left)
    assertEquals(parsed("", "[]", "none").map(_.tasks), Right(Nil))
  }

  test("rows that would be lost or doubled are refused") {
    def wrong(partitions: String, tasks: String, kind: String = "split_by_records"): Unit =
      assert(
        parsed(partitions, tasks, kind).left.toOption.map(_.code).contains("PLANNER_PROTOCOL"), s"$partitions $tasks")
    val whole = """[[1,1]],[[1,0]]"""
    wrong(cut, s"[$whole,[[2,0]]]")
    wrong(cut, s"[$whole,[[2,0]],[[0,0]],[[0,0]]]")
    wrong(cut, """[[[1,0]],[[0,0]],[[2,0]]]""")
    wrong(cut, s"[$whole,[[2,0]],[[0,0]],[[3,0]]]")
    wrong(cut, s"[$whole,[[2,0]],[[0,0]],[]]")
    wrong(cut.replace("[3,4]", "[2,4]"), s"[$whole,[[2,0],[0,0]]]")
    wrong(cut.replace("[3,4]", "[3,5]"), s"[$whole,[[2,0],[0,0]]]")
    wrong(cut.replace("\"left\"", "\"right\""), s"[$whole,[[2,0],[0,0]]]")
    wrong(cut.replace("\"helpers\":2", "\"helpers\":1"), "[[[1,0]],[[2,0],[0,0]]]")
    wrong("", "[[[0,0]],[[1,0]],[[2,0]]]", "two_phases")
    wrong("", "[]", "order")
    wrong(cut, """[[[1,1]],[[1,0]],[[2,0],[0,0]]]""", "two_phases")
  }

  test("states are merged where the operator can, and rows of a key stay together otherwise") {
    val text = s"""{"kind":"two_phases","partitions":[$cut],"tasks":[[[1,1]],[[1,0]],[[2,0],[0,0]]]}"""
    val spec = SkewSpec.parse(plan(text), 3, Seq(4), twoPhases = true)
    assertEquals(spec.map(_.splits.keySet), Right(Set(1)))
    val records = plan(text.replace("two_phases", "split_by_records"))
    assert(SkewSpec.parse(records, 3, Seq(4), twoPhases = true).isLeft)
  }
}
