package org.apache.spark.sql.regions

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging

/** Keeps our failures ours: one warning each, and the caller's fall-back. `spark.regions.strict` raises them instead. */
object Guard extends Logging {
  private val warned = ConcurrentHashMap.newKeySet[String]()

  /** LinkageError is not NonFatal, yet is what a vendor's changed class path brings. */
  def isOurs(error: Throwable): Boolean = error match {
    case _: LinkageError => true
    case NonFatal(_) => true
    case _ => false
  }

  def apply[T](conf: SparkConf, where: String, otherwise: => T)(body: => T): T =
    try body
    catch {
      case error: Throwable if isOurs(error) =>
        warnOnce(where, error)
        if (RegionsConf.isStrict(conf)) throw error
        otherwise
    }

  def run(conf: SparkConf, where: String)(body: => Unit): Unit = apply(conf, where, ())(body)

  def warnOnce(where: String, error: Throwable): Unit = {
    if (warned.size > 1000) warned.clear()
    if (warned.add(s"$where: ${error.getClass.getName}")) {
      logWarning(s"spark_regions failed in $where; the job goes on without it", error)
    }
  }
}
