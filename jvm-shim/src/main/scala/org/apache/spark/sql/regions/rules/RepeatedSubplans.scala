package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.optimizer.{PropagateEmptyRelation, PruneFilters}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Window}
import org.apache.spark.sql.regions._

/**
 * Places of a query that one computation can serve.
 *
 * @param nodes ids of the nodes
 * @param copies for each node the number of the first that has the same plan: Spark itself may reuse that one's exchange
 */
private[rules] final case class RepeatedSubplan(nodes: Seq[Int], copies: Seq[Int], merged: MergedSubplans)

/** Finds them: nodes of one core, topmost first. Where what is above them is repeated as often, the places above count. */
private[rules] final class RepeatedSubplans(signed: SignedQuery, sign: LogicalPlan => SignedPlan) {
  private val nodes = signed.nodes
  private val parents: Map[Int, Int] = nodes.flatMap(n => n.children.map(_ -> n.id)).toMap
  private val found = mutable.ArrayBuffer.empty[RepeatedSubplan]
  private val refused = mutable.ArrayBuffer.empty[(Int, Refusal)]

  /** The groups, and for those that cannot be merged their first node and why. */
  def apply(): (Seq[RepeatedSubplan], Seq[(Int, Refusal)]) = {
    val tops = nodes.filter(n => candidate(n) && !parents.get(n.id).exists(above => core(above) == core(n.id)))
    val groups = tops.groupBy(n => core(n.id)).values.map(_.map(_.id)).filter(_.size > 1).toSeq.sortBy(_.head)
    groups.take(RepeatedSubplans.maxGroups).foreach(group)
    // Optimized to the end before the plan around it, a subquery has no part left that could be merged.
    val cores = nodes.filter(candidate).flatMap(n => core(n.id)).toSet
    refused ++= nodes.filter(n => core(n.id).exists(cores)).flatMap { n =>
      n.notStorable.filter(_.code == "SUBQUERY_DECIDED").map(n.id -> _)
    }
    (found.toSeq, refused.toSeq)
  }

  private def group(all: Seq[Int]): Unit = {
    // A place that holds another would be computed from itself.
    val tops = all.filterNot(id => all.exists(other => above(other).drop(1).contains(id)))
    val places = tops.map(underWindows).filterNot(id => isEmpty(nodes(id).plan))
    if (places.size > 1 && places.exists(works) && !inside(places)) {
      val byRows = places.groupBy(lineage).values.toSeq.map(_.sorted).filter(_.size > 1).sortBy(_.head)
      if (places.map(lineage).distinct.size > 1 && !merged(places)) {
        // Under the projections and last filters there is less that can differ.
        merged(places.map(lowest))
      }
      byRows.foreach(merged)
    }
  }

  private def merged(places: Seq[Int]): Boolean =
    found.exists(_.nodes == places) || signed.places.together(places) && (MergedSubplans(
      signed, places.map(nodes(_)), sign) match {
      case Right(merged) =>
        val plans = places.map(nodes(_).plan.canonicalized)
        found += RepeatedSubplan(places, plans.map(plan => places(plans.indexOf(plan))), merged)
        true
      case Left(refusal) =>
        refused += places.head -> refusal
        false
    })

  /** One by one below the places of a group. */
  private def inside(places: Seq[Int]): Boolean = found.exists { outer =>
    val holders = places.flatMap(above(_).find(outer.nodes.contains))
    holders.size == places.size && holders.distinct.size == outer.nodes.size && places.size == outer.nodes.size
  }

  private def above(id: Int): Iterator[Int] =
    Iterator.iterate(Option(id))(_.flatMap(parents.get)).takeWhile(_.isDefined).map(_.get)

  private def candidate(n: SignedNode): Boolean =
    n.signature.isRight && (n.notStorable.isEmpty || n.onePlaceOfSeveral) && n.plan.children.nonEmpty

  private def core(id: Int): Option[String] = nodes(id).signature.toOption.map(_.core)

  private def lineage(id: Int): String = nodes(id).signature.fold(_ => "", _.lineage)

  /** The optimizer will find so later, and remove the place together with what is above it. */
  private def isEmpty(plan: LogicalPlan): Boolean = PropagateEmptyRelation(PruneFilters(plan)) match {
    case relation: LocalRelation => relation.data.isEmpty
    case _ => false
  }

  private def onlyChild(id: Int): Option[Int] = nodes(id).children match {
    case Seq(child) if core(child) == core(id) && candidate(nodes(child)) => Some(child)
    case _ => None
  }

  private def chain(top: Int): Seq[Int] = Iterator.iterate(Option(top))(_.flatMap(onlyChild)).takeWhile(_.isDefined)
    .map(_.get).toSeq

  /** Windows keep the rows, but two places seldom have the same: the lowest place under them. */
  private def underWindows(top: Int): Int =
    chain(top).takeWhile(id => lineage(id) == lineage(top)).zip(chain(top).drop(1) :+ top).filter { case (id, _) =>
      nodes(id).plan.isInstanceOf[Window]
    }.lastOption.fold(top)(_._2)

  private def lowest(top: Int): Int = chain(top).last

  /** Whether anything below, or the node itself, is more than the filtered columns of one source. */
  private def works(id: Int): Boolean = nodes(id).children match {
    case Seq() => false
    case Seq(child) => core(child) != core(id) || works(child)
    case _ => true
  }
}

private[rules] object RepeatedSubplans {

  /** A query with more of them is not looked at further: each takes time to merge. */
  val maxGroups = 24
}
