package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.classic
import org.apache.spark.sql.internal.SQLConf

/** The settings of a session that can change what a plan returns, as one digest. */
private[regions] object ResultConfs {

  // Whatever is not here counts, so that an unknown setting costs a hit and never a wrong row.
  private val neutral = Seq(
    "spark.sql.adaptive.",
    "spark.sql.artifact.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.cartesianProductExec.",
    "spark.sql.catalogImplementation",
    "spark.sql.cbo.",
    "spark.sql.codegen.",
    "spark.sql.columnNameLengthThreshold",
    "spark.sql.constraintPropagation.enabled",
    "spark.sql.debug.maxToStringFields",
    "spark.sql.defaultSizeInBytes",
    "spark.sql.event.truncate.length",
    "spark.sql.execution.arrow.localRelationThreshold",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.execution.arrow.pyspark.fallback.enabled",
    "spark.sql.execution.arrow.pyspark.selfDestruct.enabled",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.execution.broadcastHashJoin.outputPartitioningExpandLimit",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled",
    "spark.sql.execution.python.udf.maxRecordsPerBatch",
    "spark.sql.execution.rangeExchange.",
    "spark.sql.execution.reuseSubquery",
    "spark.sql.execution.topKSortFallbackThreshold",
    "spark.sql.exchange.reuse",
    "spark.sql.extendedExplainProviders",
    "spark.sql.extensions",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.maxRecordsPerFile",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.hive.filesourcePartitionFileCacheSize",
    "spark.sql.hive.metastorePartitionPruning",
    "spark.sql.hive.manageFilesourcePartitions",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.inMemoryTableScanStatistics.enable",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.leafNodeDefaultParallelism",
    "spark.sql.limit.",
    "spark.sql.maxMetadataStringLength",
    "spark.sql.maxPlanStringLength",
    "spark.sql.metadataCacheTTLSeconds",
    "spark.sql.optimizer.dynamicPartitionPruning.",
    "spark.sql.optimizer.maxIterations",
    "spark.sql.optimizer.inSetConversionThreshold",
    "spark.sql.optimizer.inSetSwitchThreshold",
    "spark.sql.optimizer.metadataOnly",
    "spark.sql.optimizer.runtime.",
    "spark.sql.orc.columnarReaderBatchSize",
    "spark.sql.orc.compression.codec",
    "spark.sql.orc.enableVectorizedReader",
    "spark.sql.orc.filterPushdown",
    "spark.sql.parquet.columnarReaderBatchSize",
    "spark.sql.parquet.compression.codec",
    "spark.sql.parquet.enableVectorizedReader",
    "spark.sql.parquet.filterPushdown",
    "spark.sql.parquet.recordLevelFilter.enabled",
    "spark.sql.planChangeLog.",
    "spark.sql.planChangeValidation",
    "spark.sql.lightweightPlanChangeValidation",
    "spark.sql.pyspark.",
    "spark.sql.redaction.",
    "spark.sql.repl.eagerEval.",
    "spark.sql.requireAllClusterKeysForCoPartition",
    "spark.sql.shuffle.partitions",
    "spark.sql.shuffledHashJoinFactor",
    "spark.sql.sources.bucketing.",
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.sources.parallelPartitionDiscovery.",
    "spark.sql.sources.partitionOverwriteMode",
    "spark.sql.statistics.",
    "spark.sql.streaming.",
    "spark.sql.subexpressionElimination.",
    "spark.sql.ui.",
    "spark.sql.warehouse.dir",
    "spark.sql.windowExec."
  )

  // Regarded by their effective value, set or not: their defaults come from the JVM or from an environment variable.
  private val effective = Set("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")

  private def always(conf: SQLConf): Seq[String] =
    Seq("ansi", conf.ansiEnabled.toString, "zone", conf.sessionLocalTimeZone, "case",
      conf.caseSensitiveAnalysis.toString)

  def seed(session: classic.SparkSession): String = {
    val conf = session.sessionState.conf
    val minor = org.apache.spark.SPARK_VERSION.split('.').take(2).mkString(".")
    val set = conf.getAllConfs.iterator
      .filter { case (key, value) => key.startsWith("spark.sql.") && counts(key) && !isDefault(key, value) }
      .toSeq
      .sorted
      .flatMap { case (key, value) => Seq(key, value) }
    Digest.of("confs", (minor +: always(conf)) ++ set)
  }

  private def counts(key: String): Boolean =
    !effective.contains(key) && !neutral.exists(entry =>
      if (entry.endsWith(".")) key.startsWith(entry) else key == entry)

  private lazy val defaults: Map[String, String] =
    new SQLConf().getAllDefinedConfs.iterator.map { case (key, value, _, _) => key -> value }.toMap

  private def isDefault(key: String, value: String): Boolean = defaults.get(key).contains(value)
}
