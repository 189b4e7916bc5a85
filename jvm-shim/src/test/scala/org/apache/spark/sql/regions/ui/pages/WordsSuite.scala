package org.apache.spark.sql.regions.ui.pages

/** What boxes say of operators, and figures as people read them. */
class WordsSuite extends munit.FunSuite {

  test("an operator's second line says what it does") {
    def said(label: String): String = OperatorWords(label.takeWhile(_ != ' '), label)
    assertEquals(said("Join Inner, (k#1L = m#22)"), "inner, k = m")
    assertEquals(said("Join LeftSemi, ((a#1 <=> b#2) AND (c#3 = d#4))"), "leftsemi, (a <=> b) AND (c = d)")
    assertEquals(said("Join Cross"), "cross")
    assertEquals(said("Aggregate [k#1L, m#2], [k#1L, count(1) AS c#3L]"), "by k, m")
    assertEquals(said("Aggregate [count(1) AS c#3L]"), "over all rows")
    assertEquals(said("Filter (isnotnull(k#1L) AND (k#1L > 3))"), "k > 3")
    assertEquals(said("Filter ((isnotnull(a#1) AND ((a#1 > 3) AND (b#2 < 1))) AND isnotnull(b#2))"), "a > 3 AND b < 1")
    assertEquals(said("Filter isnotnull(k#1L)"), "isnotnull(k)")
    assertEquals(said("Sort [k#1 ASC NULLS FIRST, m#2 DESC NULLS LAST], true"), "k ASC, m DESC")
    assertEquals(said("GlobalLimit 100"), "100 rows")
    Seq("Project [k#1]", "Union false, false", "Filter", "Join", "Aggregate", "Filter (((", "Filter )").foreach(said)
    assertEquals(OperatorWords("Scan parquet lineitem", "Relation [a#1] parquet"), "")
  }

  test("bytes and times have three or four digits") {
    import Html._
    assertEquals(
      Seq(0.0, 591, 1036.2 * 1024, 1995, 135000, 999.7 * 1024, 119959552, 3e18).map(shownBytes),
      Seq("0 B", "591 B", "1.0 MiB", "1.9 KiB", "132 KiB", "1.0 MiB", "114 MiB", "2665 PiB")
    )
    assertEquals(Seq(2551.0, 20, 603).map(shownMillis), Seq("2.6 s", "20 ms", "0.6 s"))
    assertEquals(
      Seq("rssBytes" -> "119959552", "startupMillis" -> "1076", "ttl" -> "604800000ms", "max" -> "10737418240b",
        "hits" -> "27", "dir" -> "/tmp").map { case (name, value) => shownValue(name, value) },
      Seq("114 MiB", "1.1 s", "7 d", "10.0 GiB", "27", "/tmp")
    )
  }
}
