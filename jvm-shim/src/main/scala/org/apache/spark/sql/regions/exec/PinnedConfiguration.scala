package org.apache.spark.sql.regions.exec

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetInputFormat

import org.apache.spark.sql.internal.SQLConf

/**
 * What our files are read with. Spark's reader copies the session's Parquet confs into the configuration that it is
 * given; those that decide what the bytes mean must be the ones that the files were written for (with `binaryAsString`,
 * a stored variant cannot be read at all).
 */
private[exec] final class PinnedConfiguration(base: Configuration) extends Configuration(base) {
  PinnedConfiguration.values.foreach { case (key, value) => super.set(key, value, null) }

  override def set(name: String, value: String, source: String): Unit =
    super.set(name, PinnedConfiguration.values.getOrElse(name, value), source)
}

private[exec] object PinnedConfiguration {
  private val values: Map[String, String] = Map(
    // Damage that the file's length and time do not show becomes an error instead of other rows.
    ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED -> "true",
    SQLConf.PARQUET_BINARY_AS_STRING.key -> "false",
    SQLConf.PARQUET_INT96_AS_TIMESTAMP.key -> "true",
    SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED.key -> "true",
    SQLConf.LEGACY_PARQUET_NANOS_AS_LONG.key -> "false",
    SQLConf.PARQUET_FIELD_ID_READ_ENABLED.key -> "false",
    SQLConf.CASE_SENSITIVE.key -> "true"
  )
}
