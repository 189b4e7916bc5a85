package org.apache.spark.sql.regions.rules

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.regions.BoundedMap
import org.apache.spark.util.ThreadUtils

/** How many rows Parquet files have, as their footers say: with filters pushed into it, a scan does not tell. For estimates. */
private[rules] object FileRows extends Logging {
  private val mostFiles = 64
  private val threads = 8
  private val counted = BoundedMap[(String, Long, Long), java.lang.Long](20000)

  /** None where there are too many files to look into, or one of them cannot be read. */
  def apply(session: SparkSession, relation: LogicalRelation): Option[Long] = relation.relation match {
    case source: HadoopFsRelation if source.fileFormat.isInstanceOf[ParquetFileFormat] =>
      val conf = session.sessionState.newHadoopConfWithOptions(source.options)
      try {
        val files = source.location.listFiles(Nil, Nil).flatMap(_.files).map(_.fileStatus)
        Option.when(files.size <= mostFiles)(ThreadUtils.parmap(files, "regions-rows", threads)(rows(conf, _)).sum)
      } catch {
        case NonFatal(e) =>
          logWarning(s"the rows of ${relation.relation} are not known: $e")
          None
      }
    case _ => None
  }

  private def rows(conf: Configuration, file: FileStatus): Long = {
    val key = (file.getPath.toString, file.getLen, file.getModificationTime)
    Option(counted.get(key)).fold {
      val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, conf))
      val found =
        try reader.getRecordCount
        finally reader.close()
      counted.put(key, found)
      found
    }(_.longValue)
  }
}
