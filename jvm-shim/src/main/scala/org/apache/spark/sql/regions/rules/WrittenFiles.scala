package org.apache.spark.sql.regions.rules

import java.util.concurrent.{ConcurrentHashMap, TimeUnit, TimeoutException}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.RecordedWrite
import org.apache.spark.sql.regions.profile.QueryEnd
import org.apache.spark.util.ThreadUtils

/** Files that are known by the rows that were written to them. */
trait KnownFiles {

  /** Waits a moment for writes below one of `roots` whose tasks have all ended. */
  def await(roots: Seq[Path]): Unit

  /** By listing, those of which a write is known; asks for all that are not known yet at once. */
  def find(listings: Seq[String]): Map[String, wire.WrittenFiles]
}

object KnownFiles {
  object None extends KnownFiles {
    override def await(roots: Seq[Path]): Unit = ()
    override def find(listings: Seq[String]): Map[String, wire.WrittenFiles] = Map.empty
  }
}

/**
 * Registers what this application writes, and finds what it or another one wrote; docs/files.md.
 *
 * @param note told of each write that has ended, with its files or why they are known by their listing alone
 */
final class WrittenFiles(planner: Planner, deadlineMillis: () => Long, note: (Long, Either[Refusal, String]) => Unit)
    extends KnownFiles {
  import WrittenFiles._

  /** By listing, also those that no write is known of: one listing has one identity while the application lives. */
  private val known = BoundedMap[String, Option[wire.WrittenFiles]](mostKnown, byUse = true)
  private val open = new ConcurrentHashMap[Long, RecordedWrite]()
  private val thread = ThreadUtils.newDaemonSingleThreadExecutor("regions-written")

  def begin(write: RecordedWrite): Unit = {
    open.put(write.query, write)
    // Queries that are only explained never end.
    if (open.size > mostOpen) open.remove(open.keys.asScala.min)
  }

  override def find(listings: Seq[String]): Map[String, wire.WrittenFiles] = {
    val missing = listings.distinct.filterNot(known.containsKey)
    missing.grouped(mostAsked).foreach { some =>
      planner.request(wire.FindWritten(some), deadlineMillis())
        .foreach(answer => some.foreach(listing => known.putIfAbsent(listing, answer.found.get(listing))))
    }
    listings.flatMap(listing => Option(known.get(listing)).flatten.map(listing -> _)).toMap
  }

  override def await(roots: Seq[Path]): Unit = {
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(awaitMillis)
    def ending = open.values.asScala.exists(write => write.written && roots.exists(within(_, write.root)))
    open.synchronized {
      var left = deadline - System.nanoTime()
      while (ending && left > 0) {
        TimeUnit.NANOSECONDS.timedWait(open, left)
        left = deadline - System.nanoTime()
      }
    }
  }

  /** A query did not read an entry, but computed it again. */
  def fellBack(query: Long, reason: Refusal): Unit = Option(open.get(query)).foreach(_.fellBack(reason))

  /** A query has ended; what it wrote is looked at beside those that follow. */
  def ended(end: QueryEnd): Unit = Option(open.get(end.query)).foreach { write =>
    if (end.failed || !write.written) settled(write)
    else
      thread.execute { () =>
        try Guard.run(end.execution.sparkSession.sparkContext.conf, "the registration of written files") {
            note(write.query, register(write, end.execution, end.millis))
          }
        finally settled(write)
      }
  }

  private def settled(write: RecordedWrite): Unit = {
    open.remove(write.query)
    open.synchronized(open.notifyAll())
  }

  private def register(write: RecordedWrite, execution: QueryExecution, ended: Long): Either[Refusal, String] = {
    val session = execution.sparkSession.asInstanceOf[SparkSession]
    for {
      _ <- write.spoiled.toLeft(())
      names <- write.files.toRight(Refusal("WRITE_FAILED", "not every file is below the folder"))
      _ <-
        Either.cond(names.nonEmpty && names.forall(unique), (), Refusal("WRITE_FAILED", "no file of a name of its own"))
      _ <- write.inputs.find(!_.unchanged()).map(input => Refusal("INPUT_CHANGED", input.describe)).toLeft(())
      listed = below(session, write)
      (ours, others) = listed.partition { case (path, _) => names.contains(below(write.root, path)) }
      _ <- changed(ours, names, bytes(execution.executedPlan), ended).toLeft(())
      before <- earlier(write, others)
    } yield {
      val files = wire.WrittenFiles(write.root.toString, before :+ write.rows)
      tell(write, listed, files)
      if (session.sparkContext.isLocal && listed.size <= mostRead && listed.values.map(_.length).sum <= mostBytes) {
        val conf = session.sessionState.newHadoopConf()
        val contents = listed.map { case (path, state) =>
          below(write.root, path) -> FileContents.ordered(conf, path, state.length)
        }
        if (below(session, write) == listed) tell(write, listed, files.copy(contents = contents))
      }
      s"${listed.size} files in ${write.root}, rows ${write.rows.take(8)}"
    }
  }

  private def tell(write: RecordedWrite, listed: Map[Path, FileState], files: wire.WrittenFiles): Unit = {
    val listing = Listing.digest(listed.toSeq)
    known.put(listing, Some(files))
    planner.observe(wire.Wrote(listing, files, write.query))
  }

  /** Names tell whose files these are; lengths and times, that they are still as the tasks have closed them. */
  private def changed(
      ours: Map[Path, FileState],
      names: Set[String],
      bytes: Option[Long],
      ended: Long): Option[Refusal] =
    if (ours.size != names.size) Some(Refusal("INPUT_CHANGED", s"${names.size - ours.size} files are gone"))
    else if (!bytes.contains(ours.values.map(_.length).sum)) Some(Refusal("INPUT_CHANGED", "lengths differ"))
    else
      ours.collectFirst { case (path, state) if state.modified > ended => Refusal("INPUT_CHANGED", path.toString) }

  /** What the files hold that were there before. */
  private def earlier(write: RecordedWrite, others: Map[Path, FileState]): Either[Refusal, Seq[String]] =
    if (others.isEmpty) Right(Nil)
    else {
      val listing = Listing.digest(others.toSeq)
      find(Seq(listing)).get(listing).filter(_.root == write.root.toString).map(_.rows).filter(_.size < mostWrites)
        .toRight(Refusal("INPUT_CHANGED", s"${others.size} files of other writes, as ${others.keys.head}"))
    }

  /** Waits until all that has ended is registered or given up, or for so long. */
  def settle(millis: Long): Boolean = {
    val done = thread.submit(() => true)
    try done.get(millis, TimeUnit.MILLISECONDS)
    catch { case _: TimeoutException => false }
  }

  /** Once all that was written is told, or after so long. */
  def close(millis: Long): Unit = {
    thread.shutdown()
    thread.awaitTermination(millis, TimeUnit.MILLISECONDS)
  }
}

private[rules] object WrittenFiles {
  private val mostKnown = 10000
  private val mostOpen = 1000
  private val mostAsked = 1000
  private val mostWrites = 1000
  private val awaitMillis = 200L

  /** Of local applications alone: elsewhere shuffled rows have no order, and files are far away. */
  private val mostRead = 200
  private val mostBytes = 256L << 20

  private val unique = ".*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}.*".r

  private def below(session: SparkSession, write: RecordedWrite): Map[Path, FileState] =
    session.withActive(Listing.below(session, write.root, write.format))

  /** Whether nobody but the write that made it gives a file this name. */
  def unique(name: String): Boolean = unique.matches(new Path(name).getName)

  def below(root: Path, file: Path): String = file.toString.stripPrefix(s"$root/")

  private def within(path: Path, root: Path): Boolean = path == root || path.toString.startsWith(s"$root/")

  /** Bytes that the tasks of a write counted. */
  private def bytes(plan: SparkPlan): Option[Long] = plan match {
    case adaptive: AdaptiveSparkPlanExec => bytes(adaptive.executedPlan)
    case stage: QueryStageExec => bytes(stage.plan)
    case write: DataWritingCommandExec => write.cmd.metrics.get("numOutputBytes").map(_.value)
    case other => other.children.iterator.flatMap(bytes).nextOption()
  }
}
