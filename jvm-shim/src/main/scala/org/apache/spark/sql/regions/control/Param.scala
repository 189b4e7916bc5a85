package org.apache.spark.sql.regions.control

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, LeafExpression, Literal, Nondeterministic}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types._

/**
 * A value that may be changed while queries run: of each row the one that holds then. Not deterministic, so that Spark neither pushes
 * it into a scan nor prunes partitions by it, and a value that lets more pass finds the rows.
 *
 * @param default until it is set, as text
 * @param place where in a physical plan; 0 in others
 * @param unordered why an attempt that comes again may meet other rows there, or the same in another order
 */
final case class Param(name: String, dataType: DataType, default: String, place: Long = 0, unordered: String = "")
    extends LeafExpression with Nondeterministic with CodegenFallback {
  override def nullable: Boolean = false
  override def prettyName: String = Param.function
  override def toString: String = s"$prettyName($name, $default)"

  @transient private var value: Param.Value = _

  // Spark finds equal exchanges by this.
  override lazy val canonicalized: Expression = copy(place = 0, unordered = "")

  override protected def initializeInternal(partition: Int): Unit = value = new Param.Value(this, partition)
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
      require(!ReplaceableFunctions.isVersion(name.toString),
        s"Found the name $name, which ends as a function's. Hint: without ()")
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

  /** It in one task, whose rows it counts: what an earlier attempt took comes first, at the same rows. */
  private final class Value(param: Param, partition: Int) {
    private val executor = ControlledExecutor.of(SparkEnv.get)
    private val task = Option(TaskContext.get()).map(executor.task)
    private val place = task.filter(_ => param.place > 0).map(_.place(param.place, partition))
    private val earlier = place.map(at => task.get.earlier.at(at)).getOrElse(Track(Nil, whole = false))

    private def forgotten: Boolean = place.nonEmpty && task.exists(_.earlier.forgotten)

    /** Why the earlier rows do not come again. */
    private val unlike =
      if (earlier.constant) ""
      else if (forgotten) "what earlier attempts took is not known any more"
      else if (task.exists(_.earlier.skipped)) "a breakpoint may have left rows out"
      else param.unordered
    private var ahead = if (unlike.isEmpty) earlier.values.toList else Nil
    private var follows = ahead.isEmpty && !(unlike.isEmpty && earlier.whole)
    private var tells = ahead.isEmpty && (earlier.values.nonEmpty || forgotten)
    private var rows = 0L
    private var seen: Map[String, String] = _
    private var now = param.default
    private var value = read(now, param.dataType).fold(why => throw new IllegalStateException(why), _.value)

    def next(): Any = {
      rows += 1
      if (ahead.nonEmpty && rows == ahead.head.row) repeat()
      if (follows) {
        val held = executor.params
        if (held ne seen) look(held)
      }
      value
    }

    private def repeat(): Unit = {
      take(ahead.head.value, replayed = true, "")
      ahead = ahead.tail
      follows = ahead.isEmpty && !earlier.whole
    }

    private def look(held: Map[String, String]): Unit = {
      seen = held
      for (text <- held.get(param.name) if text != now || tells) take(text, replayed = false, reason)
      tells = false
    }

    private def reason: String = if (!tells) ""
    else if (forgotten) unlike
    else earlier.values.lastOption.filter(_.row > 1).fold("")(last =>
      s"$unlike: attempt ${task.flatMap(_.earlier.attempt).getOrElse(0L)} took ${last.value} at row ${last.row}")

    private def take(text: String, replayed: Boolean, reason: String): Unit = {
      now = text
      value = read(text, param.dataType).fold(why => throw new IllegalStateException(why), _.value)
      for (each <- task; at <- place)
        executor.tell(Took(each.attempt, at, param.name, text, rows, replayed, reason))
    }
  }
}
