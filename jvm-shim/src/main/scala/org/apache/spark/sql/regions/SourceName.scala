package org.apache.spark.sql.regions

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** A source by the name of its table, or of its first file or folder without where that is. */
private[regions] object SourceName {

  def of(plan: LogicalPlan): Option[String] = name(plan).map(found => s"Scan $found")

  private def name(plan: LogicalPlan): Option[String] = plan match {
    case source: LogicalRelation if source.catalogTable.isDefined =>
      source.catalogTable.map(_.identifier.unquotedString)
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      val paths = files.location.rootPaths
      val more = if (paths.length > 1) s" and ${paths.length - 1} more" else ""
      paths.headOption.map(first => s"$files ${first.getName}$more")
    case source: HiveTableRelation => Some(source.tableMeta.identifier.unquotedString)
    case source: DataSourceV2Relation => source.identifier.map(_.toString)
    case _ => None
  }
}
