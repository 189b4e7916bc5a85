package org.apache.spark.sql.regions.ui.pages

import java.nio.charset.StandardCharsets.UTF_8
import java.time.ZoneId

import scala.xml.{NodeSeq, Unparsed}

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.SparkMinor
import org.apache.spark.sql.regions.ui.Trees._

/**
 * What every page is: its JSON in a block, and the scripts of spark_regions/reports/view that draw it. All stands in the page, for a
 * jar from spark.jars cannot serve files to Spark's UI, and nothing is fetched from elsewhere.
 */
private[pages] object View {
  private lazy val style = resource("view/regions.css")
  private lazy val code = resource("view/files.txt").linesIterator.map(file => resource(s"view/$file")).mkString

  /** @param data of the page, or why there is none */
  def apply(page: String, root: String, data: Either[Throwable, ObjectNode]): NodeSeq = {
    val shell = record(
      "page" -> page,
      "root" -> root,
      "zone" -> ZoneId.systemDefault.getId,
      "reasons" -> Reasons.all,
      "data" -> data.toOption,
      "failed" -> data.left.toOption.map(_.toString)
    )
    val nonce = SparkMinor.scriptNonce
    <style>{Unparsed(style)}</style>
    <div id="regions-view"><noscript>This page is drawn by its script; its JSON is beside it, at json.</noscript></div>
    <script nonce={nonce} type="application/json" id="regions-data">{Unparsed(inScript(shell.toString))}</script>
    <script nonce={nonce}>{Unparsed(code)}</script>
  }

  /** No text can end the block, or begin a comment in it. */
  private[pages] def inScript(json: String): String = json.replace("<", "\\u003c")

  def resource(name: String): String = {
    val stream = getClass.getResourceAsStream(s"/org/apache/spark/sql/regions/ui/$name")
    try new String(stream.readAllBytes(), UTF_8)
    finally stream.close()
  }
}
