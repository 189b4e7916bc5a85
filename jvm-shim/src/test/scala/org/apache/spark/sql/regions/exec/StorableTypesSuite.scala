package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._

class StorableTypesSuite extends ExecSuite {
  private val everything = Seq(
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

  private def frameOfAll =
    spark.range(0, 6, 1, 3).selectExpr(("case when id % 2 = 0 then id end as e" +: everything): _*)

  private def names = everything.map(_.split(" as ").last.trim)

  private def bits(row: Row): String = row.toSeq.map(show).mkString("|")
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

  for {
    vectorized <- Seq("true", "false")
    codegen <- Seq("true", "false")
    hostile <- Seq(true, false)
  } test(s"every storable type comes back exactly: vectorized=$vectorized codegen=$codegen hostile confs=$hostile") {
    val confs = if (!hostile) Nil
    else Seq(
      "spark.sql.parquet.datetimeRebaseModeInWrite" -> "EXCEPTION",
      "spark.sql.parquet.int96RebaseModeInWrite" -> "LEGACY",
      "spark.sql.parquet.datetimeRebaseModeInRead" -> "LEGACY",
      "spark.sql.parquet.outputTimestampType" -> "INT96",
      "spark.sql.parquet.writeLegacyFormat" -> "true",
      "spark.sql.parquet.compression.codec" -> "gzip",
      "spark.sql.parquet.binaryAsString" -> "true",
      "spark.sql.session.timeZone" -> "Asia/Kathmandu"
    )
    withConf(
      confs ++ Seq(
        "spark.sql.parquet.enableVectorizedReader" -> vectorized,
        "spark.sql.timeType.enabled" -> "true",
        "spark.sql.codegen.wholeStage" -> codegen): _*) {
      val df = frameOfAll
      val again = roundTrip(df)
      assertEquals(again.schema, df.schema)
      assertEquals(again.collect().map(bits).toSeq, df.collect().map(bits).toSeq)
      if (hostile && codegen == "true") names.foreach { name =>
        def column(of: DataFrame) = of.select(s"`$name`").collect().map(bits).toSeq
        assertEquals(column(again), column(df))
      }
    }
  }

  test("what cannot be stored is refused, and its query runs") {
    val refused = Seq(
      "null as void", "array(null) as av",
      "make_interval(0, 1, 2) as ci", "named_struct('x', make_interval(0, 1)) as sci")
    refused.foreach { text =>
      val df = spark.range(3).selectExpr(text)
      val store = storeFor(df)
      assertEquals(tee(df, store).collect().length, 3)
      assertEquals(store.abandoned().code, "TYPE_NOT_STORABLE", text)
      assert(!store.directory.exists())
    }
    assertEquals(StorableTypes.refusal(StructType(Nil)).map(_.code), Some("TYPE_NOT_STORABLE"))
    assertEquals(
      StorableTypes.refusal(new StructType().add("s", new StructType())).map(_.detail), Some("struct without fields"))
    assert(StorableTypes.refusal(new StructType().add("t", ObjectType(classOf[String]))).isDefined)
  }

  test("duplicate and odd column names, and metadata") {
    val metadata = new MetadataBuilder().putString("comment", "x").build()
    val df = spark.range(5).select(col("id").as("a.b`", metadata), col("id").as("A"), (col("id") + 1).as("A"))
    val again = roundTrip(df)
    assertEquals(again.schema, df.schema)
    assertEquals(sorted(again.collect()), sorted(df.collect()))
  }
}
