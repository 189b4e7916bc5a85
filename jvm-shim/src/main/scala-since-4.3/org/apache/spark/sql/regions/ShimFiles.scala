package org.apache.spark.sql.regions

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path, PathFilter}

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.util.HadoopFSUtils.parallelListLeafFiles

private[regions] trait ShimFiles {

  /** No threshold: a listing must not start a Spark job while a query is being planned. */
  def leafFiles(sc: SparkContext, roots: Seq[Path], conf: Configuration, filter: PathFilter)(
      options: Map[String, String]): Seq[FileStatus] = {
    val ignored = new FileSourceOptions(options).ignoredPathSegmentRegexPattern
    parallelListLeafFiles(sc, roots, conf, filter, false, ignored, ignoreLocality = true, Int.MaxValue, 1).flatMap(_._2)
  }

  /** Whether one task reads all files of the scan. */
  def oneTask(scan: FileSourceScanExec): Boolean = scan.markedForSingleTaskExecution
}
