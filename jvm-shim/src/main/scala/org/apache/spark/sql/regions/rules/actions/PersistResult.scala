package org.apache.spark.sql.regions.rules.actions

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.regions.{Counters, Refusal, SignedNode}
import org.apache.spark.sql.regions.exec.StoredLayout
import org.apache.spark.sql.regions.rules.{OrderCheck, SharedPoint}

/** The node, or the wider DataFrame in its place, in the block manager; the query reads it there. */
private[rules] object PersistResult extends ActionApplier {
  val kind = "persist"

  override def refused(refusal: Refusal): Option[String] = Some("dropped")

  override def misplaced(
      check: OrderCheck,
      node: SignedNode,
      action: JsonNode,
      shared: Seq[SharedPoint],
      again: Boolean): Option[String] = check.misplaced(node, action, shared, known = false)

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: JsonNode): Either[Refusal, LogicalPlan] =
    for {
      target <- Target(query, node, plan, action)
      _ <- target.inOrder(query, node)
      kept = Applying.texts(action, "columns").toSet
      columns = target.columns.filter { case (digest, _) => kept(digest) }
      _ = query.runtime.recycling.persisted.open(
        query.session,
        action.path("entry").asText(""),
        Project(columns.map(_._2), target.plan),
        columns.map(_._1),
        target.signature.conjuncts.toSet,
        action.path("level").asText("MEMORY_AND_DISK"),
        target.layout(query, node)().map(StoredLayout(_, -1, planned = false, single = false, Nil))
      )
      _ = query.runtime.counters.add(Counters.persists)
      read <- ReadPersisted(query, node, action, computes = true)
    } yield read
}
