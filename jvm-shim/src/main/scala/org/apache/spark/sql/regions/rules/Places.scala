package org.apache.spark.sql.regions.rules

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
 * @param part whether the nodes are those of a subquery
 */
private[rules] final class Places(
    val held: IndexedSeq[Set[String]],
    counts: IndexedSeq[Map[String, Int]],
    part: Boolean) {

  private def open(nodes: Seq[Int]): Boolean = {
    val here = nodes.flatMap(counts(_)).groupMapReduce(_._1)(_._2)(_ + _)
    here.exists { case (aggregate, count) => part || count < counts.head(aggregate) }
  }

  def refusal(node: Int): Option[Refusal] = Option.when(open(Seq(node)))(
    Refusal("REPEATED_FLOAT_AGGREGATE", if (part) "the query around the subquery may have it, too" else ""))

  /** Whether the nodes, of which none is below another, hold all places of what they hold. */
  def together(nodes: Seq[Int]): Boolean = !open(nodes)
}

private[rules] object Places {
  val none: Places = new Places(Vector(Set.empty), Vector(Map.empty), false)

  /** @param children of each node, which have larger numbers than it */
  def apply(children: Seq[Seq[Int]], held: Seq[Set[String]], part: Boolean): Places = {
    val own = children.zip(held).map { case (below, all) => all -- below.flatMap(held(_)) }
    val several = own.flatten.groupBy(identity).collect { case (aggregate, all) if part || all.size > 1 => aggregate }
      .toSet
    val counts = Array.fill(held.size)(Map.empty[String, Int])
    if (several.nonEmpty) {
      children.indices.reverse.foreach { node =>
        val all = own(node).intersect(several).toSeq ++ children(node).flatMap(counts(_).keys)
        counts(node) = all.distinct.map { aggregate =>
          val here = if (own(node)(aggregate)) 1 else 0
          aggregate -> (here + children(node).map(counts(_).getOrElse(aggregate, 0)).sum)
        }.toMap
      }
    }
    new Places(held.toVector, counts.toVector, part)
  }
}
