package org.apache.spark.sql.regions.exec

import java.util
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.internal.Logging
import org.apache.spark.internal.config.MAX_RESULT_SIZE
import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.regions.{Abandoned, Committed, Policy, Refusal, StoreOrder, StoreOutcome}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/**
 * The driver's side of one store order, over all copies of its tee. Waiting → writing (one execution) → committing
 * (every partition is in) → ended. Reports arrive on Spark's scheduler thread, so `accept` does no I/O: files are
 * touched by [[Stores]]'s own thread alone.
 */
private[exec] final class StoreRun(val order: StoreOrder) extends Logging {
  private object State extends Enumeration { val Waiting, Writing, Committing, Ended = Value }
  import State._

  private var state = Waiting
  private var partitions = 0
  private var indeterminate = false
  private var ownsDirectory = false
  private var schema: StructType = _
  private var fileSchema: StructType = _
  private var held = 0L
  private var (writingNanos, otherNanos) = (0L, 0L)
  private var allowance = Option.empty[Allowance]
  @volatile private var layout = Option.empty[StoredLayout]
  private var conf: Configuration = _
  private val kept = mutable.LongMap.empty[PartitionReport]
  private var bytes = 0L
  private val directory = new Path(order.location)
  private val ordered = System.nanoTime()

  def writing: Boolean = synchronized(state == Writing)
  def ended: Boolean = synchronized(state == Ended)

  /** The first caller writes; later ones, and all after a failure, get None and pass rows on. Never throws. */
  def activate(toStore: StructType, rdd: RDD[_], plan: SparkPlan): Option[(TeeSpec, StoreReports)] =
    synchronized {
      if (state != Waiting) None
      else {
        try {
          StorableTypes.refusal(toStore) match {
            case Some(refusal) =>
              abandon(refusal)
              None
            case None if !order.wanted() =>
              abandon(Refusal("NOT_HELD"))
              None
            case None => Some(start(toStore, rdd, plan))
          }
        } catch {
          case Failures(error) =>
            logWarning(s"Cannot store entry ${order.entry} in ${order.location}", error)
            abandon(Refusal("WRITE_FAILED", Failures.text(error)))
            None
        }
      }
    }

  private def start(toStore: StructType, rdd: RDD[_], plan: SparkPlan): (TeeSpec, StoreReports) = {
    val session = plan.session
    schema = toStore
    fileSchema = StorableTypes.physical(schema)
    val base = session.sessionState.newHadoopConf()
    conf = if (order.inMemory) base else TeeSpec.conf(base, fileSchema)
    // What tasks do not write needs no directory before it is written, but where it shows them that the store is shared.
    if (!order.inMemory || !session.sparkContext.isLocal) makeDirectory()
    partitions = rdd.getNumPartitions
    // Before the commit on the same thread, and beside the query.
    Stores.later { layout = order.layout().flatMap(Layout.stored(_, plan, partitions)) }
    indeterminate = rdd.outputDeterministicLevel == DeterministicLevel.INDETERMINATE
    allowance = order.maxOverhead.map(allowed(_, session))
    val reports = new StoreReports(this)
    session.sparkContext.register(reports)
    val spec = new TeeSpec(
      order.location,
      fileSchema,
      Option.when(!order.inMemory)(new SerializableConfiguration(conf)),
      order.maxBytes,
      heldBytes(session),
      allowance.map(_.each(partitions)),
      session.sparkContext.isLocal,
      this
    )
    state = Writing
    // No task will ever report: nothing is exactly what there is.
    if (partitions == 0) complete()
    (spec, reports)
  }

  private def makeDirectory(): Unit = {
    val fs = fileSystem
    if (fs.exists(directory) && fs.listStatus(directory).nonEmpty) {
      throw new java.io.IOException(s"$directory is not empty")
    }
    ownsDirectory = true
    StoreFiles.makeDirectory(fs, directory)
  }

  /** What goes to the driver counts among the results that it takes at most. */
  private def heldBytes(session: SparkSession): Int = {
    val most = session.sparkContext.conf.get(MAX_RESULT_SIZE)
    val all = if (most > 0) math.min(StoreRun.heldBytes, most / 64) else StoreRun.heldBytes
    math.min(all, math.max(StoreRun.leastHeldBytes, all / math.max(1, partitions))).toInt
  }

  /** Earlier stages of the query are over when this one is started: their core-seconds are part of its work. */
  private def allowed(share: Double, session: SparkSession): Allowance = {
    val cores = math.max(1, session.sparkContext.defaultParallelism)
    Allowance(share, cores, (System.nanoTime() - ordered) * cores, (order.spareSeconds * 1e9).toLong * cores)
  }

  /** What many short tasks write may be much, though each of them writes little. */
  private def overspent(last: PartitionReport): Boolean =
    allowance.exists(a => a.exceeded(writingNanos, otherNanos, rising = last.nanos > a.share * last.others))

  /** Takes over the reports of one successful task. */
  def accept(reports: util.List[PartitionReport]): Unit = synchronized(reports.asScala.foreach(accept))

  private def accept(report: PartitionReport): Unit = {
    val again = kept.contains(report.partition.toLong)
    if (state != Writing) discard(report)
    else if (indeterminate && (again || report.attempt > 0 || report.stageAttempt > 0)) {
      abandon(Refusal("INDETERMINATE_RETRY", s"partition ${report.partition}"))
    } else if (again) discard(report)
    else {
      writingNanos += report.nanos
      otherNanos += report.others
      report.problem match {
        case Some(problem) => abandon(problem)
        case None =>
          kept(report.partition.toLong) = report
          bytes += report.bytes
          held += report.held.fold(0)(_.length)
          if (bytes > order.maxBytes) abandon(Refusal("OVER_BUDGET", s"$bytes of ${order.maxBytes} bytes"))
          else if (order.inMemory && held > StoreRun.heldBytes) abandon(Refusal("NOT_SMALL", s"$held bytes of rows"))
          else if (kept.size == partitions) {
            if (order.inMemory && tookMillis < Policy.storedAtOnceMillis)
              abandon(Refusal("TOO_CHEAP", s"$tookMillis ms"))
            else complete()
          } else if (overspent(report))
            abandon(Refusal("NOT_WORTH_WRITING",
                f"${writingNanos / 1e9}%.2f s written in ${kept.size} of $partitions tasks"))
      }
    }
  }

  private def tookMillis: Long = NANOSECONDS.toMillis(System.nanoTime() - ordered)

  // A second file of a partition: the manifest does not name it, but it takes room.
  private def discard(report: PartitionReport): Unit = if (report.file.nonEmpty) {
    Stores.later { if (ownsDirectory) fileSystem.delete(new Path(directory, report.file), false) }
  }

  private def complete(): Unit = {
    state = Committing
    Stores.commit(order)(commit())
  }

  /** The query ended: what is not complete now never will be. */
  def finish(): Unit = synchronized {
    state match {
      case Waiting => abandon(Refusal("NOT_EXECUTED"))
      case Writing => abandon(Refusal("PARTIAL_CONSUMPTION", s"${kept.size} of $partitions partitions"))
      // Tasks that were under way at an early abandonment may have left something since.
      case Ended if !committed => Stores.later(sweep())
      case _ =>
    }
  }

  @volatile private var committed = false

  def abandon(reason: Refusal): Unit = synchronized {
    if (state == Waiting || state == Writing) {
      state = Ended
      Stores.later {
        sweep()
        tell(Abandoned(order.entry, reason, writingNanos / 1e9))
      }
    }
  }

  private def commit(): Unit = {
    val start = System.nanoTime()
    val outcome =
      try publish(start)
      catch {
        case Failures(error) =>
          logWarning(s"Cannot commit entry ${order.entry} in ${order.location}", error)
          Left(Refusal("WRITE_FAILED", Failures.text(error)))
      }
    synchronized { state = Ended }
    outcome match {
      case Right(done) =>
        committed = true
        tell(done)
      case Left(reason) =>
        sweep()
        tell(Abandoned(order.entry, reason, writingNanos / 1e9))
    }
  }

  private def publish(start: Long): Either[Refusal, Committed] = {
    val fs = fileSystem
    val reports = written()
    val found = StoreFiles.list(fs, directory)
    val files = reports.map { report =>
      found.get(report.file).filter(_.length == report.bytes) match {
        // The time is the one that readers will be shown, not the one that the task saw.
        case Some(file) => StoredFile(report.file, report.partition, report.rows, report.bytes, file.modified)
        case None =>
          return Left(Refusal("STORE_NOT_SHARED", s"the driver does not see ${report.file} as its task wrote it"))
      }
    }
    val names = files.map(_.name).toSet
    found.keysIterator.filterNot(names).foreach(name => fs.delete(new Path(directory, name), false))
    order.inputs.find(input => !input.unchanged()) match {
      case Some(input) => return Left(Refusal("INPUT_CHANGED", input.describe))
      case None =>
    }
    val entry = StoredEntry(
      order.entry,
      order.location,
      order.lineage,
      order.columns.toIndexedSeq,
      schema,
      reports.map(_.rows).sum,
      reports.map(_.bytes).sum,
      files.toIndexedSeq,
      layout
    )
    if (entry.bytes > order.maxBytes) return Left(Refusal("OVER_BUDGET", s"${entry.bytes} of ${order.maxBytes} bytes"))
    if (StoreFiles.createManifest(fs, directory, Manifest.write(entry))) {
      val seconds = (reports.map(_.nanos).sum + System.nanoTime() - start) / 1e9
      kept.clear()
      Right(Committed(order.entry, entry.rows, entry.bytes, files.size, seconds))
    } else {
      ownsDirectory = false
      Left(Refusal("ENTRY_EXISTS", order.location))
    }
  }

  /** The files, in the order of their partitions; those of rows that were held are written now. */
  private def written(): Seq[PartitionReport] = {
    if (!ownsDirectory || !fileSystem.exists(directory)) makeDirectory()
    val writing = if (order.inMemory) TeeSpec.conf(conf, fileSchema) else conf
    kept.values.toSeq.sortBy(_.partition).flatMap { report =>
      report.held match {
        case None => Option.when(report.file.nonEmpty)(report)
        case Some(rows) =>
          val file = new EntryFile(order.location, writing, report.partition)
          try {
            PackedRows.iterator(rows, fileSchema.size).foreach(file.write)
            Some(report.copy(file = file.name, bytes = file.close(), held = None))
          } catch {
            case error: Throwable =>
              file.discard()
              throw error
          }
      }
    }
  }

  private def sweep(): Unit =
    if (ownsDirectory) {
      try fileSystem.delete(directory, true)
      catch { case Failures(error) => logWarning(s"Cannot delete ${order.location}", error) }
    }

  private def tell(outcome: StoreOutcome): Unit =
    try order.onEnd(outcome)
    catch { case Failures(error) => logWarning(s"The end of entry ${order.entry} could not be told", error) }

  private def fileSystem: FileSystem = StoreFiles.system(directory, conf)
}

private[exec] object StoreRun {

  /** Of all partitions, that wait to be written by the driver. */
  val heldBytes: Long = 4L << 20
  val leastHeldBytes: Long = 64L << 10
}
