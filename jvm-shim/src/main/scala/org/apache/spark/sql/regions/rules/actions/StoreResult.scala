package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.StoreUse
import org.apache.spark.sql.regions.rules.OrderCheck

/** A tee over the node, or over the wider DataFrame in its place. */
private[rules] object StoreResult extends ActionApplier[wire.Store] {

  override def refused(action: wire.Store, query: Long, refusal: Refusal): Option[wire.Event] =
    Some(wire.Abandoned(action.entry, query, refusal.code, refusal.detail))

  override def subject(action: wire.Store): Option[String] = Some(action.ref.getOrElse(""))

  override def misplaced(check: OrderCheck, node: SignedNode, action: wire.Store): Option[String] =
    check.misplaced(node, action.ref, known = !check.again)

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: wire.Store): Either[Refusal, LogicalPlan] =
    Target(query, node, plan, action.ref, action.columns).flatMap { target =>
      val kept = action.columns.toSet
      val chosen = target.columns.filter { case (digest, _) => kept(digest) }
      val whole = chosen.map(_._2) == target.plan.output
      val narrow = if (whole) target.plan else Project(chosen.map(_._2), target.plan)
      // Signed when it is stored, which is not on the query's way.
      def growth = target.frame.fold(query.signed.growing(node))(f => f.signed.growing(f.signed.nodes.head)).map(_.told)
      val order = StoreOrder(
        action.entry,
        action.location,
        target.signature.core,
        target.signature.lineage,
        chosen.map(_._1),
        action.maxBytes,
        action.maxOverhead,
        action.spareSeconds,
        action.inMemory,
        target.wanted,
        query.signed.inputs(node),
        query.notes.query,
        outcome => query.runtime.recycling.stored(query.notes.query, outcome, growth),
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
        query.stores += StoreUse(action.entry, node.id)
        tee.setTagValue(Tags.query, query.notes.query)
        result
      }
    }
}
