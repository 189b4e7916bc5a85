package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.regions._

/**
 * A signed plan; see [[Signer]].
 *
 * @param filters of each node
 */
final class SignedQuery private[rules] (
    override val nodes: IndexedSeq[SignedNode],
    listings: IndexedSeq[Set[InputListing]],
    filters: IndexedSeq[Filters],
    definitions: Definitions,
    conjuncts: Map[String, Conjunct],
    private[rules] val rootForm: Option[Form],
    private[rules] val places: Places,
    listed: () => Map[String, String],
    grows: SignedNode => Option[Growing])
    extends SignedPlan {

  /** Relations without their files, to what they are with them. */
  private[rules] lazy val sources: Map[String, String] = listed()

  private val growths = mutable.HashMap.empty[Int, Option[Growing]]

  /** What may be stored of fewer files. */
  private[rules] def growing(node: SignedNode): Option[Growing] =
    growths.synchronized(growths.getOrElseUpdate(node.id, grows(node)))

  /** By node and entry, what is stored of fewer files. */
  private[rules] var grown: Map[(Int, String), Grown] = Map.empty

  private val rewriting = new Over(definitions, conjuncts.get)

  /** A filter that cannot be applied on top of stored rows "reads" itself, which nothing covers. */
  override lazy val conjunctColumns: Map[String, Seq[String]] =
    conjuncts.map { case (digest, conjunct) => digest -> (if (conjunct.residual) conjunct.reads else Seq(digest)) }

  override lazy val equal: Map[String, (String, String)] =
    conjuncts.flatMap { case (digest, conjunct) => conjunct.equal.map(digest -> _) }

  override lazy val predicates: Seq[wire.Predicate] = conjuncts.valuesIterator.flatMap(_.told).toSeq

  override lazy val expressions: Map[String, Seq[String]] = {
    val found = mutable.LinkedHashMap[String, Seq[String]]()
    val open = mutable.Queue[String]()
    nodes.foreach(_.signature.foreach(open ++= _.columns))
    nodes.foreach(_.grouping.foreach(open ++= _.reads))
    open ++= conjuncts.valuesIterator.filter(_.residual).flatMap(_.reads)
    open ++= equal.valuesIterator.flatMap { case (one, other) => Seq(one, other) }
    while (open.nonEmpty) {
      val digest = open.dequeue()
      if (!found.contains(digest)) {
        definitions.get(digest).foreach { definition =>
          found(digest) = definition.inputs.distinct
          open ++= definition.inputs
        }
      }
    }
    found.toMap
  }

  override def inputs(node: SignedNode): Seq[InputListing] = listings(node.id).toSeq

  /** Those of the node's relations, whether it has an identity itself or not. */
  private[rules] def inputsBelow(node: SignedNode): Seq[InputListing] = {
    def below(id: Int): Set[InputListing] = nodes(id).children.map(below).foldLeft(listings(id))(_ ++ _)
    below(node.id).toSeq
  }

  override def over(
      node: SignedNode,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): Either[Refusal, LogicalPlan] =
    rewriting(node, filters(node.id), source, stored, storedConjuncts)

  /**
   * Whether plain Spark has files skip rows by filters above the node, of which one may fail: which rows it is applied to depends on the
   * files.
   */
  private[rules] def skips(node: SignedNode): Boolean = {
    @annotation.tailrec
    def filter(below: SignedNode): Option[SignedNode] = parents.get(below.id) match {
      case Some(parent) if parent.plan.isInstanceOf[Filter] => Some(parent)
      case Some(parent) if parent.plan.isInstanceOf[Project] => filter(parent)
      case _ => None
    }
    def scans(plan: LogicalPlan): Boolean = plan match {
      case _: Project | _: Filter => scans(plan.children.head)
      case other => other.children.isEmpty
    }
    filter(node).filter(_ => scans(node.plan)).exists { above =>
      if (above.signature.isLeft) !TotalExpressions(above.plan.asInstanceOf[Filter].condition)
      else filters(above.id).failing(filters(node.id).inOrder.toSet, definitions.mayFail).isDefined
    }
  }

  /** An aggregate's groups, filtered, from a source with more of them. */
  private[rules] def groups(
      node: SignedNode,
      columns: Seq[(Attribute, String)],
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): Either[Refusal, LogicalPlan] = node.signature.flatMap { _ =>
    val wanted = node.grouping.fold(filters(node.id))(_.input)
    rewriting(columns, wanted, source, stored, storedConjuncts)
  }

  /** What to keep of a node: each of its columns once. */
  def storeColumns(node: SignedNode): Seq[(String, Attribute)] =
    node.signature.fold(_ => Nil, _.columns.zip(node.plan.output).distinctBy(_._1))
}
