package org.apache.spark.sql.regions

import java.util.{Collections, WeakHashMap}

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions, SparkSessionExtensionsProvider, classic}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, SparkStrategy}
import org.apache.spark.sql.regions.control.{Param, ProbeRule, ReplaceableFunctions}
import org.apache.spark.sql.regions.control.badrows.{BadRows, BadRowsRule, HeldRowsRule}
import org.apache.spark.sql.regions.exec.{RegionsStrategy, SharedCode}
import org.apache.spark.sql.regions.rules.{LineageRule, SharedDataFramesRule, WarmUp}
import org.apache.spark.sql.regions.skew.SkewRule
import org.apache.spark.sql.regions.ui.DecisionsTable
import org.apache.spark.sql.types.StringType

/**
 * The only registration list. What fires when, for one query:
 *
 * {{{
 *   parsed plan
 *     │  postHocRules         when a session's analyzer is made: classes are loaded; the plan stays
 *     ▼
 *   analyzed plan
 *     │  normalizationRules   once per executed query, before the look-up in Spark's cache: nothing is pruned yet;
 *     │                       a DataFrame of the user's still looks as it did in earlier queries; rows that may fail are
 *     │                       kept from the optimizer, which would compute with what the driver has
 *     ▼
 *   optimizer: pruning, push-down
 *     │  preCBORules          once per optimized plan: filters and columns are where they belong, Python UDFs and
 *     │                       subqueries are still expressions; the plan is signed, decided upon and changed here
 *     ▼
 *   optimizer: join reorder, subqueries to joins, Python UDFs to operators
 *     ▼
 *   planner
 *     │  strategies           plans the logical nodes that the rule put in; again for each re-planning of AQE
 *     ▼
 *   adaptive execution, when a plan has all of its exchanges
 *     │  stagePreparations    the ranges of a sort, before its shuffle is written
 *     ▼
 *   adaptive execution, for each stage whose inputs are written
 *     │  queryStageRules      after Spark's own: tasks of a skewed stage are arranged otherwise
 *     │  columnarRules        rows that fail are caught; the rows of a shuffle that it is about to write are counted by partition; probes
 *     │                       above operators, if control is on; literals become fields of generated code; also without adaptive
 *     │                       execution
 *     ▼
 *   execution                 RegionsRuntime's listeners; not registered here, since they belong to the context
 * }}}
 *
 * Spark applies this class through the service file, through spark.sql.extensions, or through both.
 */
class RegionsExtensions extends SparkSessionExtensionsProvider with Logging {
  import RegionsExtensions._

  override def apply(extensions: SparkSessionExtensions): Unit = {
    val conf = SparkContext.getActive.map(_.conf).getOrElse(new SparkConf)
    Guard.run(conf, "the registration of the extensions") {
      if (applied.add(extensions)) {
        RegionsConf.register()
        // Also where disabled: the status is the place that says so.
        tableFunctions.foreach(extensions.injectTableFunction)
        extensions.injectFunction(parameter)
        val fits = Shim.unfit.isEmpty
        SparkContext.getActive match {
          case Some(sc) if !RegionsConf.isEnabled(sc.conf) =>
          case Some(sc) =>
            RegionsRuntime.start(sc)
            if (fits) register(extensions)
          // withExtensions(new RegionsExtensions) comes before the context; the builders ask again.
          case None => if (fits) register(extensions)
        }
      }
    }
  }

  private def register(extensions: SparkSessionExtensions): Unit = {
    postHocRules.foreach(build => extensions.injectPostHocResolutionRule(guarded(build)))
    normalizationRules.foreach(build => extensions.injectPlanNormalizationRule(guarded(build)))
    preCBORules.foreach(build => extensions.injectPreCBORule(guarded(build)))
    strategies.foreach(build => extensions.injectPlannerStrategy(guardedStrategy(build)))
    stagePreparations.foreach(build => extensions.injectQueryStagePrepRule(ifActive(build, InactiveStage)))
    columnarRules.foreach(build => extensions.injectColumnar(ifActive(build, InactiveColumnar)))
    queryStageRules.foreach(build => extensions.injectQueryStageOptimizerRule(ifActive(build, InactiveStage)))
  }
}

object RegionsExtensions {
  type TableFunction = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  // ---- The list ----------------------------------------------------------------------------------------------------

  val postHocRules: Seq[SparkSession => Rule[LogicalPlan]] = Seq(new WarmUp(_))

  val normalizationRules: Seq[SparkSession => Rule[LogicalPlan]] = Seq(new SharedDataFramesRule(_), new HeldRowsRule(_))

  val preCBORules: Seq[SparkSession => Rule[LogicalPlan]] = Seq(new LineageRule(_))

  val strategies: Seq[SparkSession => SparkStrategy] = Seq {
    case session: classic.SparkSession => RegionsStrategy.of(session)
    case _ => InactiveStrategy
  }

  val stagePreparations: Seq[SparkSession => Rule[SparkPlan]] = Seq {
    case session: classic.SparkSession => SkewRule.ofSorts(session)
    case _ => InactiveStage
  }

  val columnarRules: Seq[SparkSession => ColumnarRule] = Seq(
    {
      case session: classic.SparkSession => new SharedCode(session)
      case _ => InactiveColumnar
    },
    {
      case session: classic.SparkSession if session.sparkContext.conf.get(RegionsConf.controlEnabled) =>
        new ReplaceableFunctions(session)
      case _ => InactiveColumnar
    },
    {
      case session: classic.SparkSession => BadRowsRule.of(session)
      case _ => InactiveColumnar
    },
    {
      case session: classic.SparkSession => SkewRule.ofRows(session)
      case _ => InactiveColumnar
    },
    {
      case session: classic.SparkSession if session.sparkContext.conf.get(RegionsConf.controlEnabled) =>
        new ProbeRule(session)
      case _ => InactiveColumnar
    }
  )

  val queryStageRules: Seq[SparkSession => Rule[SparkPlan]] = Seq {
    case session: classic.SparkSession => SkewRule.of(session)
    case _ => InactiveStage
  }

  val tableFunctions: Seq[TableFunction] = Seq(
    tableFunction("spark_regions_status", "_FUNC_() - Whether spark_regions is active in this application, and why.",
      Seq("key", "value"))(session => RegionsRuntime.status(session).map { case (key, value) => Seq(key, value) }),
    (
      FunctionIdentifier("spark_regions_decisions"),
      new ExpressionInfo(
        classOf[RegionsExtensions].getName,
        null,
        "spark_regions_decisions",
        "_FUNC_() - What was decided about the last queries of this application, and why.",
        ""
      ),
      (arguments: Seq[Expression]) => {
        require(arguments.isEmpty, "spark_regions_decisions takes no arguments")
        RegionsRuntime.current.fold(DecisionsTable(Nil, _ => None, (_, _) => false)) { runtime =>
          val savings = runtime.events.savings
          DecisionsTable(
            runtime.decisions.last(Int.MaxValue).map(savings.measured), savings.execution, savings.ran, savings.outcome)
        }
      }),
    (
      FunctionIdentifier("spark_regions_bad_rows"),
      new ExpressionInfo(
        classOf[RegionsExtensions].getName,
        null,
        "spark_regions_bad_rows",
        "_FUNC_() - The rows of this application that failed and are kept, each with its error.",
        ""
      ),
      (arguments: Seq[Expression]) => {
        require(arguments.isEmpty, "spark_regions_bad_rows takes no arguments")
        SparkSession.active match {
          case session: classic.SparkSession => BadRows.table(session)
          case other => throw new IllegalStateException(s"unexpected session class ${other.getClass.getName}")
        }
      })
  )

  val parameter: (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression) = (
    FunctionIdentifier(Param.function),
    new ExpressionInfo(
      classOf[RegionsExtensions].getName,
      null,
      Param.function,
      "_FUNC_(name, value) - The value, or what it was set to while queries run.",
      ""),
    Param.build
  )

  // ------------------------------------------------------------------------------------------------------------------

  /** Named in both places, the class is applied twice to one object. */
  private val applied = Collections.newSetFromMap(
    Collections.synchronizedMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean]()))

  /** A table function without arguments whose rows, all strings, are made when it is analyzed. */
  def tableFunction(name: String, usage: String, columns: Seq[String])(
      rows: SparkSession => Seq[Seq[String]]): TableFunction = {
    val builder = (arguments: Seq[Expression]) => {
      require(arguments.isEmpty, s"$name takes no arguments")
      val output = columns.map(column => AttributeReference(column, StringType)())
      LocalRelation.fromExternalRows(output, rows(SparkSession.active).map(org.apache.spark.sql.Row.fromSeq))
    }
    (FunctionIdentifier(name), new ExpressionInfo(classOf[RegionsExtensions].getName, null, name, usage, ""), builder)
  }

  private def guarded(build: SparkSession => Rule[LogicalPlan]): SparkSession => Rule[LogicalPlan] =
    ifActive(build, Inactive)

  private def guardedStrategy(build: SparkSession => SparkStrategy): SparkSession => SparkStrategy =
    ifActive(build, InactiveStrategy)

  private def ifActive[T](build: SparkSession => T, otherwise: T)(session: SparkSession): T =
    Guard(session.sparkContext.conf, "the start of a session", otherwise) {
      RegionsRuntime.of(session).fold(_ => otherwise, _ => build(session))
    }

  /** What a session gets where the runtime could not start: the plan, unchanged. */
  private object Inactive extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan
  }

  private object InactiveStage extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = plan
  }

  private object InactiveColumnar extends ColumnarRule

  private object InactiveStrategy extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = Nil
  }
}
