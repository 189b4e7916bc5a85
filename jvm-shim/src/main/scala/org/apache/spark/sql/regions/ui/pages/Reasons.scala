package org.apache.spark.sql.regions.ui.pages

import java.io.InputStreamReader
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Properties

/** What a reason code means, in a sentence; `reasons.properties` is generated from spark_regions/reasons.py. */
private[pages] object Reasons {
  private lazy val sentences: Properties = {
    val loaded = new Properties()
    Option(getClass.getResourceAsStream("/org/apache/spark/sql/regions/ui/reasons.properties")).foreach { stream =>
      try loaded.load(new InputStreamReader(stream, UTF_8))
      finally stream.close()
    }
    loaded
  }

  /** The sentence of a code with what is special here, as far as there are any. */
  def told(code: String, detail: String): String = Seq(sentence(code), detail).filter(_.nonEmpty).mkString(": ")

  /** Empty for a code that this version does not know. */
  def sentence(code: String): String = sentences.getProperty(code, "")
}
