package org.apache.spark.sql.regions.rules

import java.io.File
import java.util.Base64

import scala.jdk.OptionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.regions.{BoundedMap, Planner, Refusal, wire}

/**
 * Asks the planner for the digests of Python functions, each once: PySpark keeps the pickled function as long as the user keeps
 * the UDF.
 */
final class PlannerUdfDigests(sc: SparkContext, planner: Planner, deadlineMillis: () => Long) extends UdfDigests {
  import PlannerUdfDigests._

  private val known = BoundedMap[String, Either[Refusal, String]](limit, byUse = true)

  private lazy val roots: Seq[String] = sourceRoots(sc)

  override def digest(functions: Seq[PythonFunction]): Map[String, Either[Refusal, String]] = {
    val byKey = functions.map(f => UdfDigests.key(f) -> f).toMap
    val missing = byKey.filterNot { case (key, _) => known.containsKey(key) }
    if (missing.isEmpty) byKey.map { case (key, _) => key -> known.get(key) }
    else {
      planner.request(question(missing), deadlineMillis()) match {
        case Left(refusal) => byKey.map { case (key, _) => key -> Option(known.get(key)).getOrElse(Left(refusal)) }
        case Right(answer) =>
          missing.keys.foreach { key =>
            val found = answer.digests.get(key)
            val why = found.flatMap(_.refusal).getOrElse(wire.Why("UDF_UNREADABLE"))
            known.put(key, found.flatMap(_.digest).toRight(Refusal(why.code, why.detail)))
          }
          byKey.map { case (key, _) => key -> known.get(key) }
      }
    }
  }

  private def question(functions: Map[String, PythonFunction]): wire.DigestFunctions = wire.DigestFunctions(
    functions.toSeq.sortBy(_._1).map { case (key, f) =>
      wire.PickledFunction(key, Base64.getEncoder.encodeToString(f.command.toArray), f.pythonVer, hashSeed(f))
    },
    roots
  )
}

private object PlannerUdfDigests {
  val limit = 1000

  /** PYTHONHASHSEED of the workers, by which sets of text are ordered; empty where it is not known. */
  def hashSeed(function: PythonFunction): String =
    Option(function.envVars.get("PYTHONHASHSEED")).orElse(sys.env.get("PYTHONHASHSEED")).getOrElse("")

  /** Where modules of the user's own can lie: beside the script, in the working directory, on PYTHONPATH, in py-files. */
  def sourceRoots(sc: SparkContext): Seq[String] = {
    val commands = sys.props.get("sun.java.command").toSeq.flatMap(_.split(' ')) ++
      ProcessHandle.current().parent().toScala.toSeq.flatMap(_.info().arguments().toScala.toSeq.flatten)
    val scripts = commands.filter(_.endsWith(".py")).map(new File(_)).filter(_.isFile).map(_.getAbsoluteFile.getParent)
    val paths = sys.env.get("PYTHONPATH").toSeq.flatMap(_.split(File.pathSeparatorChar)).filter(_.nonEmpty)
    val shipped = sc.getConf.getOption("spark.submit.pyFiles").toSeq.flatMap(_.split(',')).filter(_.nonEmpty)
    (scripts ++ Seq(new File("").getAbsolutePath) ++ paths ++ shipped).distinct
  }
}
