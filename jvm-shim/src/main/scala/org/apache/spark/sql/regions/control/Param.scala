package org.apache.spark.sql.regions.control

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, LeafExpression, Literal, Nondeterministic}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.regions.wire.TaskAttempt
import org.apache.spark.sql.types._

/**
 * A value that may be changed while queries run: of each row the one that holds then. Not deterministic, so that Spark neither pushes
 * it into a scan nor prunes partitions by it, and a value that lets more pass finds the rows.
 *
 * @param default until it is set, as text
 */
final case class Param(name: String, dataType: DataType, default: String)
    extends LeafExpression with Nondeterministic with CodegenFallback {
  override def nullable: Boolean = false
  override def prettyName: String = Param.function
  override def toString: String = s"$prettyName($name, $default)"

  @transient private var value: Param.Value = _

  override protected def initializeInternal(partition: Int): Unit = value = new Param.Value(this)
  override protected def evalInternal(row: InternalRow): Any = value.next()
}

object Param {
  val function = "spark_regions_param"

  /** `spark_regions_param('name', default)`; the default itself where nobody can change it. */
  def build(arguments: Seq[Expression]): Expression = arguments match {
    case Seq(Literal(name, StringType), default) if name != null && default.foldable && kinds(default.dataType) =>
      val dataType = default.dataType match {
        // What it is set to may have other digits.
        case _: DecimalType => DecimalType.SYSTEM_DEFAULT
        case other => other
      }
      val first = Literal(Cast(default, dataType).eval(), dataType)
      require(first.value != null, s"Found NULL as $function('$name', …), expected a value.")
      ControlDriver.current.fold[Expression](first)(_.declare(Param(name.toString, dataType, text(first))))
    case _ => throw new IllegalArgumentException(
        s"Found $function(${arguments.map(_.sql).mkString(", ")}), expected a name and a number, string, boolean or date, both constant. " +
          s"Hint: $function('least', 0.8D)")
  }

  private def kinds(dataType: DataType): Boolean = dataType match {
    case _: NumericType | BooleanType | DateType => true
    case StringType => true
    case _ => false
  }

  /** A text as a value, with Spark's message where it is none; no kind of it knows time zones. */
  def read(text: String, dataType: DataType): Either[String, Literal] = GivenValues.read(text, dataType, "UTC")

  def text(value: Literal): String = Cast(value, StringType).eval().toString

  /** It in one task, whose rows it counts. */
  private final class Value(param: Param) {
    private val attempt =
      Option(TaskContext.get()).map(task => TaskAttempt(task.stageId(), task.partitionId(), task.taskAttemptId()))
    private val executor = ControlledExecutor.of(SparkEnv.get)
    private var rows = 0L
    private var seen: Map[String, String] = _
    private var now = param.default
    private var value = read(now, param.dataType).fold(why => throw new IllegalStateException(why), _.value)

    def next(): Any = {
      rows += 1
      val held = executor.params
      if (held ne seen) look(held)
      value
    }

    private def look(held: Map[String, String]): Unit = {
      seen = held
      for (text <- held.get(param.name) if text != now) {
        now = text
        value = read(text, param.dataType).fold(why => throw new IllegalStateException(why), _.value)
        attempt.foreach(each => executor.tell(Took(each, param.name, text, rows)))
      }
    }
  }
}
