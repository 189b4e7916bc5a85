package org.apache.spark.sql.regions.exec

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.parquet.io.OutputFile

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{Refusal, SparkMinor}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * How long a task may write.
 *
 * @param share of the work that the query does anyway
 * @param priorNanos a partition's part of the work of earlier stages
 */
private[exec] final case class Allowance(share: Double, priorNanos: Long) {
  def exceeded(written: Long, others: Long): Boolean =
    written > Allowance.graceNanos && written > share * (others + priorNanos)
}

private[exec] object Allowance {
  // The first rows pay for class loading and compilation.
  val graceNanos: Long = 300L * 1000 * 1000
}

/**
 * What a task needs in order to write. The driver serializes it for every stage that it submits; once the run has
 * ended, or has every partition, what arrives in the tasks is [[TeeSpec.off]] and rows pass untouched. So a second
 * action on the same DataFrame, or the real pass after a range partitioner's sampling pass, does not write again.
 */
private[exec] final class TeeSpec(
    val location: String,
    val conf: SerializableConfiguration,
    val maxBytes: Long,
    val allowance: Option[Allowance],
    @transient private val run: StoreRun)
    extends Serializable {
  def active: Boolean = conf != null

  private def writeReplace(): AnyRef = if (run == null || run.writing) this else TeeSpec.off
}

private[exec] object TeeSpec {
  val off: TeeSpec = new TeeSpec("", null, 0L, None, null)

  /** Everything that shapes the file is set here, so that no conf of the session or cluster changes what is stored. */
  def conf(base: Configuration, schema: StructType): Configuration = {
    val conf = new Configuration(base)
    ParquetWriteSupport.setSchema(StorableTypes.physical(schema), conf)
    conf.unset(ParquetWriteSupport.SPARK_VARIANT_SHREDDING_SCHEMA)
    conf.set(SQLConf.PARQUET_WRITE_LEGACY_FORMAT.key, "false")
    conf.set(SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE.key, "TIMESTAMP_MICROS")
    conf.set(SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED.key, "false")
    conf.set("parquet.compression.codec.zstd.level", "1")
    conf.set(SparkMinor.variantAnnotation, "false")
    conf
  }
}

/** Writes the rows of one pass over one partition. A fault here ends the storing, never the task. */
private[exec] final class TeeWriter(
    spec: TeeSpec,
    reports: StoreReports,
    partition: Int,
    context: TaskContext,
    writeTime: SQLMetric)
    extends Logging {
  import TeeWriter._

  private var writer: ParquetWriter[InternalRow] = _
  private var fs: FileSystem = _
  private var path: Path = _
  private var rows = 0L
  private var nanos = 0L
  private var quick = 0L
  private var quickNanos = 0L
  private var done = false
  private val began = System.nanoTime()

  // Runs before the listeners of the child, which were registered earlier and free what its rows point into.
  context.addTaskCompletionListener[Unit] { _ =>
    stop(Refusal("PARTIAL_CONSUMPTION", s"partition $partition was not read to its end"))
  }

  // Synchronized, because a Python operator reads its input on another thread than the one that ends the task.
  def write(row: InternalRow): Unit = synchronized {
    if (!done) {
      try {
        if (writer == null) open()
        if ((rows & sampleMask) == sampleMask) {
          val start = System.nanoTime()
          writer.write(row)
          sampled(System.nanoTime() - start)
        } else writer.write(row)
        rows += 1
        if ((rows & checkMask) == 0) {
          checkBudget()
          checkAllowance()
        }
      } catch { case Failures(error) => fault(error) }
    }
  }

  /** The child's iterator is exhausted. */
  def finish(): Unit = synchronized {
    if (!done) {
      try {
        if (writer == null) report("", 0L, None)
        else {
          val start = System.nanoTime()
          writer.close()
          nanos += System.nanoTime() - start
          writer = null
          report(path.getName, fs.getFileStatus(path).getLen, None)
        }
        done = true
      } catch { case Failures(error) => fault(error) }
    }
  }

  private def open(): Unit = {
    val conf = spec.conf.value
    val directory = new Path(spec.location)
    fs = StoreFiles.system(directory, conf)
    // The driver made the directory: it is missing on a node that does not share it, or after the run was given up.
    if (!fs.exists(directory)) {
      stop(Refusal("STORE_NOT_SHARED", s"$directory does not exist where a task runs"))
      throw Stopped
    }
    path = new Path(directory, f"part-$partition%05d-${UUID.randomUUID()}.parquet")
    val sqlConf = new SQLConf()
    sqlConf.setConfString(SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key, "CORRECTED")
    sqlConf.setConfString(SQLConf.PARQUET_INT96_REBASE_MODE_IN_WRITE.key, "CORRECTED")
    writer = SQLConf.withExistingConf(sqlConf) {
      new Rows(HadoopOutputFile.fromPath(path, conf))
        .withConf(conf)
        .withCompressionCodec(codec)
        .withRowGroupSize(rowGroupBytes)
        .withPageWriteChecksumEnabled(true)
        .build()
    }
    StoreFiles.restrictFile(fs, path)
  }

  // Buffered rows count before compression, so this is only the brake; the driver judges by the files' sizes.
  private def checkBudget(): Unit =
    if (writer.getDataSize > spec.maxBytes + rowGroupBytes) {
      stop(Refusal("OVER_BUDGET", s"partition $partition alone exceeds ${spec.maxBytes} bytes"))
    }

  // A page that is compressed, a collection, a class that is loaded: the sampled row met it, the 31 others did not.
  private def sampled(took: Long): Unit =
    if (took <= slowRowNanos) {
      quick += 1
      quickNanos += took
      nanos += took * (sampleMask + 1)
    } else nanos += took + (if (quick > 0) quickNanos / quick * sampleMask else 0L)

  private def checkAllowance(): Unit = spec.allowance.foreach { allowance =>
    val others = System.nanoTime() - began - nanos
    if (!done && allowance.exceeded(nanos, others)) {
      stop(Refusal("NOT_WORTH_WRITING", f"${nanos / 1e9}%.2f s written in ${(others + nanos) / 1e9}%.2f s of a task"))
    }
  }

  private def fault(error: Throwable): Unit = if (deleted)
    stop(Refusal("WRITE_FAILED", s"${spec.location} was deleted"))
  else if (error ne Stopped) {
    logWarning(s"Storing partition $partition in ${spec.location} failed; the query goes on without it", error)
    stop(Refusal("WRITE_FAILED", Failures.text(error)))
  }

  /** The driver deletes what it has given up, while other tasks may still be writing: no fault, and nothing to warn of. */
  private def deleted: Boolean =
    try path != null && !fs.exists(path.getParent)
    catch { case Failures(_) => false }

  private def stop(problem: Refusal): Unit = synchronized {
    if (!done) {
      done = true
      if (writer != null) {
        try writer.close()
        catch { case Failures(_) => }
        writer = null
      }
      if (path != null) {
        try fs.delete(path, false)
        catch { case Failures(_) => }
      }
      report("", 0L, Some(problem))
    }
  }

  private def report(file: String, bytes: Long, problem: Option[Refusal]): Unit = {
    writeTime += nanos
    reports.add(
      PartitionReport(
        partition, context.stageAttemptNumber(), context.attemptNumber(), file, rows, bytes, nanos, problem))
  }
}

private[exec] object TeeWriter {
  val rowGroupBytes: Long = 32L << 20
  // At level 1: as quick to encode and to read as Snappy here, a third fewer bytes of a byte budget.
  val codec: CompressionCodecName = CompressionCodecName.ZSTD
  private val sampleMask = 31L
  private val checkMask = 1023L
  private val slowRowNanos = 50L * 1000

  private object Stopped extends RuntimeException(null, null, false, false)

  private final class Rows(file: OutputFile) extends ParquetWriter.Builder[InternalRow, Rows](file) {
    override protected def self(): Rows = this
    override protected def getWriteSupport(conf: Configuration): WriteSupport[InternalRow] = new ParquetWriteSupport
  }
}
