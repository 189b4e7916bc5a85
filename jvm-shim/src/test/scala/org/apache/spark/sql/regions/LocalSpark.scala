package org.apache.spark.sql.regions

import java.nio.file.Files

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.sql.{SparkSessionExtensions, classic}

/** One context for all suites of a JVM, since a second one would need the first one's end; to each its own session. */
object LocalSpark {
  private lazy val context: SparkContext = {
    val sc = SparkContext.getOrCreate(
      new SparkConf()
        .setMaster("local[2,4]")
        .setAppName("tests")
        .set("spark.ui.enabled", "false")
        .set("spark.sql.warehouse.dir", Files.createTempDirectory("warehouse").toString)
        .set("spark.hadoop.fs.full.impl", classOf[exec.FullFileSystem].getName))
    sc.setLogLevel("OFF")
    sc
  }

  def session(extend: SparkSessionExtensions => Unit, confs: (String, String)*): classic.SparkSession = {
    context
    classic.SparkSession.clearActiveSession()
    classic.SparkSession.clearDefaultSession()
    val builder = classic.SparkSession.builder()
      .config("spark.sql.shuffle.partitions", "3")
      .config("spark.sql.planChangeValidation", "true")
      // Tests sign what they have just written; the rule for young files has a suite of its own.
      .config("spark.regions.sources.racySeconds", "0")
      .withExtensions(extend)
    confs.foreach { case (key, value) => builder.config(key, value) }
    builder.getOrCreate()
  }

  /** To be called before each suite: the one before may have left another session active. */
  def use(session: classic.SparkSession): Unit = {
    classic.SparkSession.setActiveSession(session)
    classic.SparkSession.setDefaultSession(session)
  }
}
