package org.apache.spark.sql.regions.rules.actions

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Counters, Refusal, SignedNode}

/** A subplan with the rows of the node and the columns of its whole group; Spark reuses the exchange on top of it. */
private[rules] object ShareSubplan extends ActionApplier {
  val kind = "share"
  override val replaces = true

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: JsonNode): Either[Refusal, LogicalPlan] = {
    val nodes = Applying.elements(action, "group").map(_.asInt(-1))
    for {
      group <- query.repeated.find(_.nodes == nodes).toRight(Refusal("UNKNOWN_ACTION", kind))
      read <- group.merged.over(query.signed, node)
    } yield {
      query.reordered = true
      query.runtime.counters.add(Counters.shares)
      read
    }
  }
}
