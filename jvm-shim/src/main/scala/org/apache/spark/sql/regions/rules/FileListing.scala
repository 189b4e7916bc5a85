package org.apache.spark.sql.regions.rules

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path, PathFilter}
import org.apache.hadoop.mapred.{FileInputFormat, JobConf}

import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.PathFilterFactory
import org.apache.spark.sql.regions.{InputListing, Refusal, SparkMinor}

/** Length and modification time of a file, and what [[FileContents]] knows of its content. */
private[rules] final case class FileState(length: Long, modified: Long, content: String = "") {

  /** An index of Spark's keeps only these. */
  def stamp: (Long, Long) = (length, modified)

  def describe: String = s"$length@$modified" + (if (content.isEmpty) "" else s"@$content")
}

/** The files under `roots` as the file system shows them now, not as any index remembers them. */
private[rules] final class Listing(
    session: classic.SparkSession,
    conf: Configuration,
    options: Map[String, String],
    contents: FileContents) {
  private val insensitive = CaseInsensitiveMap(options)
  private val patterns = PathFilterFactory.create(insensitive)
  private val recursive = insensitive.getOrElse("recursiveFileLookup", "false").toBoolean

  private val filter: PathFilter =
    if (conf.get("mapreduce.input.pathFilter.class") == null) null
    else FileInputFormat.getInputPathFilter(new JobConf(conf))

  def now(roots: Seq[Path], partitioned: Boolean): Map[Path, FileState] = {
    val qualified = roots.map(path => path.getFileSystem(conf).makeQualified(path)).distinct
    val listed = SparkMinor.leafFiles(session.sparkContext, qualified, conf, filter)(insensitive)
    val direct = qualified.toSet
    val files = listed.filter { file =>
      partitioned || recursive || direct.contains(file.getPath) || direct.contains(file.getPath.getParent)
    }.filter(file => patterns.forall(_.accept(file)) && Listing.isData(file)).distinctBy(_.getPath)
    val content = contents(files)
    files.map(f => f.getPath -> FileState(f.getLen, f.getModificationTime, content(f.getPath))).toMap
  }
}

private[rules] object Listing {

  /** All files below a folder, known as the session's setting has it. */
  def below(session: classic.SparkSession, root: Path, format: String): Map[Path, FileState] = {
    val conf = session.sessionState.newHadoopConf()
    new Listing(session, conf, Map.empty, SourceDigest.contents(session, conf, format)).now(
      Seq(root), partitioned = true)
  }

  /** Of paths, lengths, times and what else is known of the files; each is counted as often as it is named. */
  def digest(files: Seq[(Path, FileState)]): String = {
    val content = MessageDigest.getInstance("SHA-256")
    files.map { case (path, state) => Digest.join("", Seq(path.toString, state.describe)) }
      .sorted.foreach(line => content.update(line.getBytes(UTF_8)))
    Digest.hex(content.digest(), 16)
  }

  def isData(file: FileStatus): Boolean = {
    val name = file.getPath.getName
    !((name.startsWith("_") && !name.contains("=")) || name.startsWith(".")) && file.getLen > 0
  }
}

/**
 * Files as they were listed at a moment of the driver's clock.
 *
 * Why two seconds. An identity says that the rows are those of files with these times, and that is true of everything that is read
 * after the listing if no write after the listing can leave a file's time as it is. A write at time w gives a file a time
 * of more than w - g, where g is how coarse the file system's times are (2 s on FAT, 1 s on many object stores, milliseconds on HDFS
 * and local disks). So a file whose time is at least g older than the listing is settled: each later write shows in its time. The
 * rows that a query reads between a settled listing and an equal one at the commit are those of each later equal listing, for good.
 *
 * A younger file may be written again under the same time, after it was read or before, and no later listing can tell which
 * of the two contents the rows came from: equal times prove nothing then, however late they are compared. What is read
 * from such files is therefore not stored at all, and the first query after they have settled stores it.
 *
 * A time in the future counts as young: the next write may come at that very time. Assumed: the clock that stamps files does
 * not run backwards, and is not behind the driver's by more than the age asked for less g. There is no call that asks a file
 * system for its time; where clocks are worse than that, `spark.regions.sources.racySeconds` has to be larger.
 */
private[rules] final case class ListedFiles(began: Long, files: Map[Path, FileState]) {

  /** The youngest file, if it is younger than `seconds`. */
  def racy(seconds: Int): Option[Refusal] =
    files.maxByOption(_._2.modified).filter { case (_, state) =>
      seconds > 0 && began - state.modified < seconds * 1000L
    }.map { case (path, state) => Refusal("RACY_INPUT", s"$path, ${began - state.modified} ms old") }

  /** A file of which neither time nor content is known. */
  def timeless: Option[Path] =
    files.collectFirst { case (path, state) if state.modified <= 0 && state.content.isEmpty => path }

  /** A file that is not as an index of Spark's has it. */
  def difference(known: Map[Path, (Long, Long)]): Option[Path] =
    (known.keySet ++ files.keySet).find(path => known.get(path) != files.get(path).map(_.stamp))
}

/** The files of one relation when it was signed. */
private[rules] final class FileListing(
    roots: Seq[Path],
    state: Map[Path, FileState],
    partitions: String,
    override val unsettled: Option[Refusal],
    now: () => (Map[Path, FileState], String))
    extends InputListing {
  override def unchanged(): Boolean =
    try now() == (state -> partitions)
    catch { case NonFatal(_) => false }

  override def describe: String = roots.mkString(", ")
}
