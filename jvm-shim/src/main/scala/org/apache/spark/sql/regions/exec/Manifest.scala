package org.apache.spark.sql.regions.exec

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.sql.types.{DataType, StructType}

/** The text form of a stored entry, docs/protocol.md's store layout. Reading it trusts nothing. */
private[exec] object Manifest {
  val version = 2

  /** Of the first version, which said nothing of the layout. */
  private val versions = 1L to version
  val maxLength: Int = 64 << 20
  private val mapper = new ObjectMapper()
  private val fileName = "part-[0-9]{5,10}-[0-9a-f-]{36}\\.parquet".r

  def write(entry: StoredEntry): String = {
    val root = mapper.createObjectNode()
    root.put("version", version).put("entry", entry.entry).put("lineage", entry.lineage)
    val columns = root.putArray("columns")
    entry.columns.foreach(columns.add)
    root.put("schema", entry.schema.json).put("rows", entry.rows).put("bytes", entry.bytes)
    val files = root.putArray("files")
    entry.files.foreach { file =>
      files.addObject()
        .put("name", file.name).put("partition", file.partition).put("rows", file.rows).put("bytes", file.bytes)
        .put("modified", file.modified)
    }
    entry.layout.foreach(layout => writeLayout(root.putObject("layout"), layout))
    mapper.writeValueAsString(root)
  }

  /** @return what is wrong with it, or the entry */
  def read(text: Array[Byte], location: String, id: String): Either[String, StoredEntry] = {
    val root = mapper.readTree(text)
    val files = members(root, "files").map { file =>
      StoredFile(
        string(file, "name"), number(file, "partition").toInt, number(file, "rows"), number(file, "bytes"),
        number(file, "modified"))
    }
    val columns = members(root, "columns").map(_.asText())
    val schema = schemaOf(string(root, "schema"))
    val entry = StoredEntry(
      string(root, "entry"),
      location,
      string(root, "lineage"),
      columns,
      schema,
      number(root, "rows"),
      number(root, "bytes"),
      files,
      Option(root.get("layout")).map(layoutOf)
    )
    if (!versions.contains(number(root, "version"))) Left(s"version ${root.get("version")}, expected $version")
    else if (entry.entry != id) Left(s"it is of entry ${entry.entry}")
    else problem(entry).toLeft(entry)
  }

  private def problem(entry: StoredEntry): Option[String] = {
    val partitions = entry.files.map(_.partition)
    entry.files.find(file => !fileName.matches(file.name)).map(file => s"file name ${file.name.take(80)}")
      .orElse(when(entry.columns.size != entry.schema.size)("columns and schema differ"))
      .orElse(when(entry.schema.fieldNames.zipWithIndex.exists { case (name, i) => name != s"c$i" })("column names"))
      .orElse(when(partitions.zip(partitions.drop(1)).exists { case (a, b) => a >= b })("partitions are not in order"))
      .orElse(when(entry.files.map(_.name).distinct.size != entry.files.size)("a file is named twice"))
      .orElse(when(entry.files.map(_.rows).sum != entry.rows)("row counts differ"))
      .orElse(when(entry.files.map(_.bytes).sum != entry.bytes)("byte counts differ"))
      .orElse(entry.layout.flatMap(layoutProblem(_, partitions)))
      .orElse(StorableTypes.refusal(entry.schema).map(_.detail))
  }

  private def layoutProblem(layout: StoredLayout, files: Seq[Int]): Option[String] = {
    val boundaries = layout.boundaries
    when(files.exists(_ >= layout.partitions))("a file of a partition that there is not")
      .orElse(when(boundaries.nonEmpty && boundaries.size != layout.partitions)("partitions and boundaries differ"))
      .orElse(when(boundaries.exists { case (from, to) => from > to })("boundaries are not in order"))
  }

  private def writeLayout(node: ObjectNode, layout: StoredLayout): Unit = {
    node.put("exact", layout.plan.exact).put("beside", layout.plan.beside).put("shuffles", layout.plan.shuffles)
      .put("partitions", layout.partitions).put("planned", layout.planned).put("single", layout.single)
    layout.plan.shape.foreach(node.put("shape", _))
    layout.plan.origin.foreach(node.put("origin", _))
    val boundaries = node.putArray("boundaries")
    layout.boundaries.foreach { case (from, to) => boundaries.addArray().add(from).add(to) }
  }

  private def layoutOf(node: JsonNode): StoredLayout = {
    def flag(name: String): Boolean = {
      val value = node.get(name)
      if (value == null || !value.isBoolean) throw new IllegalArgumentException(s"$name is no flag")
      value.asBoolean()
    }
    def optional(name: String): Option[String] = if (node.has(name)) Some(string(node, name)) else None
    val plan =
      Layout(string(node, "exact"), optional("shape"), string(node, "beside"), flag("shuffles"), optional("origin"))
    val boundaries = members(node, "boundaries").map(pair => (pair.path(0).asInt(-1), pair.path(1).asInt(-1)))
    StoredLayout(plan, number(node, "partitions").toInt, flag("planned"), flag("single"), boundaries)
  }

  private def when(bad: Boolean)(text: String): Option[String] = if (bad) Some(text) else None

  private def schemaOf(text: String): StructType = {
    // Parsing a user-defined type instantiates a class by its name.
    if (mentionsUdt(mapper.readTree(text))) throw new IllegalArgumentException("user-defined type")
    DataType.fromJson(text).asInstanceOf[StructType]
  }

  private def mentionsUdt(node: JsonNode): Boolean =
    Option(node.get("type")).exists(_.asText() == "udt") || node.elements().asScala.exists(mentionsUdt)

  private def members(node: JsonNode, name: String): IndexedSeq[JsonNode] = {
    val array = node.get(name)
    if (array == null || !array.isArray) throw new IllegalArgumentException(s"$name is not a list")
    array.elements().asScala.toIndexedSeq
  }

  private def string(node: JsonNode, name: String): String = {
    val value = node.get(name)
    if (value == null || !value.isTextual) throw new IllegalArgumentException(s"$name is not a string")
    value.asText()
  }

  private def number(node: JsonNode, name: String): Long = {
    val value = node.get(name)
    if (value == null || !value.isIntegralNumber || !value.canConvertToLong || value.asLong() < 0) {
      throw new IllegalArgumentException(s"$name is not a count")
    }
    value.asLong()
  }
}
