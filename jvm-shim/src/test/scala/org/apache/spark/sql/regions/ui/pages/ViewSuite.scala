package org.apache.spark.sql.regions.ui.pages

import scala.xml.NodeSeq

import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.sql.regions.ui.Trees._

/** The shell that the view's scripts find their page in. */
class ViewSuite extends munit.FunSuite {

  private def block(made: NodeSeq): String =
    (made \\ "script").find(script => (script \ "@id").text == "regions-data").get.text

  test("the block has the page's JSON, and nothing in it can end it") {
    val evil = "</script><script>alert('x')</script><!--"
    val made =
      View("cache", "/history/app-1", Right(record("entries" -> Seq(record("operator" -> evil)), "unknown" -> None)))
    assert(!block(made).contains("<"), block(made))
    val shell = Frames.json.readTree(block(made))
    assertEquals((shell.get("page").asText, shell.get("root").asText), ("cache", "/history/app-1"))
    assertEquals(shell.at("/data/entries/0/operator").asText, evil)
    assert(shell.at("/data/unknown").isNull && shell.get("failed").isNull)
    assertEquals(shell.at("/reasons/TOO_CHEAP").asText, Reasons.all("TOO_CHEAP"))
  }

  test("a page without data says why") {
    val shell = Frames.json.readTree(block(View("graph", "", Left(new ClassCastException("no <tree>")))))
    assertEquals(shell.get("failed").asText, "java.lang.ClassCastException: no <tree>")
    assert(shell.get("data").isNull)
  }

  test("the scripts are there, in their order, and none of them ends its element") {
    val code = (View("", "", Right(record())) \\ "script").last.text
    val parts = Seq(
      "view.layered = ", "view.picture = ", "view.plan = ", "pages.cache = ", "view.pages.execution = ", "shell.failed")
    val places = parts.map(code.indexOf(_))
    assert(places.forall(_ > 0) && places == places.sorted, places.toString)
    assert(!code.contains("</") && !code.contains("<!--"))
  }
}
