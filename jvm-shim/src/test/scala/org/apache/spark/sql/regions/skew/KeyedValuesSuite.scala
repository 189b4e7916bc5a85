package org.apache.spark.sql.regions.skew

import org.apache.spark.SparkException
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.regions.exec.ExecSuite

class KeyedValuesSuite extends ExecSuite {

  private def plan(df: DataFrame): SparkPlan = df.asInstanceOf[Dataset[_]].queryExecution.executedPlan

  private def joined(rows: DataFrame, values: DataFrame, keys: Int, tableBytes: Long): Seq[String] = {
    val (left, right) = (plan(rows), plan(values))
    val exec = KeyedValuesExec(left, right, left.output.take(keys), right.output.take(keys), tableBytes)
    val types = exec.output.map(_.dataType)
    exec.execute().map(
      _.copy().toSeq(types).map {
        case bytes: Array[Byte] => bytes.toSeq.toString
        case other => String.valueOf(other)
      }.mkString("|")).collect().toSeq.sorted
  }

  private val keys = Seq(
    "if(id % 7 = 0, null, id % 5)" -> "bigint with nulls",
    "if(id % 7 = 0, null, concat('k', id % 5))" -> "string",
    "cast(id % 5 as decimal(30, 4))" -> "wide decimal",
    "if(id % 5 = 0, double('NaN'), double(id % 5))" -> "NaN",
    "cast(cast(id % 5 as string) as binary)" -> "binary",
    "named_struct('a', id % 3, 'b', if(id % 2 = 0, null, 'x'))" -> "struct"
  )

  keys.foreach { case (key, name) =>
    test(s"each row has its key's value, looked up or sorted: $name") {
      withConf("spark.sql.adaptive.enabled" -> "false", "spark.sql.shuffle.partitions" -> "3") {
        val rows = spark.range(0, 200, 1, 4).selectExpr(s"$key as k", "id % 2 as second", "id as row")
          .repartition(3, expr("second"))
        val values = rows.groupBy("second", "k").count()
          .repartition(3, expr("second")).select("k", "second", "count")
        val looked = joined(rows, values, 2, KeyedValues.tableBytes)
        val counted = "r.k <=> v.k and r.second = v.second"
        val bySpark = rows.alias("r").join(values.alias("v"), expr(counted))
          .groupBy("row").agg(expr("max(count)")).collect().map(row => s"${row.get(0)}|${row.get(1)}").toSeq.sorted
        assertEquals(looked.length, 200)
        assertEquals(looked.map(_.split("\\|")).map(row => s"${row(2)}|${row.last}").sorted, bySpark)
        Seq(0L, 500L, 1500L).foreach(bytes => assertEquals(joined(rows, values, 2, bytes), looked, s"$bytes bytes"))
      }
    }
  }

  test("a row whose key has no value is an error") {
    val rows = spark.range(0, 5, 1, 1).selectExpr("id as k")
    val values = spark.range(0, 4, 1, 1).selectExpr("id as k", "id * 2 as v")
    Seq(0L, KeyedValues.tableBytes).foreach { bytes =>
      val failed = intercept[SparkException](joined(rows, values, 1, bytes))
      assert(failed.getMessage.contains("a row without the value of its key"), failed.getMessage)
    }
  }
}
