package org.apache.spark.sql.regions.exec

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.parquet.io.OutputFile

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport
import org.apache.spark.sql.internal.SQLConf

/**
 * A new file of an entry, for the rows of one partition; whoever ends it calls `close` or `discard`.
 *
 * @param conf see [[TeeSpec.conf]]
 */
private[exec] final class EntryFile(location: String, conf: Configuration, partition: Int) {
  private val path = new Path(location, f"part-$partition%05d-${UUID.randomUUID()}.parquet")
  private val fs: FileSystem = StoreFiles.system(path, conf)
  private val writer = EntryFile.opened(path, conf)
  StoreFiles.restrictFile(fs, path)

  def name: String = path.getName
  def write(row: InternalRow): Unit = writer.write(row)

  /** Of the rows so far, before compression. */
  def dataSize: Long = writer.getDataSize

  /** Its length. */
  def close(): Long = {
    writer.close()
    fs.getFileStatus(path).getLen
  }

  def discard(): Unit = {
    try writer.close()
    catch { case Failures(_) => }
    try fs.delete(path, false)
    catch { case Failures(_) => }
  }
}

private[exec] object EntryFile {
  val rowGroupBytes: Long = 32L << 20
  // At level 1: as quick to encode and to read as Snappy here, a third fewer bytes of a byte budget.
  val codec: CompressionCodecName = CompressionCodecName.ZSTD

  def directoryExists(location: String, conf: Configuration): Boolean = {
    val directory = new Path(location)
    StoreFiles.system(directory, conf).exists(directory)
  }

  private def opened(path: Path, conf: Configuration): ParquetWriter[InternalRow] = {
    val sqlConf = new SQLConf()
    sqlConf.setConfString(SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key, "CORRECTED")
    sqlConf.setConfString(SQLConf.PARQUET_INT96_REBASE_MODE_IN_WRITE.key, "CORRECTED")
    SQLConf.withExistingConf(sqlConf) {
      new Rows(HadoopOutputFile.fromPath(path, conf))
        .withConf(conf)
        .withCompressionCodec(codec)
        .withRowGroupSize(rowGroupBytes)
        .withPageWriteChecksumEnabled(true)
        .build()
    }
  }

  private final class Rows(file: OutputFile) extends ParquetWriter.Builder[InternalRow, Rows](file) {
    override protected def self(): Rows = this
    override protected def getWriteSupport(conf: Configuration): WriteSupport[InternalRow] = new ParquetWriteSupport
  }
}
