package org.apache.spark.sql.regions.platforms

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.types.FloatingPointPrecision
import org.apache.arrow.vector.types.pojo.{ArrowType, Field, Schema}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.regions.{Refusal, wire}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

class EngineRowsSuite extends munit.FunSuite {
  private def schema(types: ArrowType*): Schema =
    new Schema(types.zipWithIndex.map { case (each, i) => Field.nullable(s"c$i", each) }.asJava)

  private def wanted(types: DataType*): StructType =
    StructType(types.zipWithIndex.map { case (each, i) => StructField(s"c$i", each) })

  test("only the forms that Spark reads these types from") {
    val micros = org.apache.arrow.vector.types.TimeUnit.MICROSECOND
    val fits = Seq[(ArrowType, DataType)](
      new ArrowType.Int(32, true) -> IntegerType,
      new ArrowType.Int(64, true) -> LongType,
      new ArrowType.Decimal(7, 2, 128) -> DecimalType(7, 2),
      new ArrowType.Utf8() -> StringType,
      new ArrowType.Timestamp(micros, "Europe/Berlin") -> TimestampType,
      new ArrowType.Timestamp(micros, null) -> TimestampNTZType,
      new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE) -> DoubleType
    )
    fits.foreach { case (arrow, spark) => assertEquals(EngineRows.misfit(schema(arrow), wanted(spark)), None) }
    val misfits = Seq[(ArrowType, DataType)](
      new ArrowType.Int(64, true) -> IntegerType,
      new ArrowType.Int(32, false) -> IntegerType,
      new ArrowType.Decimal(38, 2, 128) -> DecimalType(7, 2),
      new ArrowType.LargeUtf8() -> StringType,
      new ArrowType.Timestamp(micros, "UTC") -> TimestampNTZType,
      new ArrowType.Timestamp(micros, null) -> TimestampType,
      new ArrowType.Timestamp(org.apache.arrow.vector.types.TimeUnit.NANOSECOND, null) -> TimestampNTZType,
      new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE) -> DoubleType
    )
    misfits.foreach { case (arrow, spark) =>
      assert(EngineRows.misfit(schema(arrow), wanted(spark)).isDefined, s"$arrow as $spark")
    }
    assert(EngineRows.misfit(schema(), wanted(LongType)).isDefined)
  }

  test("rows come as they were, batch by batch") {
    val types = wanted(LongType, StringType, DecimalType(7, 2))
    def row(i: Long) = InternalRow(i, UTF8String.fromString(s"ü$i"), Decimal(i * 5, 7, 2))
    val batches = EngineBatches(types, Seq((0L until 3).map(row), Nil, (3L until 5).map(row)))
    val found = EngineRows.decode(batches.iterator, types)
      .map(r => (r.getLong(0), r.getUTF8String(1).toString, r.getDecimal(2, 7, 2).toString)).toList
    assertEquals(found, (0L until 5).map(i => (i, s"ü$i", Decimal(i * 5, 7, 2).toString)).toList)
    assertEquals(EngineRows.decode(Iterator.empty, types).toList, Nil)
  }
}
