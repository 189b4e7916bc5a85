package org.apache.spark.sql.regions.control

import scala.util.control.NonFatal

import org.apache.spark.SparkConf
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, Literal, UnsafeProjection}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.ui.events.Redaction
import org.apache.spark.sql.regions.wire.WaitingRow
import org.apache.spark.sql.types._
import org.apache.spark.util.Utils

/** Values that people give as text, in the place of those that a query has. */
private[control] object GivenValues {
  private val notNull = " NOT NULL"

  /** Types as in DDL, of those whose values can be given so. */
  def types(columns: Seq[(String, DataType, Boolean)]): Map[String, String] =
    columns.collect {
      case (name, dataType, nullable) if readable(dataType) =>
        name -> (dataType.sql + (if (nullable) "" else notNull))
    }.toMap

  private def readable(dataType: DataType): Boolean = dataType match {
    case _: NumericType | _: StringType | BooleanType | BinaryType | _: DatetimeType => true
    case _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case _ => false
  }

  /** A text as a value, with Spark's message where it is none. */
  def read(text: String, dataType: DataType, zone: String): Either[String, Literal] =
    try
      Option(Cast(Literal(text), dataType, Some(zone), ansiEnabled = true).eval()).map(Literal(_, dataType))
        .toRight(s"Found ${Literal(text).sql}, expected ${dataType.sql}.")
    catch {
      case NonFatal(error) => Left(s"Found ${Literal(text).sql}, expected ${dataType.sql}. Hint: ${error.getMessage}")
    }

  /** Why values do not fit what they are given for; names that it does not have are for others to tell. */
  def unfit(row: WaitingRow, values: Map[String, Option[String]]): Option[String] = {
    def expected(name: String) = row.types.get(name)
      .orElse(row.types.values.headOption.filter(_ => name.isEmpty && row.types.size == 1))
    val found = for ((name, Some(text)) <- values; declared <- expected(name))
      yield read(text, CatalystSqlParser.parseDataType(declared.stripSuffix(notNull)), SQLConf.get.sessionLocalTimeZone)
    found.collectFirst { case Left(why) => why }
  }

  /** Of text that fits. */
  def value(text: Option[String], dataType: DataType, zone: String): Any = text.map(each =>
    read(each, dataType, zone).fold(why => throw new IllegalStateException(why), _.value)).orNull

  /** A row with other values, by position. */
  def row(from: InternalRow, types: Seq[DataType], others: Map[Int, Any]): InternalRow = {
    val values = from.toSeq(types).zipWithIndex.map { case (value, i) => others.getOrElse(i, value) }
    UnsafeProjection.create(types.toArray)(InternalRow.fromSeq(values))
  }

  /** Values by column, as they may be shown. */
  def redacted(conf: SparkConf, values: Seq[(String, String)]): Seq[(String, String)] = {
    val text = Redaction(conf, SQLConf.get.stringRedactionPattern)
    Utils.redact(conf, values).map { case (name, value) => name -> text(value) }.toSeq
  }

  /** A row as it may be shown. An error can tell values, also of columns that are hidden by their names. */
  def redacted(conf: SparkConf, row: WaitingRow): WaitingRow = {
    val text = Redaction(conf, SQLConf.get.stringRedactionPattern)
    val values = redacted(conf, row.values.toSeq)
    val hidden = values.filter { case (name, shown) => shown != row.values(name) && row.values(name).nonEmpty }
    val error = hidden.foldLeft(row.error) { case (error, (name, shown)) => error.replace(row.values(name), shown) }
    val types = if (error.isEmpty) row.types else row.types.map { case (name, each) => text(name) -> each }
    row.copy(values = values.toMap, why = text(row.why), error = text(error), types = types)
  }

  /** The same of values that it was given. */
  def hidden(conf: SparkConf, row: WaitingRow): WaitingRow = {
    val shown = redacted(conf, row.fixed.toSeq.collect { case (name, Some(value)) => name -> value })
    row.copy(fixed = row.fixed ++ shown.map { case (name, value) => name -> Some(value) })
  }
}
