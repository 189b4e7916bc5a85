package org.apache.spark.sql.regions.skew

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.LeafExpression
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * The number of the map task that writes the row: the last sort key of a range partitioning whose ties may be spread.
 *
 * It depends on which task has the row, never on its position there, so that a repeated task gives each row the same
 * number. Unlike `spark_partition_id()` it needs no initialization, which a partitioning's expressions do not get.
 */
final case class MapTask() extends LeafExpression {
  override def nullable: Boolean = false
  override def dataType: DataType = IntegerType
  override def eval(input: InternalRow): Any = TaskContext.getPartitionId()

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ev.copy(
      code = code"final int ${ev.value} = ${classOf[TaskContext].getName}.getPartitionId();",
      isNull = FalseLiteral)

  override def toString: String = "map task"
}
