package org.apache.spark.sql.regions.rules

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.Locale

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.regions.{InputListing, RegionsConf}

/** A relation of files. */
private[rules] final case class Source(atom: String, listing: InputListing, parsed: Boolean) {
  private val columns = mutable.HashMap[String, String]()

  def column(name: String): String = columns.getOrElseUpdate(name, Digest("column", atom, name))
}

/** Digests of what the leaves of one plan read. */
private[rules] final class SourceDigest(session: classic.SparkSession, seed: String) {
  import SourceDigest._

  private val conf = session.sessionState.conf
  private lazy val hadoopConf = session.sessionState.newHadoopConf()
  private val read = new java.util.IdentityHashMap[HadoopFsRelation, Source]()
  private val freshListings = mutable.HashMap[(Seq[Path], Map[String, String], Boolean, String), ListedFiles]()

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
      Map.empty,
      plan.output.map(attribute => attribute.exprId -> source.column(attribute.name)).toMap,
      inputs = Set(source.listing),
      parsed = source.parsed
    )
  }

  private def source(relation: HadoopFsRelation): Source = {
    val format = relation.fileFormat.getClass.getName
    if (!formats.contains(format)) Refused("UNKNOWN_SOURCE", format)
    val options = relation.options.iterator
      .map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
      .filterNot { case (key, _) => neutralOptions.contains(key) }
      .toSeq
      .sorted
    checkTolerance(relation, options.toMap)
    val (files, listing) = relation.location match {
      case index: InMemoryFileIndex if index.getClass == classOf[InMemoryFileIndex] =>
        indexed(index, format, relation.options, () => index)
      case index: CatalogFileIndex if index.getClass == classOf[CatalogFileIndex] =>
        indexed(index.filterPartitions(Nil), format, catalogOptions(index), () => index.filterPartitions(Nil))
      case other => Refused("UNKNOWN_SOURCE", other.getClass.getName)
    }
    val atom = Digest.of(
      "files",
      Seq(seed, format, relation.dataSchema.json, relation.partitionSchema.json, files)
        ++ options.flatMap { case (key, value) => Seq(key, value) })
    Source(atom, listing, textual.contains(format))
  }

  private def catalogOptions(index: CatalogFileIndex): Map[String, String] =
    if (index.table.partitionColumnNames.nonEmpty) Map.empty else index.table.storage.properties

  private def indexed(
      index: InMemoryFileIndex,
      format: String,
      options: Map[String, String],
      again: () => InMemoryFileIndex): (String, InputListing) = {
    val files = index.allFiles().filter(Listing.isData)
    if (files.size > maxFiles) Refused("TOO_MANY_FILES", files.size.toString)
    val partitioned = index.partitionSpec().partitionColumns.nonEmpty
    val listing = new Listing(session, hadoopConf, options, contents(format))
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
    val partitions = partitionDigest(index)
    val content = MessageDigest.getInstance("SHA-256")
    // All of them, and not the distinct ones: a path given twice is read twice.
    files.map(file => Digest.join("", Seq(file.getPath.toString, fresh.files(file.getPath).describe)))
      .sorted.foreach(line => content.update(line.getBytes(UTF_8)))
    content.update(partitions.getBytes(UTF_8))
    (Digest.hex(content.digest(), 16),
      new FileListing(
        index.rootPaths,
        fresh.files,
        partitions,
        fresh.racy(conf.getConf(RegionsConf.sourcesRacySeconds)),
        () => {
          val current = again()
          (listing.now(current.rootPaths, partitioned), partitionDigest(current))
        }
      ))
  }

  private def contents(format: String): FileContents =
    new FileContents(hadoopConf, conf.getConf(RegionsConf.sourcesVerify) == "footer", endings.get(format))

  private def partitionDigest(index: InMemoryFileIndex): String = {
    val spec = index.partitionSpec()
    val types = spec.partitionColumns.map(_.dataType)
    Digest.of(
      "partitions",
      spec.partitions.map(p => Digest.join(p.path.toString, Seq(ValueDigest.row(p.values, types)))).sorted)
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
    Form(Vector(atom), Set(atom), Map.empty, columns.toMap)
  }
}

private[rules] object SourceDigest {
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
  private val formats = textual ++ endings.keySet ++ Set(
    "execution.datasources.text.TextFileFormat",
    "execution.datasources.binaryfile.BinaryFileFormat",
    "avro.AvroFileFormat"
  ).map(prefix + _)

  // Where to find the files, which the listing tells, and how to write them.
  private val neutralOptions = Set("path", "paths", "basepath", "serialization.format", "compression", "codec")
}
