package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.regions.{Refusal, SparkMinor}
import org.apache.spark.sql.types._

/** Which types an entry can hold exactly, and the Parquet form they take. */
object StorableTypes {

  /** Why rows of this schema cannot be stored; None if they can. */
  def refusal(schema: StructType): Option[Refusal] =
    if (schema.isEmpty) Some(Refusal("NO_COLUMNS"))
    else {
      val problems = schema.fields.iterator.flatMap(field => problem(field.dataType))
      problems.nextOption().map(Refusal("TYPE_NOT_STORABLE", _))
    }

  /**
   * The schema of the Parquet file: values without what only the plan needs. Everything is nullable, because Spark's
   * nullability is a promise that a bug can break; nested fields are numbered, because Parquet cannot hold every name
   * and a case-insensitive session cannot read two names that differ in case; collations are a matter of comparison,
   * not of bytes.
   */
  def physical(schema: StructType): StructType =
    StructType(schema.fields.zipWithIndex.map { case (field, i) => StructField(s"c$i", physical(field.dataType)) })

  def physical(dataType: DataType): DataType = dataType match {
    case struct: StructType =>
      StructType(struct.fields.zipWithIndex.map { case (field, i) => StructField(s"f$i", physical(field.dataType)) })
    case ArrayType(element, _) => ArrayType(physical(element))
    case MapType(key, value, _) => MapType(physical(key), physical(value))
    case _: StringType => StringType
    case other => other
  }

  // A list of what is known to come back, not of what is known to fail: new types of Spark are refused until tried.
  private def problem(dataType: DataType): Option[String] = dataType match {
    case struct: StructType if struct.isEmpty => Some("struct without fields")
    case struct: StructType => struct.fields.iterator.flatMap(field => problem(field.dataType)).nextOption()
    case ArrayType(element, _) => problem(element)
    case MapType(key, value, _) => problem(key).orElse(problem(value))
    // A user-defined type would have to be instantiated from the name that the manifest gives.
    case udt: UserDefinedType[_] => Some(s"user-defined type ${udt.catalogString}")
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | BinaryType | DateType |
        TimestampType | TimestampNTZType | VariantType =>
      parquetProblem(dataType)
    case _: DecimalType | _: StringType | _: YearMonthIntervalType | _: DayTimeIntervalType =>
      parquetProblem(dataType)
    case other if SparkMinor.timePrecision(other).exists(_ <= 6) => parquetProblem(other) // microseconds
    case other => Some(other.catalogString)
  }

  private def parquetProblem(dataType: DataType): Option[String] =
    if (new ParquetFileFormat().supportDataType(physical(dataType))) None else Some(dataType.catalogString)
}
