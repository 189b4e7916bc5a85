package org.apache.spark.sql.regions.exec

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{BlockLocation, Path}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions.{BoundedMap, Refusal}
import org.apache.spark.sql.types.StructType

final case class StoredFile(name: String, partition: Int, rows: Long, bytes: Long, modified: Long)

/**
 * A committed entry as its manifest describes it.
 *
 * @param columns digest of each stored column
 * @param schema c0 … cn with the types, nullability and metadata that the stored plan's output had
 * @param files in partition order
 * @param layout None if the order of the rows is known for no query
 */
final case class StoredEntry(
    entry: String,
    location: String,
    lineage: String,
    columns: IndexedSeq[String],
    schema: StructType,
    rows: Long,
    bytes: Long,
    files: IndexedSeq[StoredFile],
    layout: Option[StoredLayout] = None)

/** Opens entries and finds out whether they are still what they were. One directory listing each, no stat per file. */
object Entries {

  /** Those read last; a manifest is written once. */
  private val manifests = BoundedMap[(String, String, Long, Long), StoredEntry](1000)

  /**
   * Reads and checks the manifest and that every file is there, plain, and as long and old as recorded. Never throws.
   */
  def open(session: SparkSession, location: String, entryId: String): Either[Refusal, StoredEntry] = {
    val conf = session.sessionState.newHadoopConf()
    guarded(location) {
      val directory = new Path(location)
      val fs = StoreFiles.system(directory, conf)
      val found = StoreFiles.list(fs, directory)
      found.get(StoreFiles.manifestName) match {
        case None => Left(Refusal("ENTRY_MISSING", s"no manifest in $location"))
        case Some(file) if !file.plainFile || file.length > Manifest.maxLength =>
          Left(Refusal("ENTRY_DAMAGED", s"the manifest in $location is no plain file"))
        case Some(file) =>
          val known = (location, entryId, file.length, file.modified)
          Option(manifests.get(known)) match {
            case Some(entry) => compare(entry, found).toLeft(entry)
            case None =>
              val text = StoreFiles.read(fs, new Path(directory, StoreFiles.manifestName), file.length.toInt)
              Manifest.read(text, location, entryId) match {
                case Left(problem) => Left(Refusal("ENTRY_DAMAGED", s"manifest in $location: $problem"))
                case Right(entry) =>
                  manifests.put(known, entry)
                  compare(entry, found).toLeft(entry)
              }
          }
      }
    }
  }

  /** Where the blocks of each file are, if all files are still as recorded. */
  private[regions] def check(
      entry: StoredEntry,
      conf: Configuration): Either[Refusal, Map[String, Array[BlockLocation]]] =
    guarded(entry.location) {
      val directory = new Path(entry.location)
      val found = StoreFiles.list(StoreFiles.system(directory, conf), directory)
      if (!found.contains(StoreFiles.manifestName)) Left(Refusal("ENTRY_MISSING", s"no manifest in ${entry.location}"))
      else compare(entry, found).toLeft(found.map { case (name, file) => name -> file.blocks })
    }

  private def compare(entry: StoredEntry, found: Map[String, Found]): Option[Refusal] =
    entry.files.iterator.flatMap { file =>
      found.get(file.name) match {
        case None => Some(Refusal("ENTRY_MISSING", s"${file.name} of ${entry.location}"))
        case Some(seen) if !seen.plainFile => Some(Refusal("ENTRY_DAMAGED", s"${file.name} is no plain file"))
        case Some(seen) if seen.length != file.bytes =>
          Some(Refusal("ENTRY_DAMAGED", s"${file.name} has ${seen.length} bytes, recorded ${file.bytes}"))
        case Some(seen) if seen.modified != file.modified =>
          Some(Refusal("ENTRY_DAMAGED", s"${file.name} was modified since"))
        case _ => None
      }
    }.nextOption()

  private def guarded[T](location: String)(body: => Either[Refusal, T]): Either[Refusal, T] =
    try body
    catch {
      case _: FileNotFoundException => Left(Refusal("ENTRY_MISSING", location))
      case Failures(error) => Left(Refusal("ENTRY_DAMAGED", s"$location: ${Failures.text(error)}"))
    }
}
