package org.apache.spark.sql.regions.control.badrows

import scala.collection.mutable

import org.apache.spark.api.python.{PythonEvalType, SimplePythonFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction, Complete, Partial}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.python.{EvalPythonExec, MapInBatchExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.control.ReplaceableFunctions.{batchTypes, concurrent, isVersion, rowTypes, without}
import org.apache.spark.sql.regions.control.WorkerCommand

/**
 * Has rows that fail left out, or the values that failed made null, as the session's settings say. It changes physical plans,
 * when all else about them is settled: what is pushed down, merged or reused is as in plain Spark.
 */
final class BadRowsRule(session: SparkSession) extends ColumnarRule {

  override val preColumnarTransitions: Rule[SparkPlan] = plan => {
    val conf = session.sessionState.conf
    if (!BadRows.handled(conf) || conf.getConf(RegionsConf.mode) != "apply") plan
    else RegionsRuntime.of(session).fold(_ => plan, runtime => checked(plan, runtime.badRows))
  }

  private def checked(plan: SparkPlan, rows: BadRows): SparkPlan = {
    val over = Guard(session.sparkContext.conf, "the handling of bad rows", plan)(new Checking(session, rows)(plan))
    if (over ne plan) rows.ready(BadRows.policy(session.sparkContext, session.sessionState.conf))
    over
  }
}

object BadRowsRule {

  /** Typed as Spark's class, so that a caller can be linked where this class cannot. */
  def of(session: SparkSession): ColumnarRule = new BadRowsRule(session)
}

private final class Checking(session: SparkSession, rows: BadRows) {
  private val conf: SQLConf = session.sessionState.conf
  private val policy = BadRows.policy(session.sparkContext, conf)

  def apply(plan: SparkPlan): SparkPlan =
    if (session.sparkContext.getLocalProperty("sql.streaming.queryId") != null) {
      rows.decline("streaming queries", "a row that is read again after a failure would be kept twice")
      plan
    } else visit(plan)

  private val planned = mutable.Map.empty[SparkPlan, mutable.ArrayBuffer[Long]]
  private var numbers = new Numbers(mutable.ArrayBuffer.empty)

  /**
   * Numbers of operators. Below of equal exchanges of a query they are the same, so that Spark takes these for equal still, and
   * computes one; with adaptive execution it looks at them when they are changed already, and at one at a time.
   */
  private final class Numbers(of: => mutable.ArrayBuffer[Long]) {
    private lazy val issued = of
    private var next = 0

    def apply(): Long = issued.synchronized {
      if (next == issued.size) issued += rows.operator()
      next += 1
      issued(next - 1)
    }
  }

  private def visit(plan: SparkPlan): SparkPlan = {
    val over = plan match {
      case exchange: Exchange if conf.exchangeReuseEnabled =>
        val outside = numbers
        numbers = new Numbers(rows.below(exchange, planned))
        try exchange.mapChildren(visit)
        finally numbers = outside
      case other => other.mapChildren(visit)
    }
    linked(over, checked(over))
  }

  private def linked(from: SparkPlan, to: SparkPlan): SparkPlan = {
    if (to ne from) from.logicalLink.foreach(link =>
      to.foreach { made =>
        if (made.logicalLink.isEmpty) made.setTagValue(SparkPlan.LOGICAL_PLAN_INHERITED_TAG, link)
      })
    to
  }

  private def checked(plan: SparkPlan): SparkPlan = plan match {
    case project: ProjectExec if project.projectList.exists(Fallible(_)) => this.project(project)
    case filter: FilterExec if Fallible(filter.condition) => this.filter(filter)
    case aggregate @ (_: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec) =>
      this.aggregate(aggregate.asInstanceOf[BaseAggregateExec])
    case python: EvalPythonExec => this.python(python)
    case mapped: MapInBatchExec => this.mapped(mapped)
    case scan: FileSourceScanExec if failsFast(scan) => lines(scan)
    case join: BaseJoinExec if join.expressions.exists(Fallible(_)) => declined(join, "a key or condition of a join")
    case sort: SortExec if sort.expressions.exists(Fallible(_)) => declined(sort, "a key of a sort")
    case generate: GenerateExec if generate.generator.children.exists(Fallible(_)) => this.generate(generate)
    case top: TakeOrderedAndProjectExec if top.projectList.exists(Fallible(_)) =>
      declined(top, "the first rows of a sort count as they are")
    case other if other.expressions.exists(_.exists(_.isInstanceOf[PythonUDF])) =>
      declined(other, "its Python function sees many rows")
    case other if !other.isInstanceOf[LeafExecNode] && other.expressions.exists(Fallible(_)) =>
      declined(other, "what it computes with")
    case other => other
  }

  private def declined(plan: SparkPlan, why: String): SparkPlan = {
    rows.decline(plan.nodeName, why)
    plan
  }

  /** Wide rows are shown by what was computed with. */
  private def sink(name: String, input: Seq[Attribute], read: AttributeSet): BadRowSink = {
    val shown = if (input.size <= Checking.mostShown) input else input.filter(read.contains)
    rows.sink(numbers(), name, policy, input, shown, conf)
  }

  private def project(plan: ProjectExec): SparkPlan = {
    val told = sink("Project", plan.child.output, plan.references)
    if (policy.nulls) plan.copy(projectList = plan.projectList.map(nulled(plan, _, told)))
    else CheckedProjectExec(plan.projectList.map(caught(_, told)), plan.child)(told)
  }

  private def nulled[E <: Expression](plan: SparkPlan, expression: E, told: BadRowSink): E =
    Fallible.nulled(expression, told).fold {
      rows.decline(plan.nodeName, s"${Caught.shown(expression)} cannot be null")
      expression
    }(_.asInstanceOf[E])

  private def caught(expression: NamedExpression, told: BadRowSink): NamedExpression =
    Fallible.caught(expression, told).asInstanceOf[NamedExpression]

  private def filter(plan: FilterExec): SparkPlan = {
    val told = rows.sink(numbers(), "Filter", policy, plan.child.output,
      plan.child.output.filter(plan.condition.references.contains), conf)
    def one(condition: Expression): Expression =
      if (!Fallible(condition)) condition
      else if (policy.nulls) Fallible.caught(condition, told)
      else Unfailed(Fallible.caught(condition, told), told.inputs)(told)
    plan.copy(condition = Checking.conjuncts(plan.condition).map(one).reduce(And))
  }

  private def inputs(plan: BaseAggregateExec): Seq[Expression] =
    plan.aggregateExpressions.filter(call => call.mode == Partial || call.mode == Complete)
      .flatMap(call => call.aggregateFunction.children ++ call.filter)

  private def aggregate(plan: BaseAggregateExec): SparkPlan = {
    if (plan.groupingExpressions.exists(Fallible(_))) rows.decline(plan.nodeName, "a key of groups")
    val over = if (inputs(plan).exists(Fallible(_))) arguments(plan) else plan
    if (!plan.resultExpressions.exists(Fallible(_))) over
    else {
      // Of the aggregates Spark expects names here, not bare columns.
      val groups = plan.groupingExpressions.map(_.toAttribute) ++
        plan.aggregateAttributes.map(a => Alias(a, a.name)(exprId = a.exprId))
      project(ProjectExec(plan.resultExpressions, changed(over, over.aggregateExpressions, groups)))
    }
  }

  /** Arguments are computed before the rows are added up. */
  private def arguments(plan: BaseAggregateExec): BaseAggregateExec = {
    val calls = plan.aggregateExpressions
    def each(argument: Expression => Expression): Seq[AggregateExpression] = calls.map(of =>
      of.copy(aggregateFunction = of.aggregateFunction.mapChildren(argument).asInstanceOf[AggregateFunction]))
    if (calls.exists(call => (call.mode != Partial && call.mode != Complete) || call.filter.nonEmpty)) {
      rows.decline(plan.nodeName, "an aggregate of distinct values, or with a filter")
      plan
    } else if (policy.nulls) {
      val told = sink(plan.nodeName, plan.child.output, plan.references)
      changed(plan, each(nulled(plan, _, told)), plan.resultExpressions)
    } else {
      val lifted = new Lifted(plan.child, plan.nodeName)
      val over = changed(plan, each(lifted(_)), plan.resultExpressions)
      over.withNewChildren(Seq(lifted.below)).asInstanceOf[BaseAggregateExec]
    }
  }

  private def changed(
      plan: BaseAggregateExec,
      calls: Seq[AggregateExpression],
      results: Seq[NamedExpression]): BaseAggregateExec =
    plan match {
      case hash: HashAggregateExec => hash.copy(aggregateExpressions = calls, resultExpressions = results)
      case objects: ObjectHashAggregateExec => objects.copy(aggregateExpressions = calls, resultExpressions = results)
      case sorted: SortAggregateExec => sorted.copy(aggregateExpressions = calls, resultExpressions = results)
    }

  private def generate(plan: GenerateExec): SparkPlan = {
    def over(argument: Expression => Expression): Generator =
      plan.generator.mapChildren(argument).asInstanceOf[Generator]
    if (policy.nulls) {
      val told = sink(plan.nodeName, plan.child.output, plan.references)
      plan.copy(generator = over(nulled(plan, _, told)))
    } else {
      val lifted = new Lifted(plan.child, plan.nodeName)
      plan.copy(generator = over(lifted(_)), child = lifted.below)
    }
  }

  /** Expressions of an operator that a projection below it computes instead. */
  private final class Lifted(child: SparkPlan, name: String) {
    private val told = sink(name, child.output, child.outputSet)
    private var made: Seq[Alias] = Nil

    def apply(expression: Expression): Expression =
      if (!Fallible(expression)) expression
      else made.find(_.child.semanticEquals(expression)).getOrElse {
        val alias = Alias(expression, "argument")()
        made :+= alias
        alias
      }.toAttribute

    def below: SparkPlan =
      if (made.isEmpty) child else CheckedProjectExec(child.output ++ made.map(caught(_, told)), child)(told)
  }

  private def python(plan: EvalPythonExec): SparkPlan = {
    val single = plan.udfs.forall(udf => rowTypes(udf.evalType))
    val batches = plan.udfs.forall(udf => batchTypes(udf.evalType))
    if (!single && !batches) declined(plan, "its function sees all rows of a partition")
    else if (batches && !policy.splitBatches)
      declined(plan, s"its function takes many rows at once. Hint: ${RegionsConf.splitBatches.key}")
    else if (plan.udfs.exists(_.evalType == PythonEvalType.SQL_ARROW_BATCHED_UDF) && concurrent(conf))
      declined(plan, "its rows are computed by several threads, in no order")
    else {
      val lifted = new Lifted(plan.child, plan.nodeName)
      val told = sink(plan.nodeName, plan.child.output, plan.references)
      val kind = if (single) "row" else "batch"
      def argument(expression: Expression, column: Int): Expression = expression match {
        case udf: PythonUDF =>
          val over = udf.withNewChildren(udf.children.map(argument(_, column)))
          wrapped(over.asInstanceOf[PythonUDF], kind, told, column)
        case named: NamedArgumentExpression => named.copy(value = argument(named.value, column))
        case other if policy.nulls => nulled(plan, other, told)
        case other => lifted(other)
      }
      val columns = plan.udfs.iterator.zipWithIndex
      val over = plan.mapExpressions {
        case _: PythonUDF => (argument _).tupled(columns.next())
        case other => other
      }.withNewChildren(Seq(lifted.below))
      val results = plan.udfs.map(udf => Computed(Caught.shown(without(udf)), udf.dataType, udf.nullable))
      val checked = CheckedRowsExec(over, PythonRows)(told, results)
      if (lifted.below eq plan.child) checked else ProjectExec(plan.output, checked)
    }
  }

  private def mapped(plan: MapInBatchExec): SparkPlan =
    if (!policy.splitBatches)
      declined(plan, s"its function takes many rows at once. Hint: ${RegionsConf.splitBatches.key}")
    else {
      val told = rows.sink(numbers(), plan.nodeName, policy, Nil, Nil, conf)
      val over = plan.mapExpressions {
        case udf: PythonUDF => wrapped(udf, "map", told, 0)
        case other => other
      }
      CheckedRowsExec(over, PythonTables)(told)
    }

  private def wrapped(udf: PythonUDF, kind: String, told: BadRowSink, column: Int): PythonUDF = udf.func match {
    case function: SimplePythonFunction =>
      val positional = !udf.children.exists(_.isInstanceOf[NamedArgumentExpression])
      val settings = Map(
        "operator" -> told.operator.toString,
        "function" -> udf.name,
        "kind" -> kind,
        "column" -> column,
        "arity" -> (if (positional) udf.children.size else -1),
        "hidden" -> udf.children.count(isVersion)
      )
      udf.copy(
        func = function.copy(
          command =
            WorkerCommand.badRows.wrapped(function.command.toArray, settings).toIndexedSeq))
    case _ => udf
  }

  private def failsFast(scan: FileSourceScanExec): Boolean = {
    CaseInsensitiveMap(scan.relation.options).get("mode").exists(
      _.equalsIgnoreCase("FAILFAST")) && (scan.relation.fileFormat match {
      case _: CSVFileFormat => true
      case _: JsonFileFormat => true
      case _ => false
    })
  }

  private def lines(scan: FileSourceScanExec): SparkPlan =
    if (CaseInsensitiveMap(scan.relation.options).get("multiLine").exists(_.equalsIgnoreCase("true")))
      declined(scan, "records of several lines")
    else {
      // What comes of a file's name, or of folders', is not for a person to say.
      val data = scan.relation.dataSchema.fieldNames.toSet
      val output = scan.output.filter(column => data(column.name))
      CheckedRowsExec(scan, Lines)(
        rows.sink(numbers(), scan.nodeName, policy, Nil, Nil, conf),
        if (output.size < scan.output.size) Nil else output.map(c => Computed(c.name, c.dataType, nullable = true))
      )
    }
}

private object Checking {
  val mostShown = 40

  def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }
}
