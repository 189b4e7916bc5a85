package org.apache.spark.sql.regions.profile

class AttributionSuite extends munit.FunSuite {
  private val scan = "FileSourceScanExec" // weight 0.25
  private val filter = "FilterExec" // 0.05
  private val sort = "SortExec" // 0.4

  private val table: Seq[(String, Double, Seq[StagePart], Seq[Double])] = Seq(
    ("no parts", 3.0, Seq(), Seq()),
    ("no time", 0.0, Seq(StagePart(scan, 10)), Seq(0.0)),
    ("by rows and weights", 6.0, Seq(StagePart(scan, 1000), StagePart(filter, 1000)), Seq(5.0, 1.0)),
    ("exact first, the rest by weight", 10.0,
      Seq(StagePart(scan, 1600), StagePart(sort, 1000, exactSeconds = 2)), Seq(4.0, 6.0)),
    ("a lower bound", 10.0,
      Seq(StagePart(scan, 1000, atLeastSeconds = 9), StagePart(filter, 1000), StagePart(filter, 3000)),
      Seq(9.0, 0.25, 0.75)),
    ("a lower bound that is met anyway", 6.0,
      Seq(StagePart(scan, 1000, atLeastSeconds = 2), StagePart(filter, 1000)), Seq(5.0, 1.0)),
    ("exact time counts towards the bound", 10.0,
      Seq(StagePart(scan, 1000, exactSeconds = 4, atLeastSeconds = 9), StagePart(filter, 1000)), Seq(9.0, 1.0)),
    ("bounds above the whole are scaled", 4.0,
      Seq(StagePart(scan, 1, atLeastSeconds = 6), StagePart(scan, 1, atLeastSeconds = 2)), Seq(3.0, 1.0)),
    ("exact times above the whole are scaled", 3.0,
      Seq(StagePart(sort, 1, exactSeconds = 4), StagePart(sort, 1, exactSeconds = 2), StagePart(scan, 9)),
      Seq(2.0, 1.0, 0.0)),
    ("no rows known: equal parts", 4.0, Seq(StagePart(scan, 0), StagePart(sort, 0)), Seq(2.0, 2.0)),
    ("all at their bounds, something left", 4.0, Seq(StagePart(scan, 0, atLeastSeconds = 3)), Seq(4.0))
  )

  table.foreach { case (name, total, parts, expected) =>
    test(name) {
      val result = Attribution.split(total, parts.toIndexedSeq)
      assertEquals(result.size, expected.size)
      result.zip(expected).foreach { case (is, should) => assertEqualsDouble(is, should, 1e-9) }
    }
  }

  test("learned weights go before fixed ones, and scale what expressions take") {
    val weights = Weights(1.0e9, Map(scan -> 0.7), expressions = 2.0, others = 2.0)
    // 0.7, and twice the fixed 0.05 with twice the 0.1 of expressions
    val parts = IndexedSeq(StagePart(scan, 1000), StagePart(filter, 1000, expressions = 0.1))
    val split = Attribution.split(10.0, parts, weights)
    assertEqualsDouble(split(0), 7.0, 1e-9)
    assertEqualsDouble(split(1), 3.0, 1e-9)
    assertEquals(weights.name, "learned 2001-09-09T01:46:40Z")
    assertEquals(Weights.fixed.name, "fixed")
    assertEquals(Weights.fixed("ArrowEvalPythonExec"), 3.0)
  }

  test("parts always add up and none is below its bound") {
    val random = new scala.util.Random(7)
    (1 to 2000).foreach { _ =>
      val total = random.nextDouble() * 10 + 0.01
      val parts = IndexedSeq.fill(1 + random.nextInt(8))(
        StagePart(
          Seq(scan, filter, sort, "UnionExec")(random.nextInt(4)),
          random.nextInt(1000).toDouble,
          if (random.nextInt(3) == 0) random.nextDouble() else 0,
          if (random.nextInt(3) == 0) random.nextDouble() * 2 else 0
        ))
      val result = Attribution.split(total, parts)
      assertEqualsDouble(result.sum, total, 1e-6)
      assert(result.forall(_ >= -1e-9), result)
      if (parts.map(part => math.max(part.exactSeconds, part.atLeastSeconds)).sum < total) {
        result.zip(parts).foreach { case (is, part) =>
          assert(is >= math.max(part.exactSeconds, part.atLeastSeconds) - 1e-9, s"$part got $is of $total")
        }
      }
    }
  }

  test("the worked example of the comment, in proportion") {
    val parts = IndexedSeq(StagePart(scan, 2000, atLeastSeconds = 6), StagePart(filter, 2000),
      StagePart(sort, 500, exactSeconds = 1))
    assertEquals(Attribution.split(10, parts).map(x => math.round(x * 1000) / 1000.0), IndexedSeq(6.0, 1.0, 3.0))
  }
}
