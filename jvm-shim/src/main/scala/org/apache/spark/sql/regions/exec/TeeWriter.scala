package org.apache.spark.sql.regions.exec

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{Refusal, SparkMinor}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * How long writing may take: of a run with all its tasks, or of one of them.
 *
 * @param share of the work that the query does anyway
 * @param cores so many write at once; a short time of each is always allowed: its first rows pay for class loading and compilation
 * @param priorNanos the work of earlier stages
 * @param spareNanos what the query saves otherwise
 */
private[exec] final case class Allowance(share: Double, cores: Int, priorNanos: Long, spareNanos: Long) {
  private def graceNanos = 300L * 1000 * 1000 * cores

  /** What is spent is spent: `rising` tells whether the rest will be more than the share, too. */
  def exceeded(written: Long, others: Long, rising: => Boolean): Boolean = {
    val most = share * (others + priorNanos) + spareNanos
    written > graceNanos && (written > 2 * most || written > most && rising)
  }

  /** Of each of so many tasks. */
  def each(tasks: Int): Allowance = {
    val parts = math.max(1, tasks)
    Allowance(share, 1, priorNanos / parts, spareNanos / parts)
  }
}

/**
 * What one writer has spent of it, and what in each of the last seconds. One is not enough, as for the first rows.
 */
private final class Spending(allowance: Allowance) {
  import Spending._

  private var (markedWritten, markedOthers) = (0L, 0L)
  private var over = 0

  /** Asked again and again, with the task's nanoseconds so far. */
  def exceeded(written: Long, others: Long): Boolean = {
    val (writtenSince, othersSince) = (written - markedWritten, others - markedOthers)
    if (writtenSince + othersSince >= windowNanos) {
      over = if (writtenSince > allowance.share * othersSince) over + 1 else 0
      markedWritten = written
      markedOthers = others
    }
    allowance.exceeded(written, others, over > 1)
  }
}

private object Spending {
  private val windowNanos = 1000L * 1000 * 1000
}

/**
 * What a task needs in order to write. Rows are held in memory as long as they are few, and go to the driver with the report,
 * which writes them when the query has them. More than `heldBytes` of a partition are written by the task.
 *
 * The driver serializes it for every stage that it submits; once the run has ended, or has every partition, what
 * arrives in the tasks is [[TeeSpec.off]] and rows pass untouched. So a second action on the same DataFrame, or the
 * real pass after a range partitioner's sampling pass, does not write again.
 *
 * @param schema of the file
 * @param conf None where more than can be held is given up
 * @param local whether tasks run in the driver's process
 */
private[exec] final class TeeSpec(
    val location: String,
    val schema: StructType,
    val conf: Option[SerializableConfiguration],
    val maxBytes: Long,
    val heldBytes: Int,
    val allowance: Option[Allowance],
    val local: Boolean,
    @transient private val run: StoreRun)
    extends Serializable {
  def active: Boolean = schema != null

  /** Whether what the driver writes there is seen here; of a local path on another machine that is not said. */
  def seen: Boolean = {
    val path = new Path(location)
    local || path.toUri.getScheme != "file" || new java.io.File(path.toUri.getPath).isDirectory
  }

  private def writeReplace(): AnyRef = if (run == null || run.writing) this else TeeSpec.off
}

private[exec] object TeeSpec {
  val off: TeeSpec = new TeeSpec("", null, None, 0L, 0, None, true, null)

  /** Everything that shapes the file is set here, so that no conf of the session or cluster changes what is stored. */
  def conf(base: Configuration, fileSchema: StructType): Configuration = {
    val conf = new Configuration(base)
    ParquetWriteSupport.setSchema(fileSchema, conf)
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

  private val spending = spec.allowance.map(new Spending(_))
  private var held = new PackedRows(spec.heldBytes)
  private lazy val unsafe = UnsafeProjection.create(spec.schema)
  private var file: EntryFile = _
  private var rows = 0L
  private var nanos = 0L
  private var quick = 0L
  private var quickNanos = 0L
  @volatile private var done = false
  private val began = System.nanoTime()

  // Runs before the listeners of the child, which were registered earlier and free what its rows point into.
  context.addTaskCompletionListener[Unit] { _ =>
    stop(Refusal("PARTIAL_CONSUMPTION", s"partition $partition was not read to its end"))
  }

  // Synchronized, because a Python operator reads its input on another thread than the one that ends the task.
  def write(row: InternalRow): Unit = if (!done) synchronized {
    if (!done) {
      try {
        if ((rows & sampleMask) == sampleMask) {
          val start = System.nanoTime()
          take(row)
          sampled(System.nanoTime() - start)
        } else take(row)
        rows += 1
        if ((rows & checkMask) == 0 && file != null) {
          checkBudget()
          checkAllowance()
        }
      } catch { case Failures(error) => fault(error) }
    }
  }

  private def take(row: InternalRow): Unit =
    if (file != null) file.write(row)
    else {
      val packed = row match {
        case row: UnsafeRow => row
        case row => unsafe(row)
      }
      if (!held.add(packed)) {
        toFile()
        file.write(row)
      }
    }

  /** There are too many rows to be held. */
  private def toFile(): Unit = spec.conf match {
    case None => give(Refusal("NOT_SMALL", s"partition $partition has more than ${spec.heldBytes} bytes of rows"))
    // The driver made the directory: it is missing on a node that does not share it, or after the run was given up.
    case Some(conf) if !EntryFile.directoryExists(spec.location, conf.value) => give(notShared)
    case Some(conf) =>
      file = new EntryFile(spec.location, conf.value, partition)
      PackedRows.iterator(held.toBytes, spec.schema.size).foreach(file.write)
      held = null
  }

  private def notShared = Refusal("STORE_NOT_SHARED", s"${spec.location} does not exist where a task runs")

  private def give(up: Refusal): Nothing = {
    stop(up)
    throw Stopped
  }

  /** The child's iterator is exhausted. */
  def finish(): Unit = synchronized {
    if (!done) {
      try {
        if (rows == 0) report("", 0L, None)
        else if (file == null) {
          if (!spec.seen) give(notShared)
          report("", 0L, None, Some(held.toBytes))
        } else {
          val start = System.nanoTime()
          val length = file.close()
          nanos += System.nanoTime() - start
          report(file.name, length, None)
        }
        done = true
      } catch { case Failures(error) => fault(error) }
    }
  }

  // Buffered rows count before compression, so this is only the brake; the driver judges by the files' sizes.
  private def checkBudget(): Unit =
    if (file.dataSize > spec.maxBytes + EntryFile.rowGroupBytes) {
      stop(Refusal("OVER_BUDGET", s"partition $partition alone exceeds ${spec.maxBytes} bytes"))
    }

  // A page that is compressed, a collection, a class that is loaded: the sampled row met it, the 31 others did not.
  private def sampled(took: Long): Unit =
    if (took <= slowRowNanos) {
      quick += 1
      quickNanos += took
      nanos += took * (sampleMask + 1)
    } else nanos += took + (if (quick > 0) quickNanos / quick * sampleMask else 0L)

  private def checkAllowance(): Unit = spending.foreach { spending =>
    val took = System.nanoTime() - began
    if (!done && spending.exceeded(nanos, took - nanos)) {
      stop(Refusal("NOT_WORTH_WRITING", f"${nanos / 1e9}%.2f s written in ${took / 1e9}%.2f s of a task"))
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
    try file != null && spec.conf.exists(conf => !EntryFile.directoryExists(spec.location, conf.value))
    catch { case Failures(_) => false }

  private def stop(problem: Refusal): Unit = synchronized {
    if (!done) {
      done = true
      held = null
      if (file != null) file.discard()
      report("", 0L, Some(problem))
    }
  }

  private def report(
      name: String,
      bytes: Long,
      problem: Option[Refusal],
      rowsHeld: Option[Array[Byte]] = None): Unit = {
    writeTime += nanos
    reports.add(
      PartitionReport(
        partition, context.stageAttemptNumber(), context.attemptNumber(), name, rows, bytes, nanos,
        System.nanoTime() - began - nanos, problem, rowsHeld))
  }
}

private[exec] object TeeWriter {
  private val sampleMask = 31L
  private val checkMask = 1023L
  private val slowRowNanos = 50L * 1000

  private object Stopped extends RuntimeException(null, null, false, false)
}
