package org.apache.spark.sql.regions.control.badrows

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.regions.{Guard, RegionsConf}

/** Rows that the driver has. The optimizer would compute with them, and what fails there ends the query. */
final case class HeldRows(child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override def maxRows: Option[Long] = child.maxRows
  override protected def withNewChildInternal(newChild: LogicalPlan): HeldRows = copy(newChild)
}

/** Leaves it to tasks to compute with rows that the driver has, where that may fail and sessions want such rows handled. */
final class HeldRowsRule(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = session match {
    case own: classic.SparkSession if wanted(own) =>
      Guard(own.sparkContext.conf, "the handling of bad rows", plan) {
        if (plan.collectWithSubqueries { case node if node.expressions.exists(Fallible(_)) => node }.isEmpty) plan
        else plan.transformUpWithSubqueries {
          case rows: LocalRelation if rows.data.nonEmpty && !rows.isStreaming => HeldRows(rows)
        }
      }
    case _ => plan
  }

  private def wanted(session: classic.SparkSession): Boolean = {
    val conf = session.sessionState.conf
    BadRows.handled(conf) && conf.getConf(RegionsConf.mode) == "apply"
  }
}
