package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.regions.{SignedNode, SignedPlan}

/** All of a query as plain Spark plans it, which is done once, when it is first asked for; its nodes are found in it. */
private[rules] final class PlainPlan(session: SparkSession, signed: SignedPlan) {

  /** A copy: the query goes on with its own. */
  val logical: LogicalPlan = {
    val root = RowOrder.query(signed.nodes.head.plan)
    val copy = root.clone()
    signed.nodes.find(_.plan eq root).foreach(number(_, copy))
    copy
  }

  lazy val physical: SparkPlan = RowOrder.plain(session, logical)

  /** What computes the node's rows; None where it has no operator of its own, or one that asks more than the node does. */
  def apply(node: SignedNode): Option[SparkPlan] = physical.find { plan =>
    plan.getTagValue(SparkPlan.LOGICAL_PLAN_TAG).exists(_.getTagValue(PlainPlan.place).contains(node.id))
  }.filter(plan => !PlainPlan.asks(plan) || PlainPlan.asks(node.plan))

  private def number(node: SignedNode, copy: LogicalPlan): Unit = {
    copy.setTagValue(PlainPlan.place, node.id)
    node.children.zip(copy.children).foreach { case (id, child) => number(signed.nodes(id), child) }
  }
}

private object PlainPlan {
  private val place = TreeNodeTag[Int]("spark_regions.place")

  /** Whether filters of its were made from what is around it. */
  private def asks[P <: QueryPlan[P]](plan: P): Boolean =
    plan.exists(_.expressions.exists(_.exists((e: Expression) => e.isInstanceOf[PlanExpression[_]])))
}
