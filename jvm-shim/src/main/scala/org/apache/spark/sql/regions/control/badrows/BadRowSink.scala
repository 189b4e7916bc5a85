package org.apache.spark.sql.regions.control.badrows

import java.io.IOException
import java.time.DateTimeException

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.{FSDataOutputStream, Path}

import org.apache.spark.{SparkEnv, SparkException, SparkThrowable, TaskContext}
import org.apache.spark.api.python.PythonException
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.regions.control.{Answered, ControlledExecutor, GivenValues}
import org.apache.spark.sql.regions.wire.{Frames, WaitingRow}
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.util.{CollectionAccumulator, RpcUtils, SerializableConfiguration}

/** What a session wants done with rows that fail. */
final case class BadRowPolicy(action: String, most: Option[Int], splitBatches: Boolean, folder: String) {
  def nulls: Boolean = action == "null"
  def asks: Boolean = action == "pause"
  def keeps: Boolean = action == "quarantine"
}

/** Which rows, of all that an operator of a query has in a partition. */
private[badrows] final case class Place(execution: Long, operator: Long, partition: Int)

/** What a task attempt that ended well has found; `pending` is its file, "" where rows are not kept. */
private[badrows] final case class Found(at: Place, rows: Int, pending: String)

/**
 * What may fail, for those who are asked about it.
 *
 * @param text as in SQL
 * @param nullable whether it can be null instead
 */
final case class Computed(text: String, dataType: DataType, nullable: Boolean)

/** A row that failed, as far as its operator knows it. */
private[badrows] final case class BadRow(
    function: String,
    error: String,
    condition: String = "",
    trace: String = "",
    row: Seq[(String, String)] = Nil,
    arguments: Seq[(String, String)] = Nil)

/**
 * Takes the rows of one operator that fail. In a task it counts them, and writes them to a file that counts once the task
 * has ended well: `found` tells the driver then, as any accumulator.
 *
 * @param operator its number, for files, and its name
 * @param positions of the columns that are shown of a row, among those of the operator's input
 * @param inputs those columns
 */
final class BadRowSink(
    val operator: Long,
    name: String,
    columns: Seq[(String, DataType)],
    val positions: Seq[Int],
    @transient val inputs: Seq[Attribute],
    zone: String,
    application: String,
    policy: BadRowPolicy,
    conf: Broadcast[SerializableConfiguration],
    found: CollectionAccumulator[Found])
    extends Serializable {
  import BadRowSink._

  def types: Seq[DataType] = columns.map(_._2)

  @transient private var error: Throwable = _
  @transient private var text: String = _

  /** That the task ends with, as somebody has said: expressions around the one that raised it have no say. */
  @transient private var ending: Throwable = _
  @transient private var findings: Findings = _

  /** Columns of a row that somebody is asked about where an expression fails. */
  def asked: Seq[Attribute] = if (policy.asks) inputs else Nil

  /**
   * An expression failed: if not on account of the row, the task does.
   *
   * @param values of `asked`
   * @return its value instead; a row that is left out has null for the time being
   */
  def caught(thrown: Exception, what: Computed, values: Array[Any]): Any = {
    if (!ofRow(thrown) || (thrown eq ending)) throw thrown
    def found = bad(thrown, what.text, if (values.isEmpty) Nil else shown(values))
    if (policy.nulls) {
      add(found)
      null
    } else if (error != null) null
    else if (policy.asks) instead(found, what, thrown).getOrElse(leftOut(thrown, what))
    else leftOut(thrown, what)
  }

  private def leftOut(thrown: Exception, what: Computed): Any = {
    error = thrown
    text = what.text
    null
  }

  /** A value that a person gives for one that failed; None to leave out the row, which is not reported then. */
  private def instead(bad: BadRow, what: Computed, thrown: => Throwable): Option[Any] = {
    val types = GivenValues.types(Seq((what.text, what.dataType, what.nullable)))
    val answer = ask(bad, types, what.nullable, thrown)
    answer.action match {
      case "skip" => None
      case "fix" =>
        add(bad)
        Some(GivenValues.value(answer.values.values.head, what.dataType, zone))
      case _ =>
        add(bad)
        Some(null)
    }
  }

  /** All stands until a person has said what becomes of a row; `thrown` is, if that is nothing. */
  private def ask(bad: BadRow, types: Map[String, String], nullable: Boolean, thrown: => Throwable): Answered = {
    val task = ControlledExecutor.of(SparkEnv.get).task(TaskContext.get())
    val values = (if (bad.row.isEmpty) bad.arguments else bad.row).map { case (column, value) =>
      column -> (if (value == null) "NULL" else value)
    }
    val answer = task.ask(WaitingRow(task.attempt, name, task.nextBad(), values.toMap, bad.function, error = bad.error,
        types = types, nullable = nullable))
    if (answer.action == "fail" || answer.action == "pass") {
      ending = thrown
      throw ending
    }
    answer
  }

  /**
   * A row that came back from Python.
   *
   * @param reports what failed on it
   * @param results what Python computes: the last columns of the row
   * @return the row that goes on; null where none does
   */
  def returned(
      reports: Seq[WorkerReport],
      row: InternalRow,
      results: Seq[Computed],
      types: Seq[DataType]): InternalRow = {
    val known = reports.map(report => report.copy(bad = report.bad.copy(row = shown(values(row)))))
    if (!policy.asks) {
      add(known.head.bad)
      if (policy.nulls) row else null
    } else known.distinctBy(_.column).foldLeft(row) { (row, report) =>
      if (row == null) null
      else instead(report.bad, results(report.column), raised(report.bad)) match {
        case Some(null) => row
        case Some(value) => GivenValues.row(row, types, Map(types.size - results.size + report.column -> value))
        case None =>
          add(report.bad)
          null
      }
    }
  }

  /** A row that does not come back from Python. */
  def lost(report: WorkerReport): Unit = {
    if (policy.asks) ask(report.bad, Map.empty, nullable = false, raised(report.bad))
    add(report.bad)
  }

  /**
   * A line that cannot be read.
   *
   * @param output of the reader, where a row of it can be given
   * @return a row that goes on in its place; null where none does
   */
  def line(error: Exception, output: Seq[(String, DataType)]): InternalRow = {
    val bad = Malformed(error)
    val types = GivenValues.types(output.map { case (column, dataType) => (column, dataType, true) })
    val file = InputFileBlockHolder.getInputFilePath.toString
    val answer =
      if (policy.asks) ask(bad.copy(function = file), types, nullable = false, error) else Answered("skip")
    add(bad)
    if (answer.action != "fix") null
    else {
      val empty = new GenericInternalRow(output.size)
      val fresh = output.zipWithIndex.collect {
        case ((column, dataType), i) if answer.values.contains(column) =>
          i -> GivenValues.value(answer.values(column), dataType, zone)
      }
      GivenValues.row(empty, output.map(_._2), fresh.toMap)
    }
  }

  /** As Spark raises what a Python function does. */
  private def raised(bad: BadRow): PythonException = new PythonException("PYTHON_EXCEPTION",
    Map("msg" -> "An exception was thrown from the Python worker", "traceback" -> bad.trace), null: Throwable)

  /** Whether anything failed on the row at hand; a row is reported once. */
  def failed: Boolean = error != null

  def report(values: Array[Any]): Unit = {
    val (thrown, expression) = (error, text)
    error = null
    add(bad(thrown, expression, shown(values)))
  }

  /** What is shown of a row of the operator's input. */
  def values(row: InternalRow): Array[Any] =
    positions.zip(types).map { case (i, dataType) => row.get(i, dataType) }.toArray[Any]

  /** As Spark would cast them to strings. */
  def shown(values: Array[Any]): Seq[(String, String)] = columns.zip(values).map { case ((column, dataType), value) =>
    val cast = Cast(Literal(value, dataType), StringType, Some(zone), EvalMode.LEGACY).eval()
    column -> (if (cast == null) null else cast.toString.take(most))
  }

  def add(bad: BadRow): Unit = synchronized {
    if (findings == null) findings = new Findings(TaskContext.get())
    findings.add(bad)
  }

  private final class Findings(context: TaskContext) {
    require(context != null, s"a row of $name failed outside of a task")
    // Jobs over a DataFrame's RDD are no SQL query: what an operator has in them counts for itself.
    private val execution = Option(context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).fold(-operator)(_.toLong)
    private val at = Place(execution, operator, context.partitionId())
    private var rows = 0
    private var path: Path = _
    private var out: FSDataOutputStream = _
    context.addTaskCompletionListener[Unit](ended(_))

    def add(bad: BadRow): Unit = {
      rows += 1
      if (policy.most.exists(rows > _))
        tooMany(s"$rows", s"the last one: ${bad.error.linesIterator.nextOption().getOrElse("")}")
      if (policy.keeps) writing {
        if (out == null) {
          path = new Path(s"${policy.folder}/$pendingFolder/$application-$execution-$operator-" +
            s"${context.partitionId()}-${context.taskAttemptId()}.json")
          out = path.getFileSystem(conf.value.value).create(path, true)
        }
        out.write(Frames.json.writeValueAsBytes(line(bad)))
        out.write('\n')
      }
    }

    /** What the file system says is not the row's fault. */
    private def writing(body: => Unit): Unit =
      try body
      catch { case error: IOException => throw unwritable(policy.folder, "that executors can write", error) }

    private def line(bad: BadRow): ObjectNode = {
      val node = Frames.json.createObjectNode()
      node.put("application", application).put("query", execution).put("stage", context.stageId())
        .put("partition", context.partitionId()).put("attempt", context.taskAttemptId())
        .put("operator", name).put("function", bad.function).put("error", bad.error).put("condition", bad.condition)
        .put("trace", bad.trace).put("milliseconds", System.currentTimeMillis())
      // Python workers read ahead: by the time that their rows come back, another file may have begun.
      val file = InputFileBlockHolder.getInputFilePath.toString
      if (bad.trace.isEmpty && file.nonEmpty) node.put("file", file).put("block", InputFileBlockHolder.getStartOffset)
      Seq("row" -> bad.row, "arguments" -> bad.arguments).foreach { case (field, values) =>
        val map = node.putObject(field)
        values.foreach { case (key, value) => map.put(key, value) }
      }
      node
    }

    private def ended(context: TaskContext): Unit = {
      findings = null
      var counts = false
      try {
        if (out != null) writing(out.close())
        if (!context.isFailed() && !context.isInterrupted()) {
          policy.most.foreach { most =>
            val env = SparkEnv.get
            val driver = RpcUtils.makeDriverRef(BadRows.endpoint, env.conf, env.rpcEnv)
            val total = driver.askSync[Long]((at.execution, at.operator, at.partition, rows))
            if (total > most) tooMany(total.toString, "in all tasks of the query")
          }
          found.add(Found(at, rows, Option(path).fold("")(_.toString)))
          counts = true
        }
      } finally if (!counts && path != null) path.getFileSystem(conf.value.value).delete(path, false)
    }

    private def tooMany(rows: String, which: String): Nothing = throw new SparkException(
      s"Found $rows bad rows ($which), expected at most ${policy.most.get}. Hint: spark.regions.control.maxBadRows")
  }

  private def bad(thrown: Throwable, expression: String, row: Seq[(String, String)]): BadRow = {
    val condition = thrown match {
      case known: SparkThrowable => Option(known.getCondition).getOrElse("")
      case _ => ""
    }
    BadRow(expression, s"${thrown.getMessage}".take(most), condition, row = row)
  }
}

private[badrows] object BadRowSink {

  /** Readers skip names that begin like this. */
  val pendingFolder = "_pending"

  /** Characters of a value that are kept. */
  val most = 2000

  def unwritable(folder: String, which: String, error: Throwable): SparkException = new SparkException(
    s"Found ${if (error == null) "nothing that can be written" else error.toString} for bad rows in $folder, " +
      s"expected a folder $which. Hint: spark.regions.control.quarantinePath",
    error
  )

  /** Whether an error says something of the values that it was raised on. */
  def ofRow(thrown: Exception): Boolean = thrown match {
    case known: SparkThrowable =>
      val condition = known.getCondition
      NonFatal(thrown) && condition != null && !known.isInternalError && !condition.startsWith("INCONSISTENT_BEHAVIOR")
    // Of a number, a pattern, an argument, a date: some functions let Java's own errors pass.
    case _: ArithmeticException | _: IllegalArgumentException | _: IndexOutOfBoundsException | _: DateTimeException =>
      true
    case _ => false
  }
}
