package org.apache.spark.sql.regions.rules.actions

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.StoreUse
import org.apache.spark.sql.regions.rules.{OrderCheck, SharedPoint}

/** A tee over the node, or over the wider DataFrame in its place. */
private[rules] object StoreResult extends ActionApplier {
  val kind = "store"

  override def refused(refusal: Refusal): Option[String] = Some("abandoned")

  override def misplaced(
      check: OrderCheck,
      node: SignedNode,
      action: JsonNode,
      shared: Seq[SharedPoint],
      again: Boolean): Option[String] = check.misplaced(node, action, shared, known = !again)

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: JsonNode): Either[Refusal, LogicalPlan] =
    Target(query, node, plan, action).flatMap { target =>
      val entry = action.path("entry").asText("")
      val kept = Applying.texts(action, "columns").toSet
      val chosen = target.columns.filter { case (digest, _) => kept(digest) }
      val whole = chosen.map(_._2) == target.plan.output
      val narrow = if (whole) target.plan else Project(chosen.map(_._2), target.plan)
      val order = StoreOrder(
        entry,
        action.path("location").asText,
        target.signature.lineage,
        chosen.map(_._1),
        action.path("maxBytes").asLong(Long.MaxValue),
        Option(action.path("maxOverhead")).filter(_.isNumber).map(_.asDouble),
        target.wanted,
        query.signed.inputs(node),
        query.notes.query,
        outcome => query.runtime.recycling.stored(query.notes.query, outcome),
        target.layout(query, node)
      )
      val tee = Tee(narrow, order)
      for {
        _ <- StorableTypes.refusal(narrow.schema).toLeft(())
        _ <- target.inOrder(query, node)
        result <-
          if (whole && !target.shared) Right(tee)
          else query.signed.over(node, tee, chosen, target.signature.conjuncts.toSet)
      } yield {
        Stores.register(order)
        query.runtime.counters.add(Counters.stores)
        query.stores += StoreUse(entry, node.id)
        tee.setTagValue(Tags.query, query.notes.query)
        result
      }
    }
}
