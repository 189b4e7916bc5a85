package org.apache.spark.sql.regions

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.regions.exec.Layout
import org.apache.spark.sql.regions.rules.Grouping
import org.apache.spark.sql.regions.wire.{Answer, Codec, Event, Request}

/** Why something was not done: a stable `code` of the table in `spark_regions/reasons.py`, and its arguments. */
final case class Refusal(code: String, detail: String = "")

/**
 * What data a plan node produces, in the normal form of docs/protocol.md.
 *
 * @param core digest of the rows before `conjuncts`
 * @param conjuncts sorted digests of the filters on the core
 * @param columns one digest per output attribute, in output order
 * @param lineage digest of core and conjuncts
 */
final case class Signature(core: String, conjuncts: Seq[String], columns: Seq[String], lineage: String)

/**
 * One node of a signed plan.
 *
 * @param id pre-order number, subquery plans included
 * @param notStorable why the node may not be stored although it has a signature
 * @param asItIs whether only its very rows may be read in its place, not more of them, to be filtered
 * @param known of a source that Spark wrote: by what
 * @param grouping of an aggregate
 */
final case class SignedNode(
    id: Int,
    plan: LogicalPlan,
    children: Seq[Int],
    signature: Either[Refusal, Signature],
    notStorable: Option[Refusal],
    asItIs: Boolean = false,
    known: String = "",
    grouping: Option[Grouping] = None) {

  /** What people know it by: a source by its name, anything else as Spark calls it. */
  def operator: String = SourceName.of(plan).getOrElse(plan.nodeName)

  /** Neither stored nor read: other places of the query hold the same aggregate, which must not differ from this one. */
  def onePlaceOfSeveral: Boolean = notStorable.exists(_.code == "REPEATED_FLOAT_AGGREGATE")
}

/** A file listing that a signature depends on; `unchanged()` asks the file system again. */
trait InputListing {
  def unchanged(): Boolean
  def describe: String

  /** Why nothing may be stored of what is read from it, or loaded, although it has an identity. */
  def unsettled: Option[Refusal] = None
}

/**
 * A plan with the signature of every node.
 *
 * @param nodes in pre-order, the root first
 * @param expressions digest of a computed column to the digests of its inputs; sources have no entry
 * @param conjunctColumns digest of a conjunct to the digests of the columns it reads
 * @param equal digest of a conjunct to two columns that have the same value in each row that it lets pass
 * @param predicates what simple conjuncts say
 */
trait SignedPlan {
  def nodes: IndexedSeq[SignedNode]
  def expressions: Map[String, Seq[String]]
  def conjunctColumns: Map[String, Seq[String]]
  def equal: Map[String, (String, String)]
  def predicates: Seq[wire.Predicate]

  final lazy val parents: Map[Int, SignedNode] = nodes.flatMap(node => node.children.map(_ -> node)).toMap

  /** The node and all that is below it, in pre-order. */
  final def below(node: SignedNode): Seq[SignedNode] = node +: node.children.flatMap(child => below(nodes(child)))

  /** Every listing that the rows of `node` depend on. */
  def inputs(node: SignedNode): Seq[InputListing]

  /**
   * The plan of `node`, computed from `source` instead: residual filters, then a projection to exactly the node's output
   * attributes (same expression ids).
   *
   * @param stored column digest of each of `source`'s attributes
   * @param storedConjuncts conjuncts that `source` has already applied; it may lack further rows that one of the node's leaves out
   */
  def over(
      node: SignedNode,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): Either[Refusal, LogicalPlan]
}

object Tags {

  /** Lineage of the rows that a logical node produces; survives later optimizer rules, read by the profiler. */
  val lineage: TreeNodeTag[String] = TreeNodeTag[String]("spark_regions.lineage")

  /** Nobody sees in which order the logical node's input comes, nor its rows. */
  val anyOrder: TreeNodeTag[Boolean] = TreeNodeTag[Boolean]("spark_regions.anyOrder")

  /** Number of the query that a logical node was signed for. */
  val query: TreeNodeTag[Long] = TreeNodeTag[Long]("spark_regions.query")
}

/** What became of a store. */
sealed trait StoreOutcome
final case class Committed(entry: String, rows: Long, bytes: Long, files: Int, seconds: Double) extends StoreOutcome
final case class Abandoned(entry: String, reason: Refusal, seconds: Double) extends StoreOutcome

/**
 * An order to store what passes.
 *
 * @param columns digest of each column of the teed child, in its output order
 * @param maxBytes stop and abandon beyond this
 * @param maxOverhead share of the query's own work that writing may take, beside `spareSeconds`
 * @param inMemory give up what is more than a task can hold, and what a query had quickly
 * @param inputs checked again before the commit
 * @param layout of the teed child, where plain Spark's is known
 */
final case class StoreOrder(
    entry: String,
    location: String,
    core: String,
    lineage: String,
    columns: Seq[String],
    maxBytes: Long,
    maxOverhead: Option[Double],
    spareSeconds: Double,
    inMemory: Boolean,
    wanted: () => Boolean,
    inputs: Seq[InputListing],
    query: Long,
    onEnd: StoreOutcome => Unit,
    layout: () => Option[Layout] = () => None)

/** The connection to the planner. Calls never throw: a failure is a [[Refusal]]. */
trait Planner {
  def request[A <: Answer](message: Request[A], deadlineMillis: Long)(implicit codec: Codec[A]): Either[Refusal, A]
  def observe(event: Event): Unit
}
