package org.apache.spark.sql.regions.platforms

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** A value of Catalyst's as the text that a typed plan has for it. */
private[platforms] object LiteralText {

  /**
   * Dates as days, instants and times as microseconds, decimals with all digits of their scale, binaries in hex; None of other types, and
   * of a text that is no text.
   *
   * @param value not null
   */
  def apply(value: Any, dataType: DataType): Option[String] = (value, dataType) match {
    case (flag: Boolean, BooleanType) => Some(flag.toString)
    case (number: Byte, ByteType) => Some(number.toString)
    case (number: Short, ShortType) => Some(number.toString)
    case (number: Int, IntegerType | DateType) => Some(number.toString)
    case (number: Long, LongType | TimestampType | TimestampNTZType) => Some(number.toString)
    case (number: Float, FloatType) => Some(number.toString)
    case (number: Double, DoubleType) => Some(number.toString)
    case (number: Decimal, _: DecimalType) => Some(number.toJavaBigDecimal.toPlainString)
    case (text: UTF8String, _: StringType) => Some(text.toString).filter(UTF8String.fromString(_).binaryEquals(text))
    case (bytes: Array[Byte], BinaryType) => Some(bytes.map(byte => f"${byte & 0xff}%02x").mkString)
    case _ => None
  }
}
