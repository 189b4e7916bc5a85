package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{CalendarInterval, UTF8String, VariantVal}

/** Types and Catalyst values as text that is equal exactly for equal types and bit-equal values. */
private[rules] object ValueDigest {

  /** Names of struct fields count; nullability and metadata do not: neither changes a value. */
  def typeKey(dataType: DataType): String = dataType match {
    case StructType(fields) =>
      Digest.join("struct", fields.toSeq.flatMap(field => Seq(field.name, typeKey(field.dataType))))
    case ArrayType(element, _) => Digest.join("array", Seq(typeKey(element)))
    case MapType(key, value, _) => Digest.join("map", Seq(typeKey(key), typeKey(value)))
    case udt: UserDefinedType[_] => Digest.join("udt", Seq(udt.getClass.getName, typeKey(udt.sqlType)))
    case ObjectType(cls) => Digest.join("object", Seq(cls.getName))
    case string: StringType => string.typeName
    case other => other.catalogString
  }

  /** Grouping by a value of this type gives back the very bits that went in. */
  def groupsExactly(dataType: DataType): Boolean = dataType match {
    case FloatType | DoubleType | CalendarIntervalType | VariantType | _: MapType => false
    case StructType(fields) => fields.forall(field => groupsExactly(field.dataType))
    case ArrayType(element, _) => groupsExactly(element)
    case udt: UserDefinedType[_] => groupsExactly(udt.sqlType)
    case string: StringType => string.supportsBinaryEquality
    case _ => true
  }

  /** Values that compare as equal but differ, so that which one a group keeps depends on the order of rows. */
  def hasEqualButDifferent(dataType: DataType): Boolean =
    dataType.existsRecursively {
      case string: StringType => !string.supportsBinaryEquality
      case _ => false
    }

  def apply(value: Any, dataType: DataType): String = (value, dataType) match {
    case (null, _) => "null"
    case (number: Double, _) => "d" + java.lang.Double.doubleToRawLongBits(number).toHexString
    case (number: Float, _) => "f" + java.lang.Float.floatToRawIntBits(number).toHexString
    case (plain @ (_: Boolean | _: Byte | _: Short | _: Int | _: Long), _) => plain.toString
    case (text: UTF8String, _) => hex(text.getBytes)
    case (bytes: Array[Byte], _) => hex(bytes)
    case (decimal: Decimal, _) =>
      val exact = decimal.toJavaBigDecimal
      s"${exact.unscaledValue}e${exact.scale}"
    case (interval: CalendarInterval, _) => s"${interval.months},${interval.days},${interval.microseconds}"
    case (variant: VariantVal, _) => hex(variant.getValue) + "," + hex(variant.getMetadata)
    case (_, udt: UserDefinedType[_]) => apply(value, udt.sqlType)
    case (row: InternalRow, StructType(fields)) => this.row(row, fields.map(_.dataType).toSeq)
    case (array: ArrayData, ArrayType(element, _)) => this.array(array, element)
    case (map: MapData, MapType(key, item, _)) =>
      Digest.join("map", Seq(array(map.keyArray(), key), array(map.valueArray(), item)))
    case (other, _) => Refused("UNDIGESTIBLE_EXPRESSION", s"literal of ${other.getClass.getName}")
  }

  def row(row: InternalRow, types: Seq[DataType]): String = {
    val parts = mutable.ArrayBuffer[String]()
    var i = 0
    types.foreach { dataType =>
      parts += (if (row.isNullAt(i)) "null" else apply(row.get(i, dataType), dataType))
      i += 1
    }
    Digest.join("row", parts)
  }

  private def array(array: ArrayData, element: DataType): String =
    Digest.join(
      "array",
      (0 until array.numElements()).map(i =>
        if (array.isNullAt(i)) "null" else apply(array.get(i, element), element)))

  private def hex(bytes: Array[Byte]): String = "x" + Digest.hex(bytes, bytes.length)
}
