package org.apache.spark.sql.regions.bridge

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.util.control.NonFatal

import org.apache.spark.SparkConf
import org.apache.spark.sql.regions.RegionsConf

/** Which Python runs the planner, and the engines. */
object PlannerPython {

  /** -P keeps the job's working folder, with its `queue.py` or `types.py`, off the planner's module path. */
  def command(
      conf: SparkConf,
      environment: Map[String, String] = sys.env,
      module: String = "spark_regions.planner"): Seq[String] = Seq(executable(conf, environment), "-P", "-m", module)

  def executable(conf: SparkConf, environment: Map[String, String], parent: => Option[String] = parentPython): String =
    (conf.get(RegionsConf.plannerPython) match {
      case "" =>
        // PYSPARK_DRIVER_PYTHON is often a front end such as jupyter, which has no -m.
        Seq(
          environment.get("PYSPARK_DRIVER_PYTHON"),
          environment.get("PYSPARK_PYTHON"),
          conf.getOption("spark.pyspark.driver.python"),
          conf.getOption("spark.pyspark.python")
        )
          .flatten.map(_.trim).find(isPython).orElse(parent)
      case given => Some(given)
    }).getOrElse("python3")

  private def isPython(command: String): Boolean = {
    val name = command.split('/').last
    name.startsWith("python") || name.startsWith("pypy")
  }

  /**
   * The Python that launched this driver, as `python job.py` does. Its first argument, unlike the executable that the
   * operating system names, leads into its virtual environment.
   */
  private def parentPython: Option[String] =
    try {
      val parent = ProcessHandle.current().parent()
      if (!parent.isPresent) None
      else {
        val line = Files.readAllBytes(Paths.get(s"/proc/${parent.get.pid}/cmdline"))
        Some(new String(line, UTF_8).split('\u0000').head).filter(first => first.startsWith("/") && isPython(first))
      }
    } catch { case NonFatal(_) => None }
}
