package org.apache.spark.sql.regions.rules

import java.util.Locale

import scala.collection.immutable.VectorMap
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.regions.{InputListing, RegionsConf, wire}

/**
 * A relation of files.
 *
 * @param known by what, for people
 */
private[rules] final case class Source(atom: String, listing: InputListing, parsed: Boolean, known: String) {
  private val columns = mutable.HashMap[String, String]()

  def column(name: String): String = columns.getOrElseUpdate(name, Digest("column", atom, name))
}

/** The files of a relation, as an index of Spark's has them and as the file system shows them now. */
private final class Listed(
    index: InMemoryFileIndex,
    files: Seq[(Path, FileState)],
    readsBack: Boolean,
    fresh: ListedFiles,
    racySeconds: Int,
    now: () => (Map[Path, FileState], String)) {
  lazy val digest: String = Listing.digest(files)
  lazy val partitions: String = SourceDigest.partitionDigest(index, _.toString)

  /** Each by itself; None where one is read twice, or stands in no partition. */
  lazy val sources: Option[Seq[SourceFile]] = {
    val spec = index.partitionSpec()
    val types = spec.partitionColumns.map(_.dataType)
    val places = spec.partitions.map(p => p.path -> ValueDigest.row(p.values, types)).toMap
    val found = files.map { case (path, state) =>
      val place = places.getOrElse(path.getParent, "")
      SourceFile(Digest("file", path.toString, state.describe, place), path, state.length)
    }
    val placed = types.isEmpty || files.forall { case (path, _) => places.contains(path.getParent) }
    Option.when(placed && found.distinctBy(_.path).size == found.size)(found)
  }

  /** Whether a write may be known of them. */
  lazy val registrable: Boolean =
    readsBack && files.nonEmpty && files.forall { case (path, _) => WrittenFiles.unique(path.getName) }

  /** What values its folders stand for, wherever these are; None if one is not below `root`. */
  def placed(root: String): Option[String] =
    Option.when(files.forall { case (path, _) => path.toString.startsWith(s"$root/") })(
      SourceDigest.partitionDigest(index, path => WrittenFiles.below(new Path(root), path)))

  def learn(known: wire.WrittenFiles): Unit = files.foreach { case (path, state) =>
    val name = WrittenFiles.below(new Path(known.root), path)
    known.contents.get(name).foreach(sum =>
      KnownContents.put(path, state, s"$sum in ${name.stripSuffix(path.getName)}"))
  }

  /** @param settled names that nobody else gives: nobody writes these files again under the time that they have */
  def listing(settled: Boolean): InputListing = new FileListing(
    index.rootPaths,
    fresh.files,
    partitions,
    if (settled) None else fresh.racy(racySeconds),
    now)
}

/**
 * Digests of what the leaves of one plan read.
 *
 * @param unlisted whether relations are known by all but their files
 */
private[rules] final class SourceDigest(
    session: classic.SparkSession,
    seed: String,
    written: KnownFiles,
    unlisted: Boolean = false) {
  import SourceDigest._

  private val conf = session.sessionState.conf
  private lazy val hadoopConf = session.sessionState.newHadoopConf()
  private val read = new java.util.IdentityHashMap[HadoopFsRelation, Source]()
  private val freshListings = mutable.HashMap[(Seq[Path], Map[String, String], Boolean, String), ListedFiles]()
  private val listed = new java.util.IdentityHashMap[HadoopFsRelation, Listed]()

  /** What the relations of a plan hold by the writes of their files is asked for at once. */
  def prepare(relations: Seq[HadoopFsRelation]): Unit = {
    val found = relations.flatMap(relation =>
      try Some(files(relation)).filter(_.registrable)
      catch { case _: Refused => None })
    if (found.nonEmpty) written.find(found.map(_.digest))
  }

  /** By what the files of a relation are known. */
  def known(plan: LogicalPlan): String = plan match {
    case relation: LogicalRelation =>
      relation.relation match {
        case files: HadoopFsRelation => Option(read.get(files)).fold("")(_.known)
        case _ => ""
      }
    case _ => ""
  }

  /** The files of a relation that was digested. */
  def filesOf(relation: HadoopFsRelation): Option[Seq[SourceFile]] = Option(listed.get(relation)).flatMap(_.sources)

  /** What a relation was digested to. */
  def atomOf(relation: HadoopFsRelation): Option[String] = Option(read.get(relation)).map(_.atom)

  /** Relations that were digested, by what they are without their files. */
  def all: Map[String, String] =
    read.asScala.iterator.map { case (relation, source) => place(relation) -> source.atom }.toMap

  private def read(relation: HadoopFsRelation): Seq[String] =
    Seq(seed, relation.fileFormat.getClass.getName, relation.dataSchema.json, relation.partitionSchema.json)

  private def place(relation: HadoopFsRelation): String = {
    val told = telling(relation.options).flatMap { case (key, value) => Seq(key, value) }
    Digest.of("place", read(relation) ++ relation.location.rootPaths.map(_.toString).sorted ++ told)
  }

  def relation(plan: LogicalRelation): Form = plan.relation match {
    case files: HadoopFsRelation => fileRelation(plan, files)
    case other if other.getClass.getName.endsWith("JDBCRelation") => Refused("JDBC_SOURCE")
    case other => Refused("UNKNOWN_SOURCE", other.getClass.getName)
  }

  private def fileRelation(plan: LogicalRelation, relation: HadoopFsRelation): Form = {
    val names = relation.schema.fieldNames.toSet
    plan.output.find(attribute => !names.contains(attribute.name)).foreach(a => Refused("METADATA_COLUMN", a.name))
    val source = read.computeIfAbsent(relation, _ => this.source(relation))
    Form(
      Vector(source.atom),
      Set(source.atom),
      VectorMap.empty,
      plan.output.map(attribute => attribute.exprId -> source.column(attribute.name)).toMap,
      inputs = Set(source.listing),
      parsed = source.parsed
    )
  }

  private def source(relation: HadoopFsRelation): Source = {
    val format = relation.fileFormat.getClass.getName
    if (!formats.contains(format)) Refused("UNKNOWN_SOURCE", format)
    val options = telling(relation.options)
    checkTolerance(relation, options.toMap)
    if (unlisted) return Source(place(relation), Unlisted, textual.contains(format), "")
    val found = files(relation)
    val registrable = found.registrable && conf.getConf(RegionsConf.sourcesWritten)
    val rows = if (registrable) written.find(Seq(found.digest)).get(found.digest) else None
    val ofWrites = rows.flatMap(known => found.placed(known.root).map(known -> _))
    val content = ofWrites match {
      case Some((known, places)) =>
        found.learn(known)
        Seq("written", Digest.of("rows", known.rows.sorted), places)
      case None => Seq(found.digest, found.partitions)
    }
    val told = options.flatMap { case (key, value) => Seq(key, value) }
    val atom = Digest.of("files", read(relation) ++ content ++ told)
    val known =
      if (ofWrites.isDefined) "known by the rows that were written"
      else if (registrable) "known by its listing: no write of just these files is known"
      else ""
    Source(atom, found.listing(settled = ofWrites.isDefined), textual.contains(format), known)
  }

  private def files(relation: HadoopFsRelation): Listed = listed.computeIfAbsent(
    relation,
    _ => {
      val format = relation.fileFormat.getClass.getName
      relation.location match {
        case index: InMemoryFileIndex if index.getClass == classOf[InMemoryFileIndex] =>
          indexed(index, format, relation.options, () => index)
        case index: CatalogFileIndex if index.getClass == classOf[CatalogFileIndex] =>
          indexed(index.filterPartitions(Nil), format, catalogOptions(index), () => index.filterPartitions(Nil))
        case other => Refused("UNKNOWN_SOURCE", other.getClass.getName)
      }
    }
  )

  private def catalogOptions(index: CatalogFileIndex): Map[String, String] =
    if (index.table.partitionColumnNames.nonEmpty) Map.empty else index.table.storage.properties

  private def indexed(
      index: InMemoryFileIndex,
      format: String,
      options: Map[String, String],
      again: () => InMemoryFileIndex): Listed = {
    written.await(index.rootPaths)
    val files = index.allFiles().filter(Listing.isData)
    if (files.size > maxFiles) Refused("TOO_MANY_FILES", files.size.toString)
    val partitioned = index.partitionSpec().partitionColumns.nonEmpty
    val listing = new Listing(session, hadoopConf, options, contents(session, hadoopConf, format))
    val fresh = freshListings.getOrElseUpdate(
      (index.rootPaths, options, partitioned, format), {
        // Before the listing: what it shows may be of any moment since then.
        val began = System.currentTimeMillis()
        try ListedFiles(began, listing.now(index.rootPaths, partitioned))
        catch {
          case refused: Refused => throw refused
          case NonFatal(e) => Refused("INPUT_CHANGED", e.toString)
        }
      }
    )
    val known = files.map(file => file.getPath -> (file.getLen, file.getModificationTime)).toMap
    fresh.difference(known).foreach(path => Refused("INPUT_CHANGED", path.toString))
    fresh.timeless.foreach(path => Refused("NO_FILE_TIME", path.toString))
    new Listed(
      index,
      // All of them, and not the distinct ones: a path given twice is read twice.
      files.map(file => file.getPath -> fresh.files(file.getPath)),
      readsBack(format),
      fresh,
      conf.getConf(RegionsConf.sourcesRacySeconds),
      () => {
        val current = again()
        (listing.now(current.rootPaths, partitioned), partitionDigest(current, _.toString))
      }
    )
  }

  /** What a reader skips or repairs depends on the columns asked for, or on luck. */
  private def checkTolerance(relation: HadoopFsRelation, options: Map[String, String]): Unit = {
    val source = new FileSourceOptions(CaseInsensitiveMap(relation.options))
    if (source.ignoreCorruptFiles || source.ignoreMissingFiles) Refused("TOLERANT_READER", "files that cannot be read")
    if (textual.contains(relation.fileFormat.getClass.getName)) {
      if (options.get("mode").exists(_.equalsIgnoreCase("DROPMALFORMED"))) Refused("TOLERANT_READER", "DROPMALFORMED")
      val corrupt = options.getOrElse("columnnameofcorruptrecord", conf.columnNameOfCorruptRecord)
      if (relation.dataSchema.fieldNames.exists(_.equalsIgnoreCase(corrupt))) Refused("TOLERANT_READER", corrupt)
    }
  }

  def cached(plan: InMemoryRelation, floatAggregates: Boolean): Form = CachedPlan.form(session, plan, floatAggregates)

  def local(plan: LocalRelation): Form = {
    if (plan.data.size > maxLocalRows) Refused("LOCAL_TOO_LARGE", s"${plan.data.size} rows")
    val types = plan.output.map(_.dataType)
    var size = 0L
    val rows = plan.data.map { row =>
      val text = ValueDigest.row(row, types)
      size += text.length
      if (size > maxLocalBytes) Refused("LOCAL_TOO_LARGE", s"more than $maxLocalBytes bytes")
      text
    }.sorted
    leaf(Digest.of("local", (seed +: types.map(ValueDigest.typeKey)) ++ rows), plan.output.map(_.exprId))
  }

  def leaf(content: String, output: Seq[ExprId]): Form = {
    val atom = Digest("leaf", seed, content)
    val columns = output.zipWithIndex.map { case (id, i) => id -> Digest("column", atom, i.toString) }
    Form(Vector(atom), Set(atom), VectorMap.empty, columns.toMap)
  }
}

/** Of relations whose files are not asked for. */
private object Unlisted extends InputListing {
  override def unchanged(): Boolean = true
  override def describe: String = ""
}

private[rules] object SourceDigest {

  /** Whether what is read from files of the format depends on the rows that were written alone, and not on how many files there are. */
  def readsBack(format: String): Boolean = recorded.contains(format)

  /** Options by which rows may differ. */
  def telling(options: Map[String, String]): Seq[(String, String)] = options.iterator
    .map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
    .filterNot { case (key, _) => neutralOptions.contains(key) }
    .toSeq
    .sorted

  def contents(session: classic.SparkSession, hadoopConf: Configuration, format: String): FileContents =
    new FileContents(
      hadoopConf,
      session.sessionState.conf.getConf(RegionsConf.sourcesVerify) == "footer",
      endings.get(format))

  private[rules] def partitionDigest(index: InMemoryFileIndex, name: Path => String): String = {
    val spec = index.partitionSpec()
    val types = spec.partitionColumns.map(_.dataType)
    Digest.of(
      "partitions",
      spec.partitions.map(p => Digest.join(name(p.path), Seq(ValueDigest.row(p.values, types)))).sorted)
  }

  val maxFiles = 50000
  val maxLocalRows = 65536
  val maxLocalBytes = 8L << 20

  private val prefix = "org.apache.spark.sql."
  private val textual = Set("csv.CSVFileFormat", "json.JsonFileFormat", "xml.XmlFileFormat")
    .map(prefix + "execution.datasources." + _)
  private val endings = Map(
    "execution.datasources.parquet.ParquetFileFormat" -> FileContents.parquet,
    "execution.datasources.orc.OrcFileFormat" -> FileContents.orc,
    "hive.orc.OrcFileFormat" -> FileContents.orc
  ).map { case (name, ending) => prefix + name -> ending }
  private val recorded =
    Set("parquet.ParquetFileFormat", "orc.OrcFileFormat").map(prefix + "execution.datasources." + _)
  private val formats = textual ++ endings.keySet ++ Set(
    "execution.datasources.text.TextFileFormat",
    "execution.datasources.binaryfile.BinaryFileFormat",
    "avro.AvroFileFormat"
  ).map(prefix + _)

  // Where to find the files, which the listing tells, and how to write them.
  private val neutralOptions = Set("path", "paths", "basepath", "serialization.format", "compression", "codec")
}
