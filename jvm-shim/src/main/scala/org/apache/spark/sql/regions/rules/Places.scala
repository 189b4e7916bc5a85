package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.regions.Refusal

/**
 * Where a query computes aggregates whose last digits depend on the order of rows (`Form.rounding`).
 *
 * Plain Spark often computes the places of one aggregate once, by reusing an exchange, and a query may compare what two of them
 * give: `s = (select max(s) from ...)`. Were one read, or computed by another plan, it could differ from the other in the last
 * digits. So whatever is done holds all places of an aggregate, or none. A subquery is decided before the query around it, where
 * other places may be.
 *
 * @param held what each node computes or has below it
 * @param counts how often, of what stands in several places
 * @param direct the same without subqueries, which filters on top of something read would compute
 * @param below nodes below a place: what changes them at one place only, makes other sums there
 * @param part whether the nodes are those of a subquery
 */
private[rules] final class Places(
    val held: IndexedSeq[Set[String]],
    counts: IndexedSeq[Places.Counts],
    direct: IndexedSeq[Places.Counts],
    below: Set[Int],
    part: Boolean) {

  /** Whether some of what the nodes hold is not held in all places. */
  private def open(nodes: Seq[Int], within: IndexedSeq[Places.Counts]): Boolean =
    nodes.flatMap(counts(_).keys).distinct.exists { aggregate =>
      part || nodes.map(within(_).getOrElse(aggregate, 0)).sum < counts.head(aggregate)
    }

  /** Why a node is neither stored nor read. */
  def refusal(node: Int): Option[Refusal] = Option.when(below(node) || open(Seq(node), counts))(
    Refusal("REPEATED_FLOAT_AGGREGATE", if (part) "the query around the subquery may have it, too" else ""))

  /** Whether the node is not read from rows that have to be filtered: a filter may compute one of the places. */
  def asItIs(node: Int): Boolean = open(Seq(node), direct)

  /** Whether the nodes, of which none is below another, hold all places of what they hold. */
  def together(nodes: Seq[Int]): Boolean = !open(nodes, direct)
}

private[rules] object Places {
  type Counts = Map[String, Int]

  val none: Places = new Places(Vector(Set.empty), Vector(Map.empty), Vector(Map.empty), Set.empty, false)

  /**
   * @param children of each node, which have larger numbers than it
   * @param inputs those of them that are no subqueries
   */
  def apply(children: Seq[Seq[Int]], inputs: Seq[Seq[Int]], held: Seq[Set[String]], part: Boolean): Places = {
    val own = children.zip(held).map { case (below, all) => all -- below.flatMap(held(_)) }
    val several = own.flatten.groupBy(identity).collect { case (aggregate, all) if part || all.size > 1 => aggregate }
      .toSet
    def counted(below: Seq[Seq[Int]]): IndexedSeq[Counts] = {
      val counts = Array.fill(held.size)(Map.empty[String, Int])
      if (several.nonEmpty)
        held.indices.reverse.foreach { node =>
          val here = own(node).intersect(several).toSeq.map(_ -> 1) ++ below(node).flatMap(counts(_))
          counts(node) = here.groupMapReduce(_._1)(_._2)(_ + _)
        }
      counts.toVector
    }
    val counts = counted(children)
    val below = mutable.Set.empty[Int]
    children.indices.foreach { node =>
      if (below(node) || own(node).exists(counts.head.getOrElse(_, 0) > 1)) below ++= children(node)
    }
    new Places(held.toVector, counts, counted(inputs), below.toSet, part)
  }
}
