package org.apache.spark.sql.regions.control

import org.apache.spark.api.python.{PythonEvalType, SimplePythonFunction}
import org.apache.spark.sql.catalyst.expressions.{Expression, NamedArgumentExpression, PythonUDF}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.execution.python.EvalPythonExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{Guard, RegionsConf, SparkMinor}
import org.apache.spark.sql.types.IntegerType

/**
 * Lets Python functions be replaced while they run (Amber §4): a function is told with each row which replacement of it holds, by a
 * [[Param]], so that an attempt which comes again takes it at the same row.
 */
final class ReplaceableFunctions(session: SparkSession) extends ColumnarRule {
  import ReplaceableFunctions._

  override val preColumnarTransitions: Rule[SparkPlan] = plan =>
    ControlDriver.current.filter(_ => session.sessionState.conf.getConf(RegionsConf.replaceFunctions)).fold(plan) {
      driver =>
        Guard(session.sparkContext.conf, "the Python functions of a plan", plan)(
          plan.transformUp {
            case python: EvalPythonExec if python.udfs.forall(replaceable(_, session.sessionState.conf)) =>
              python.mapExpressions {
                case udf: PythonUDF => over(udf, Nil, driver)
                case other => other
              }
          })
    }

  /** @param above functions that are called with what it returns; the innermost one is told of all */
  private def over(udf: PythonUDF, above: Seq[String], driver: ControlDriver): PythonUDF = {
    val names = udf.name +: above
    driver.replaceable(udf.name, udf.children.size)
    udf.children match {
      case Seq(inner: PythonUDF) => wrapped(udf, Seq(over(inner, names, driver)), Nil)
      case children => wrapped(udf, children ++ names.map(name => Param(version(name), IntegerType, "0")), names)
    }
  }

  private def wrapped(udf: PythonUDF, children: Seq[Expression], told: Seq[String]): PythonUDF = {
    val function = udf.func.asInstanceOf[SimplePythonFunction]
    val settings = Map("function" -> udf.name, "arity" -> udf.children.size, "told" -> told.toArray,
      "batches" -> batchTypes(udf.evalType))
    udf.copy(
      func = function.copy(
        command =
          WorkerCommand.replaceable.wrapped(function.command.toArray, settings).toIndexedSeq),
      children = children
    )
  }
}

private[control] object ReplaceableFunctions {
  val rowTypes: Set[Int] = Set(PythonEvalType.SQL_BATCHED_UDF, PythonEvalType.SQL_ARROW_BATCHED_UDF)
  val batchTypes: Set[Int] = SparkMinor.scalarArrow + PythonEvalType.SQL_SCALAR_PANDAS_UDF

  /** The parameter that says which replacement of a function holds. */
  def version(function: String): String = s"$function()"

  def isVersion(name: String): Boolean = name.endsWith(version(""))

  def isVersion(expression: Expression): Boolean = expression match {
    case param: Param => isVersion(param.name)
    case _ => false
  }

  /** As the query has it. */
  def without(expression: Expression): Expression = expression.transformUp {
    case udf: PythonUDF if udf.children.exists(isVersion) => udf.copy(children = udf.children.filterNot(isVersion))
  }

  /** It is called once a row or a batch, by one thread, and not for a second time. */
  private def replaceable(udf: PythonUDF, conf: SQLConf): Boolean = {
    val ordered = udf.evalType != PythonEvalType.SQL_ARROW_BATCHED_UDF || !concurrent(conf)
    ordered && (rowTypes ++ batchTypes)(udf.evalType) && udf.func.isInstanceOf[
      SimplePythonFunction] && udf.children.forall {
      case inner: PythonUDF => replaceable(inner, conf)
      case _: NamedArgumentExpression => false
      case other => !isVersion(other)
    }
  }

  /** Whether rows of a batch are computed by several threads: set at all, it is more than one. */
  def concurrent(conf: SQLConf): Boolean = conf.contains("spark.sql.execution.pythonUDF.arrow.concurrency.level")
}
