package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.regions.{Counters, Refusal, SignedNode, wire}
import org.apache.spark.sql.regions.exec.StoredLayout
import org.apache.spark.sql.regions.rules.OrderCheck

/** The node, or the wider DataFrame in its place, in the block manager; the query reads it there. */
private[rules] object PersistResult extends ActionApplier[wire.Persist] {

  override def refused(action: wire.Persist, query: Long, refusal: Refusal): Option[wire.Event] =
    Some(wire.Dropped(action.entry, query, refusal.code, refusal.detail))

  override def subject(action: wire.Persist): Option[String] = Some(action.ref.getOrElse(""))

  override def misplaced(check: OrderCheck, node: SignedNode, action: wire.Persist): Option[String] =
    check.misplaced(node, action.ref, known = false)

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: wire.Persist): Either[Refusal, LogicalPlan] =
    for {
      target <- Target(query, node, plan, action.ref, action.columns)
      layout = target.layout(query, node)()
      _ <- target.inOrder(query, node)
      kept = action.columns.toSet
      columns = target.columns.filter { case (digest, _) => kept(digest) }
      _ = query.runtime.recycling.persisted.open(
        query.session,
        action.entry,
        Project(columns.map(_._2), target.plan),
        columns.map(_._1),
        target.signature.conjuncts.toSet,
        action.level,
        layout.map(StoredLayout(_, -1, planned = false, single = false, Nil)),
        action.columnar
      )
      _ = query.runtime.counters.add(Counters.persists)
      read <- ReadPersisted(query, node, action.entry, action.release, computes = true)
    } yield read
}
