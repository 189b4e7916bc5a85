package org.apache.spark.sql.regions.ui

import scala.util.Random

import org.apache.spark.sql.regions.ui.picture.{Arrow, Box, Layered, Layout, Picture}

/** Boxes stand apart, edges point down, and large graphs are drawn in no time. */
class LayeredSuite extends munit.FunSuite {
  private def drawn(count: Int, edges: IndexedSeq[(Int, Int)]): Layout = Layered(count, edges, 200, 50, 20, 40)

  private def apart(layout: Layout): Unit =
    layout.x.indices.groupBy(layout.y(_)).values.foreach { row =>
      row.map(layout.x(_)).sorted.sliding(2).foreach {
        case Seq(left, right) => assert(right - left >= 219.999, s"$left and $right")
        case _ =>
      }
    }

  private def down(layout: Layout, edges: Seq[(Int, Int)]): Unit =
    edges.foreach { case (from, to) => assert(layout.y(from) < layout.y(to), s"$from to $to") }

  private def inside(layout: Layout): Unit = {
    assert(layout.x.forall(x => x >= -1e-6 && x + 200 <= layout.width + 1e-6))
    assert(layout.y.forall(y => y >= 0 && y + 50 <= layout.height + 1e-6))
  }

  test("a tree: each node over the one that it feeds, the root at the bottom, parents centred") {
    val edges = IndexedSeq((1, 0), (2, 0), (3, 1), (4, 1))
    val layout = drawn(5, edges)
    apart(layout)
    down(layout, edges)
    inside(layout)
    assertEquals(layout.y(0), layout.y.max)
    assertEqualsDouble(layout.x(1), (layout.x(3) + layout.x(4)) / 2, 1e-6)
  }

  test("nothing, one node, nodes without edges") {
    assertEquals(drawn(0, Vector.empty).height, 0.0)
    assertEquals((drawn(1, Vector.empty).width, drawn(1, Vector.empty).height), (200.0, 50.0))
    apart(drawn(7, Vector.empty))
  }

  test("loops and cycles are drawn and end") {
    val layout = drawn(4, IndexedSeq((0, 0), (0, 1), (1, 2), (2, 0), (3, 2)))
    apart(layout)
    inside(layout)
    assertEquals(layout.bends.size, 5)
  }

  test("random graphs keep order and distance") {
    val random = new Random(7)
    (1 to 50).foreach { _ =>
      val count = 1 + random.nextInt(60)
      val edges = IndexedSeq.fill(random.nextInt(2 * count))((random.nextInt(count), random.nextInt(count)))
        .filter { case (a, b) => a > b }.distinct
      val layout = drawn(count, edges)
      apart(layout)
      down(layout, edges)
      inside(layout)
    }
  }

  test("a long edge bends around the boxes of the layers between") {
    val layout = drawn(4, IndexedSeq((1, 0), (2, 1), (3, 2), (3, 0)))
    assertEquals(layout.bends(3).size, 2)
  }

  test("a thousand operators, in a row, as a bush, and as a dense graph, within half a second each") {
    val random = new Random(3)
    val shapes = Seq(
      (1 until 2000).map(i => (i, i - 1)),
      (1 until 2000).map(i => (i, (i - 1) / 2)),
      (1 until 500).flatMap(i => Seq.fill(4)((i, random.nextInt(i)))).distinct)
    shapes.foreach(edges => drawn(2000, edges.toIndexedSeq))
    shapes.foreach { edges =>
      val began = System.nanoTime()
      val layout = drawn(2000, edges.toIndexedSeq)
      val millis = (System.nanoTime() - began) / 1000000
      inside(layout)
      assert(millis < 500, s"$millis ms")
    }
  }

  test("what a plan says cannot become markup, and those who cannot see are told") {
    val evil = "<script>alert('x')</script>"
    val box = Box("b", Seq(evil, "3 rows"), "R1", "", "▼ loaded", "read", idle = false, evil, "")
    val svg =
      Picture("p", "Plan of query 1", "see the table", IndexedSeq(box, box), IndexedSeq(Arrow(1, 0, evil, kept = true)))
    val text = svg.toString
    assert(!text.contains("<script"), text)
    assert(text.contains("role=\"img\"") && text.contains("aria-labelledby=\"p-title p-desc\""))
    assertEquals((svg \\ "title").head.text, "Plan of query 1")
  }
}
