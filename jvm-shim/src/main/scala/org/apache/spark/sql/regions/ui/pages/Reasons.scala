package org.apache.spark.sql.regions.ui.pages

import java.io.StringReader
import java.util.Properties

import scala.jdk.CollectionConverters._

/** What a reason code means, in a sentence; `reasons.properties` is generated from spark_regions/reasons.py. */
private[pages] object Reasons {
  lazy val all: Map[String, String] = {
    val loaded = new Properties()
    loaded.load(new StringReader(View.resource("reasons.properties")))
    loaded.asScala.toMap
  }

  /** Empty for a code that this version does not know. */
  def sentence(code: String): String = all.getOrElse(code, "")
}
