package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, Expression, PlanExpression}
import org.apache.spark.sql.execution.datasources.DataSourceStrategy
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types._

/** Conjuncts that Parquet can skip row groups by. */
private[exec] object PushedFilters {
  def pushable(conjunct: Expression): Boolean =
    conjunct.deterministic && conjunct.references.nonEmpty &&
      conjunct.references.forall(attribute => comparable(attribute.dataType)) &&
      !conjunct.exists(_.isInstanceOf[PlanExpression[_]]) &&
      DataSourceStrategy.translateFilter(conjunct, false).isDefined

  def translate(conjuncts: Seq[Expression], output: Seq[Attribute], columns: Seq[Int]): Seq[Filter] = {
    val stored = AttributeMap(output.zip(columns).map { case (a, column) => a -> a.withName(s"c$column") })
    conjuncts.flatMap { conjunct =>
      DataSourceStrategy.translateFilter(conjunct.transform { case a: Attribute => stored.getOrElse(a, a) }, false)
    }
  }

  // Not floating point: Parquet takes 0.0 and -0.0 for different values and leaves NaN out of its statistics. Not
  // collated strings: Parquet compares bytes.
  private def comparable(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType |
        BinaryType =>
      true
    case _: DecimalType => true
    case string: StringType => string == StringType
    case _ => false
  }
}
