package org.apache.spark.sql.regions

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path, PathFilter}

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.util.HadoopFSUtils.parallelListLeafFiles

private[regions] trait ShimFiles {
  def leafFiles(sc: SparkContext, roots: Seq[Path], conf: Configuration, filter: PathFilter)(
      options: Map[String, String]): Seq[FileStatus] =
    parallelListLeafFiles(sc, roots, conf, filter, false, ignoreLocality = true, Int.MaxValue, 1).flatMap(_._2)

  def oneTask(scan: FileSourceScanExec): Boolean = false
}
