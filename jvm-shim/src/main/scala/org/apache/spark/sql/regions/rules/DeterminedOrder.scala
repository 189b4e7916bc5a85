package org.apache.spark.sql.regions.rules

import java.util.NoSuchElementException

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * In which partitions and order plain Spark has the rows of a part of a query, as a digest, where each of its runs has them there.
 * What sees that (a sample, the first value of a group, a Python function of whole partitions) has one result then.
 *
 * What is scanned and handed on row by row is where its files say. What is shuffled comes in the order of the tasks that wrote it
 * within one process, and as it arrives between several.
 */
private[rules] final class DeterminedOrder(session: SparkSession, query: LogicalPlan) {
  import DeterminedOrder._

  /** A command gives no rows an order. */
  private lazy val whole: LogicalPlan = RowOrder.query(query)

  private lazy val scansAreTheirOwn: Boolean =
    try !session.sessionState.conf.getConfString(singleTask).toBoolean
    catch { case _: NoSuchElementException => true }

  /** @param shuffled whether who asks shuffles the rows first */
  def apply(part: LogicalPlan, shuffled: Boolean): Option[String] = {
    val plain = rowByRow(part)
    // Into which partitions a shuffle is coalesced depends on the sizes of those beside it; in which order its rows come does not.
    val around = if (plain || shuffled) part else whole
    if ((shuffled || !plain) && !session.sparkContext.isLocal) None
    else if ((!plain || part.exists(_.isInstanceOf[Sort])) && userDefined(around)) None
    // Which joins are reordered, and which scans are one task, depends on the query around them.
    else PlanOrigin.of(session, part, if (plain && scansAreTheirOwn) part else whole)
  }
}

private[rules] object DeterminedOrder {
  private val singleTask = "spark.sql.optimizer.singleTaskExecution.enabled"

  private def rowByRow(plan: LogicalPlan): Boolean = plan.children.forall(rowByRow) && plan.subqueries.isEmpty &&
    (plan match {
      case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => files.bucketSpec.isEmpty
      case sort: Sort => !sort.global
      case _: Project | _: Filter | _: Generate | _: Expand | _: Sample | _: MapInPandas | _: MapInArrow => true
      case _: LocalRelation | _: Range | _: SubqueryAlias | _: View => true
      case _ => false
    })

  /** A plan's text has a function's name, which another one may have, too. */
  private def userDefined(plan: LogicalPlan): Boolean =
    plan.collectFirstWithSubqueries {
      case p if p.expressions.exists(_.exists(_.isInstanceOf[UserDefinedExpression])) => p
    }.isDefined

  /** Whether the rows that an operator gives depend on the order of those below it. */
  def sees(plan: LogicalPlan): Boolean = plan match {
    case _: Sample | _: MapInPandas | _: MapInArrow => true
    case _: FlatMapGroupsInPandas | _: FlatMapGroupsInArrow | _: FlatMapCoGroupsInPandas | _: FlatMapCoGroupsInArrow =>
      true
    case _: Aggregate | _: Window =>
      plan.expressions.exists(
        _.exists {
          case call: AggregateExpression =>
            AggregateDigest.rounds(call.aggregateFunction) || AggregateDigest.ordered(call.aggregateFunction)
          case window: WindowExpression => AggregateDigest.ordered(window)
          case _ => false
        })
    case _ => false
  }
}
