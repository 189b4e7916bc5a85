package org.apache.spark.sql.regions

import java.util.Properties

import org.apache.spark.{SPARK_VERSION, SparkContext}

/** This jar: which version, for which Spark, and where it lies. */
object Shim {
  private val properties: Properties = {
    val loaded = new Properties()
    val stream = getClass.getResourceAsStream("/org/apache/spark/sql/regions/shim.properties")
    try loaded.load(stream)
    finally stream.close()
    loaded
  }

  val version: String = properties.getProperty("version")
  val sparkMinor: String = properties.getProperty("spark.minor")

  /** The shim links against one minor version's internals. */
  def unfit: Option[Refusal] = unfit(SPARK_VERSION)

  def unfit(running: String): Option[Refusal] =
    if (running.startsWith(sparkMinor + ".")) None
    else Some(Refusal("WRONG_SPARK",
        s"this jar is for Spark $sparkMinor, found $running. " +
          "Hint: python -m spark_regions jar prints the jar for the installed PySpark"))

  /** The file or folder that our classes come from. */
  def location: Option[String] =
    Option(getClass.getProtectionDomain.getCodeSource).map(_.getLocation.toURI.getPath)

  /** Executors run our operators; a jar on the driver's class path alone does not reach them. */
  def addToExecutors(sc: SparkContext): Unit = if (!sc.isLocal) {
    location.filter(_.endsWith(".jar")).foreach { path =>
      val name = path.split('/').last
      if (!(sc.jars ++ sc.listJars()).exists(_.split('/').last == name)) sc.addJar(path)
    }
  }
}
