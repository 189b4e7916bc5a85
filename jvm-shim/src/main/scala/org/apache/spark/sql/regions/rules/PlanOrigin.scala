package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation, PartitioningAwareFileIndex}
import org.apache.spark.sql.regions.exec.PlanShape

/**
 * All that plain Spark's physical plan of a query depends on, as a digest: the optimized plan, its sources with their files and
 * statistics, and the settings. Equal digests mean equal physical plans; to find one takes a fraction of planning.
 */
private[regions] object PlanOrigin {

  /** Of a part of a query; None where a source is of a kind that is not known to be told completely. */
  def of(session: SparkSession, part: LogicalPlan, whole: LogicalPlan): Option[String] = {
    val leaves = sources(session, whole)
    if (leaves.exists(_.isEmpty)) None
    else {
      val settings = session.sessionState.conf.getAllConfs.toSeq.filter(_._1.startsWith("spark.sql.")).sorted
      val context = session.sparkContext
      Some(
        Digest.of(
          "origin",
          Seq(SPARK_VERSION, context.master, context.defaultParallelism.toString, told(part), told(whole)) ++
            leaves.flatten ++ settings.map { case (key, value) => s"$key=$value" }
        ))
    }
  }

  private def sources(session: SparkSession, plan: LogicalPlan): Seq[Option[String]] =
    plan.collectLeaves().map(source(session, _)) ++ plan.flatMap(_.subqueries).flatMap(sources(session, _))

  private def source(session: SparkSession, leaf: LogicalPlan): Option[String] = leaf match {
    case relation: LogicalRelation =>
      relation.relation match {
        case files: HadoopFsRelation =>
          files.location match {
            case index: PartitioningAwareFileIndex =>
              val all = index.allFiles()
              // Which files of a partitioned relation are read, and so the splits, is up to filters.
              val asRead =
                if (files.bucketSpec.isDefined || files.partitionSchema.nonEmpty) all
                else PlanShape.asRead(all, PlanShape.splitBytes(session, all))
              val listed = asRead.map { file =>
                s"${if (files.bucketSpec.isEmpty) KnownContents.told(file) else file.getPath} ${file.getLen}"
              }
              val stats = relation.stats
              Some(
                Digest.of(
                  "files",
                  Seq(
                    files.fileFormat.getClass.getName,
                    SourceDigest.telling(files.options).toString,
                    files.bucketSpec.toString,
                    files.partitionSchema.json,
                    s"${stats.sizeInBytes} ${stats.rowCount} ${stats.attributeStats.values}"
                  ) ++
                    listed
                ))
            case _ => None
          }
        case _ => None
      }
    case range: Range => Some(s"${range.start} ${range.end} ${range.step} ${range.numSlices}")
    case local: LocalRelation if !local.isStreaming =>
      val bytes = UnsafeProjection.create(local.output.map(_.dataType).toArray)
      Some(Digest.of("local", local.data.map(row => Digest.ofBytes(bytes(row).getBytes))))
    case _: OneRowRelation => Some("one row")
    case _ => None
  }

  private def told(plan: LogicalPlan): String =
    text(plan.canonicalized.treeString(verbose = true, maxFields = Int.MaxValue))

  /** The text of a plan; numbers that differ from one planning to the next are counted from one. */
  def text(tree: String): String = {
    val numbers = mutable.HashMap.empty[String, Int]
    numbered.replaceAllIn(tree, found => s"#${numbers.getOrElseUpdate(found.matched, numbers.size)}")
  }

  private val numbered = "#[0-9]+|plan_id=[0-9]+".r
}
