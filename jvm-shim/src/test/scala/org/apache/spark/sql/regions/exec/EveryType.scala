package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.Row

/** A value of every type that Spark SQL has, and of those that are odd. */
object EveryType {
  val everything = Seq(
    "true as b",
    "cast(null as boolean) as nb",
    "cast(1 as tinyint) as t",
    "cast(-2 as smallint) as sh",
    "3 as i",
    "9223372036854775807L as l",
    "cast('NaN' as float) as fnan",
    "cast(-0.0 as double) as zero",
    "double('NaN') as dnan",
    "double('-Infinity') as inf",
    "cast(1.23 as decimal(9,2)) as d9",
    "cast(-1.5 as decimal(18,4)) as d18",
    "cast('99999999999999999999999999999999999999' as decimal(38,0)) as d38",
    "'ü\\u0000x' as s",
    "'' as empty",
    "X'00ff' as bin",
    "date'0001-01-01' as ancient",
    "date'9999-12-31' as far",
    "timestamp'0001-01-01 00:00:00' as ats",
    "timestamp'1582-10-10 12:13:14.123456' as gap",
    "timestamp_ntz'1234-05-06 07:08:09.000001' as ntz",
    "interval '3-2' year to month as ym",
    "interval '1 02:03:04.567891' day to second as dt",
    "interval '5' hour as hours",
    "time'12:34:56.123456' as tm",
    "parse_json('{\"a\":[1,null,{\"b\":1.5}]}') as v",
    "cast(null as variant) as nv",
    "cast('Ab' as string collate UTF8_LCASE) as coll",
    "cast('x' as char(5)) as ch",
    "cast('x' as varchar(5)) as vch",
    "array(1, null, 3) as a",
    "cast(array() as array<string>) as ea",
    "array(named_struct('x', double('NaN'), 'y', cast(null as int))) as ast",
    "map(named_struct('k', 1, 'K', 'a'), array(map('z', -0.0D))) as m",
    "cast(null as struct<a:int,b:string>) as ns",
    "named_struct('a', cast(null as int), 'b', cast(null as struct<c:int>)) as sn",
    "named_struct('a b,;{}()\\t=.', 1, 'x', 2, 'X', 3) as odd",
    "named_struct('v', parse_json('1'), 't', time'01:02:03') as nest",
    "map(cast('Q' as string collate UTF8_LCASE), array(interval '1' month)) as mc"
  )

  /** The row, with equal text for equal bits only. */
  def bits(row: Row): String = row.toSeq.map(show).mkString("|")
  private def show(value: Any): String = value match {
    case d: Double => "d" + java.lang.Double.doubleToRawLongBits(d)
    case f: Float => "f" + java.lang.Float.floatToRawIntBits(f)
    case bytes: Array[Byte] => bytes.mkString("x", ",", "")
    case row: Row => bits(row)
    case map: scala.collection.Map[_, _] =>
      map.map { case (k, v) => show(k) + "->" + show(v) }.toSeq.sorted.mkString("{", ",", "}")
    case seq: scala.collection.Seq[_] => seq.map(show).mkString("[", ",", "]")
    case other => String.valueOf(other)
  }
}
