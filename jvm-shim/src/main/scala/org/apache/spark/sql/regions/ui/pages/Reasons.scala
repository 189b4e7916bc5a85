package org.apache.spark.sql.regions.ui.pages

import java.io.StringReader
import java.util.Properties

import scala.jdk.CollectionConverters._

/** What each reason code that this version knows means, in a sentence; `reasons.properties` is generated from spark_regions/reasons.py. */
private[pages] object Reasons {
  lazy val all: Map[String, String] = {
    val loaded = new Properties()
    loaded.load(new StringReader(View.resource("reasons.properties")))
    loaded.asScala.toMap
  }
}
