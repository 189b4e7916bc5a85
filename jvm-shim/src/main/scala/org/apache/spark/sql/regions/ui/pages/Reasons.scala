package org.apache.spark.sql.regions.ui.pages

import java.io.InputStreamReader
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Properties

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.regions.ui.Trees._

/** What a reason code means, in a sentence; `reasons.properties` is generated from spark_regions/reasons.py. */
private[pages] object Reasons {
  private lazy val sentences: Map[String, String] = {
    val loaded = new Properties()
    Option(getClass.getResourceAsStream("/org/apache/spark/sql/regions/ui/reasons.properties")).foreach { stream =>
      try loaded.load(new InputStreamReader(stream, UTF_8))
      finally stream.close()
    }
    loaded.asScala.toMap
  }

  def all: ObjectNode = record(sentences.toSeq: _*)

  /** Empty for a code that this version does not know. */
  def sentence(code: String): String = sentences.getOrElse(code, "")
}
