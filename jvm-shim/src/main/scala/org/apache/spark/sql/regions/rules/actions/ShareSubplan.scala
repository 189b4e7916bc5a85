package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Counters, Refusal, SignedNode, wire}

/** A subplan with the rows of the node and the columns of its whole group; Spark reuses the exchange on top of it. */
private[rules] object ShareSubplan extends ActionApplier[wire.Share] {
  override val replaces = true

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: wire.Share): Either[Refusal, LogicalPlan] = {
    for {
      group <- query.repeated.find(_.nodes == action.group).toRight(Refusal("UNKNOWN_ACTION", action.kind))
      read <- group.merged.over(query.signed, node)
      _ <- query.reorder(node)
    } yield {
      query.runtime.counters.add(Counters.shares)
      read
    }
  }
}
