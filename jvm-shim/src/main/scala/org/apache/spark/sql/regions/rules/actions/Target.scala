package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Refusal, Signature, SignedNode, wire}
import org.apache.spark.sql.regions.exec.Layout
import org.apache.spark.sql.regions.rules._

/**
 * What is to be kept: the node itself, or the wider DataFrame in its place.
 *
 * @param point as it is without us
 * @param routed whether another engine computes parts of it
 */
private[actions] final case class Target(
    plan: LogicalPlan,
    point: LogicalPlan,
    columns: Seq[(String, Attribute)],
    signature: Signature,
    frame: Option[SharedPoint],
    wanted: () => Boolean,
    routed: Boolean = false) {
  def shared: Boolean = frame.isDefined

  def layout(query: Applying, node: SignedNode): () => Option[Layout] =
    if (routed || !query.inOrder(node)) () => None
    else frame.map(_.layout).getOrElse(query.order.later(node))

  /** A wider DataFrame in the place of a node can give the node's rows in another order. Asked last: others may follow in that. */
  def inOrder(query: Applying, node: SignedNode): Either[Refusal, Unit] =
    if (frame.isEmpty) Right(())
    else if (query.order.settled(node)) Right(query.unordered(node))
    else if (!routed && frame.forall(query.order.matches(node, _))) Right(())
    else query.reorder(node)
}

private[actions] object Target {
  def apply(
      query: Applying,
      node: SignedNode,
      plan: LogicalPlan,
      ref: Option[String],
      columns: Seq[String]): Either[Refusal, Target] = ref match {
    case Some(name) =>
      val found = query.shared.find(_.ref == name)
      found.toRight(Refusal("UNKNOWN_ACTION", name)).flatMap(standIn(query, _, node, columns.toSet))
    case None =>
      node.signature.map(Target(plan, node.plan, query.signed.storeColumns(node), _, None, () => true))
  }

  /** A DataFrame in the place of the node; it reads what the node would have read. */
  private def standIn(
      query: Applying,
      whole: SharedPoint,
      node: SignedNode,
      kept: Set[String]): Either[Refusal, Target] = {
    val routes = query.routesIn(whole.ref).map(route => route -> RouteApplier.inside(query, whole, route))
    routes.foreach { case (route, found) =>
      query.notes.action(query.signed.nodes(route.node), route, found.left.toOption)
    }
    routes.collectFirst { case (_, Left(refusal)) => refusal }.toLeft(()).map(_ =>
      standIn(query, whole, node, kept, routes.flatMap(_._2.toOption).toMap))
  }

  /** @param computed by the ids of the DataFrame's nodes, what another engine computes */
  private def standIn(
      query: Applying,
      whole: SharedPoint,
      node: SignedNode,
      kept: Set[String],
      computed: Map[Int, LogicalPlan]): Target = {
    val sources = query.signed.below(node).tail.map(_.id).flatMap(query.readsAt).distinctBy { case (applier, action) =>
      applier.entry(action)
    }
    // What is read holds the columns that the queries need, and not all that the DataFrame has.
    val point =
      if (sources.isEmpty || computed.nonEmpty) whole
      else whole.narrowed(query.session, query.runtime, kept).getOrElse(whole)
    val reads = new Reads(query, point.signed)
    def visit(n: SignedNode): LogicalPlan =
      computed.get(n.id).orElse(
        sources.iterator.flatMap { case (applier, source) =>
          read(reads, n, node, applier, source)
        }.nextOption()).getOrElse {
        n.plan.withNewChildren(n.children.take(n.plan.children.size).map(child => visit(point.signed.nodes(child))))
      }
    val plan = if (sources.isEmpty && computed.isEmpty) point.plan else visit(point.signed.nodes.head)
    Target(plan, point.plan, point.columns, point.signature, Some(point), () => wanted(whole.held), computed.nonEmpty)
  }

  /** What `action` reads, in the place of a node of another plan on the same core; None where it does not serve that node. */
  private def read(
      reads: Reads,
      node: SignedNode,
      at: SignedNode,
      applier: ReadingApplier[wire.NodeAction],
      action: wire.NodeAction): Option[LogicalPlan] = for {
    own <- node.signature.toOption
    asked <- reads.query.signed.nodes(action.node).signature.toOption
    if own.core == asked.core && node.children.nonEmpty
    read <- applier.read(reads, node, at, action).toOption
  } yield read

  /** Python lets go of its temporaries late. */
  private def wanted(held: Set[Long]): Boolean = held.isEmpty || HeldDataFrames.ids().exists(held)
}
