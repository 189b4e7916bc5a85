package org.apache.spark.sql.regions.exec

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.mapreduce.{JobContext, TaskAttemptContext}

import org.apache.spark.{SparkContext, SparkException, TaskContext}
import org.apache.spark.internal.io.{FileCommitProtocol, FileNameSpec}
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.{WriteFiles, WriteFilesSpec}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.regions.{InputListing, Refusal}
import org.apache.spark.util.CollectionAccumulator

/**
 * A write of rows that have an identity, until its files are known by it or given up.
 *
 * @param rows digest of what is written
 * @param root the folder that it is written to, qualified
 * @param format class of the files' format
 * @param inputs what the rows are made of
 * @param entries where the rows are known by entries, those that the tasks that write also store; others are read
 */
final class RecordedWrite(
    val query: Long,
    val rows: String,
    val root: Path,
    val format: String,
    val inputs: Seq[InputListing],
    entries: Option[Seq[String]]) {

  /** Why the rows are others than they were to be. */
  @volatile private[regions] var spoiled = Option.empty[Refusal]

  /** An entry was not read, but computed again. */
  private[regions] def fellBack(reason: Refusal): Unit = if (entries.isDefined) spoiled = Some(reason)

  /** Behind an exchange, which a later rule may have put in, tasks may write others than the rows that were stored. */
  private[exec] def check(plan: SparkPlan): Unit = {
    def stored(plan: SparkPlan): Seq[String] = plan match {
      case TeeExec(child, order) => order.entry +: stored(child)
      case _: Exchange | _: QueryStageExec => Nil
      case other => other.children.flatMap(stored)
    }
    val there = stored(plan)
    entries.flatMap(_.find(!there.contains(_)))
      .foreach(entry => spoiled = Some(Refusal("FLOAT_AGGREGATE", s"$entry is stored by other tasks")))
  }

  @volatile private var reports: Option[CollectionAccumulator[TaskFiles]] = None
  @volatile private var tasks = Int.MaxValue

  private[exec] def begin(context: SparkContext): CollectionAccumulator[TaskFiles] = {
    // Spark merges the reports of a successful task once for each partition, and before it tells that the job ended.
    val names = new CollectionAccumulator[TaskFiles]
    context.register(names)
    reports = Some(names)
    names
  }

  private[exec] def expect(count: Int): Unit = tasks = count

  private def told: Seq[TaskFiles] = reports.map(_.value.asScala.toSeq).getOrElse(Nil)

  /** Whether all tasks have ended well: the commit follows. */
  def written: Boolean = told.size >= tasks

  /** Paths below `root` of all files that were committed; None if that is not known. */
  def files: Option[Set[String]] = {
    val all = told
    Option.when(all.map(_.partition).toSet.size == tasks && all.size == tasks && all.forall(_.below))(
      all.flatMap(_.files).toSet)
  }
}

private[regions] object RecordedWrite {

  /** On the command that writes. */
  val tag: TreeNodeTag[RecordedWrite] = TreeNodeTag[RecordedWrite]("spark_regions.write")

  def unapply(command: DataWritingCommand): Option[(WriteFiles, RecordedWrite)] = command.query match {
    case files: WriteFiles => command.getTagValue(tag).map(files -> _)
    case _ => None
  }
}

/** What the successful task of a partition committed; `below`: no file of it elsewhere than below the write's folder. */
private[exec] final case class TaskFiles(partition: Int, files: Seq[String], below: Boolean)

/** Spark's own operator of a write, which is also told by what names its tasks commit. */
case class RecordedWriteExec(child: SparkPlan, @transient write: RecordedWrite) extends UnaryExecNode {
  override def nodeName: String = "RecordedWrite"
  override def output: Seq[Attribute] = Nil
  override protected def stringArgs: Iterator[Any] = Iterator.empty
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  override protected def doExecute(): RDD[InternalRow] =
    throw SparkException.internalError(s"$nodeName does not support doExecute")

  override protected def doExecuteWrite(spec: WriteFilesSpec): RDD[WriterCommitMessage] = {
    write.check(child)
    val names = write.begin(sparkContext)
    val rdd = child.executeWrite(spec.copy(committer = new RecordingCommitter(spec.committer, names)))
    write.expect(rdd.getNumPartitions)
    rdd
  }

  override protected def withNewChildInternal(newChild: SparkPlan): RecordedWriteExec = copy(child = newChild)
}

/** Tells the names of the files that each task commits, and leaves all else to `inner`. */
private[exec] final class RecordingCommitter(inner: FileCommitProtocol, names: CollectionAccumulator[TaskFiles])
    extends FileCommitProtocol with Serializable {
  @transient private var files: mutable.ArrayBuffer[String] = _
  @transient private var below = true

  override def setupTask(context: TaskAttemptContext): Unit = {
    files = mutable.ArrayBuffer.empty
    below = true
    inner.setupTask(context)
  }

  private def named(folder: Option[String], path: String): String = {
    files += (folder.toSeq :+ new Path(path).getName).mkString("/")
    path
  }

  override def newTaskTempFile(context: TaskAttemptContext, dir: Option[String], ext: String): String =
    named(dir, inner.newTaskTempFile(context, dir, ext))

  override def newTaskTempFile(context: TaskAttemptContext, dir: Option[String], spec: FileNameSpec): String =
    named(dir, inner.newTaskTempFile(context, dir, spec))

  override def newTaskTempFileAbsPath(context: TaskAttemptContext, dir: String, ext: String): String = {
    below = false
    inner.newTaskTempFileAbsPath(context, dir, ext)
  }

  override def newTaskTempFileAbsPath(context: TaskAttemptContext, dir: String, spec: FileNameSpec): String = {
    below = false
    inner.newTaskTempFileAbsPath(context, dir, spec)
  }

  override def commitTask(context: TaskAttemptContext): TaskCommitMessage = {
    val message = inner.commitTask(context)
    names.add(TaskFiles(TaskContext.getPartitionId(), files.toSeq, below))
    message
  }

  override def abortTask(context: TaskAttemptContext): Unit = inner.abortTask(context)
  override def setupJob(context: JobContext): Unit = inner.setupJob(context)
  override def commitJob(context: JobContext, commits: Seq[TaskCommitMessage]): Unit = inner.commitJob(context, commits)
  override def abortJob(context: JobContext): Unit = inner.abortJob(context)
  override def onTaskCommit(commit: TaskCommitMessage): Unit = inner.onTaskCommit(commit)
  override def deleteWithJob(fs: FileSystem, path: Path, recursive: Boolean): Boolean =
    inner.deleteWithJob(fs, path, recursive)
}
