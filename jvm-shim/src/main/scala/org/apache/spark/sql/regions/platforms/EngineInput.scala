package org.apache.spark.sql.regions.platforms

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{Refusal, wire}
import org.apache.spark.sql.types.{StructField, StructType}

/**
 * A Parquet file as Spark lists it.
 *
 * @param modified milliseconds since 1970
 * @param values of its relation's partition columns
 */
private[regions] final case class InputFile(path: String, bytes: Long, modified: Long, values: InternalRow)

/**
 * A relation whose files a process on this machine can read as Spark does.
 *
 * @param schema of the files
 * @param partition columns with one value a file
 * @param rebase what to do with dates and times of files that do not tell their calendar
 */
private[regions] final case class EngineInput(
    files: Seq[InputFile],
    schema: StructType,
    partition: StructType,
    rebase: String) {

  def bytes: Long = files.map(_.bytes).sum

  /** Of a file, each partition column's value as a text. */
  def texts(file: InputFile): Seq[Option[String]] = partition.fields.toSeq.zipWithIndex.map { case (field, i) =>
    Option(file.values.get(i, field.dataType)).flatMap(LiteralText(_, field.dataType))
  }

  /** What a statement reads of it by a name. */
  def table(columns: Seq[String], partitions: Seq[String]): Either[Refusal, wire.EngineTable] = {
    val data = columns.flatMap(name => schema.fields.find(_.name == name))
    val places = partitions.map(partition.fieldNames.indexOf(_)).filter(_ >= 0)
    if (data.size != columns.size || places.size != partitions.size)
      Left(Refusal("NOT_COVERED", (columns ++ partitions).mkString(", ")))
    else {
      val listed = files.map { file =>
        val values = texts(file)
        wire.EngineFile(file.path, file.bytes, file.modified, places.map(values))
      }
      Right(wire.EngineTable(listed, data.map(column), places.map(i => column(partition(i)))))
    }
  }

  private def column(field: StructField): wire.EngineColumn = wire.EngineColumn(field.name, field.dataType.sql)
}

private[regions] object EngineInput {

  /** Files of one relation: their list goes to the planner and to the engine. */
  val mostFiles = 2000

  /** Whether the relation may be one, found without listing anything. */
  def possible(relation: LogicalRelation, session: SparkSession, mostBytes: Long): Boolean =
    plain(relation, session).exists(_.location.sizeInBytes <= mostBytes)

  /** Nothing where Spark may read something else than what the engine does. */
  def of(relation: LogicalRelation, session: SparkSession): Option[EngineInput] =
    plain(relation, session).flatMap { source =>
      val partition = source.partitionSchema
      val names = source.schema.fieldNames.toSet
      val files = source.location.listFiles(Nil, Nil).flatMap(directory => directory.files.map(input(directory, _)))
      val options = new ParquetOptions(CaseInsensitiveMap(source.options), session.sessionState.conf)
      val told = files.map(_.values).distinct.forall(values =>
        partition.fields.zipWithIndex.forall { case (field, i) =>
          values.isNullAt(i) || LiteralText(values.get(i, field.dataType), field.dataType).isDefined
        })
      Option.when(files.size <= mostFiles && told && relation.output.forall(attribute => names(attribute.name))) {
        EngineInput(files, source.dataSchema, partition, options.datetimeRebaseModeInRead)
      }
    }

  private def input(directory: PartitionDirectory, file: FileStatusWithMetadata): InputFile =
    InputFile(file.getPath.toUri.getPath, file.getLen, file.getModificationTime, directory.values)

  private def plain(relation: LogicalRelation, session: SparkSession): Option[HadoopFsRelation] =
    Some(relation.relation).collect {
      case source: HadoopFsRelation
          if source.fileFormat.getClass == classOf[ParquetFileFormat] && listed(source.location.getClass) &&
            source.location.rootPaths.forall(_.toUri.getScheme == "file") && source.overlappedPartCols.isEmpty &&
            // A column that was added with a default has that in files that lack it, not null.
            !source.dataSchema.exists(_.getExistenceDefaultValue().isDefined) &&
            // The engine finds columns by their names.
            !session.sessionState.conf.getConf(SQLConf.PARQUET_FIELD_ID_READ_ENABLED) =>
        source
    }

  private val listed: Set[Class[_]] = Set(classOf[InMemoryFileIndex], classOf[CatalogFileIndex])
}
