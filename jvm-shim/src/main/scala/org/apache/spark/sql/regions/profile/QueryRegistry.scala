package org.apache.spark.sql.regions.profile

import java.util.concurrent.CopyOnWriteArrayList

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.regions.{BoundedMap, Guard, Signature, SignedNode, SignedPlan, Tags}
import org.apache.spark.sql.types.{BinaryType, StringType}

/** A load that the plan was given: `relation` takes the place of `node`, or is another copy of what does. */
final case class LoadUse(entry: String, node: Int, relation: LogicalPlan)

/** A place of a query at which an entry is read. */
final case class LoadMark(query: Long, node: Int, entry: String)

/** A store that the plan was given at `node`. */
final case class StoreUse(entry: String, node: Int)

/** A persisted result that a query computes or reads; `release`: nothing later is expected to read it. */
final case class PersistUse(entry: String, release: Boolean)

/**
 * What is kept of a signed node; the plan itself is not held.
 *
 * @param fixedBytes of a row without its texts
 * @param texts its columns whose width no type tells
 * @param textBytes what each of them is taken to have before any was seen
 */
final case class RegisteredNode(
    id: Int,
    operator: String,
    children: Seq[Int],
    signature: Option[Signature],
    fixedBytes: Double,
    texts: Set[ExprId],
    textBytes: Double) {

  /** Bytes of a row, where some of the texts were seen. */
  def rowBytes(seen: Map[ExprId, Double]): Double = fixedBytes + texts.toSeq.map(seen.getOrElse(_, textBytes)).sum
}

object RegisteredNode {
  def apply(node: SignedNode): RegisteredNode = {
    val (texts, others) = node.plan.output.partition(each => each.dataType == StringType || each.dataType == BinaryType)
    val fixed = EstimationUtils.getSizePerRow(others).toDouble
    val all = EstimationUtils.getSizePerRow(node.plan.output).toDouble
    RegisteredNode(
      node.id,
      node.operator,
      node.children,
      node.signature.toOption,
      fixed,
      texts.map(_.exprId).toSet,
      if (texts.isEmpty) 0 else (all - fixed) / texts.size)
  }
}

final case class RegisteredQuery(
    query: Long,
    nodes: IndexedSeq[RegisteredNode],
    loads: Seq[LoadMark],
    stores: Seq[String],
    took: Took = Took())

/**
 * What was spent before a query could run.
 *
 * @param seconds of deciding
 * @param waited seconds until an earlier query had been verified
 * @param inside whether Spark's execution had begun by then, so that its duration has both
 */
final case class Took(seconds: Double = 0, waited: Double = 0, inside: Boolean = true) {

  /** Seconds by which a query took longer than Spark says. */
  def beyond: Double = if (inside) -waited else seconds
}

/** The newest `limit` signed queries, some of which are only explained and never run. */
final class QueryRegistry(limit: Int) {
  private val queries = BoundedMap[Long, RegisteredQuery](limit, byUse = true)

  /** Marks the nodes of `signed`, and the relations of `loads`, so that the profiler finds them in the executed plan. */
  def register(query: Long, signed: SignedPlan, loads: Seq[LoadUse], stores: Seq[StoreUse]): Unit = {
    val marks = new Array[NodeMark](signed.nodes.size)
    val inSubquery = new Array[Boolean](signed.nodes.size)
    for (node <- signed.nodes; (child, i) <- node.children.zipWithIndex) {
      inSubquery(child) = inSubquery(node.id) || i >= node.plan.children.size
    }
    // Backwards in pre-order, so that children are marked before their parents.
    signed.nodes.reverseIterator.foreach { node =>
      marks(node.id) = NodeMark(query, node.id, node.plan.nodeName, node.children.map(marks(_)))
      node.plan.setTagValue(Tags.query, query)
      node.plan.setTagValue(ProfileTags.node, marks(node.id))
      // A subquery was decided on before, by itself, and has its own number. Elsewhere an older one is that of another query.
      if (!inSubquery(node.id) || node.plan.getTagValue(ProfileTags.part).isEmpty) {
        node.plan.setTagValue(ProfileTags.part, query)
      }
      node.signature.foreach(signature => node.plan.setTagValue(Tags.lineage, signature.lineage))
    }
    loads.foreach { load =>
      load.relation.setTagValue(Tags.query, query)
      load.relation.setTagValue(ProfileTags.entry, LoadMark(query, load.node, load.entry))
    }
    val nodes = signed.nodes.map(RegisteredNode(_))
    queries.put(query,
      RegisteredQuery(query, nodes,
        loads.map(load => LoadMark(query, load.node, load.entry)).distinct, stores.map(_.entry)))
  }

  def decided(query: Long, took: Took): Unit =
    queries.computeIfPresent(query, (_, known) => known.copy(took = took))

  def get(query: Long): Option[RegisteredQuery] = Option(queries.get(query))
}

/**
 * A signed node with what is below it. Later optimizer rules copy nodes without their tags (`filter.copy(child = …)` in
 * ColumnPruning); such a node is recognised by its marked parent.
 */
final case class NodeMark(query: Long, id: Int, operator: String, children: Seq[NodeMark]) {
  def below(operator: String): Option[NodeMark] = children.filter(_.operator == operator) match {
    case Seq(only) => Some(only)
    case _ => None
  }
}

object ProfileTags {

  /** Nodes with one lineage are several, so the lineage does not do. */
  val node: TreeNodeTag[NodeMark] = TreeNodeTag[NodeMark]("spark_regions.node")

  /** Number under which the node was decided on: the query's, or that of the subquery that it is in. */
  val part: TreeNodeTag[Long] = TreeNodeTag[Long]("spark_regions.part")

  /** Entry that a logical relation reads, and where. */
  val entry: TreeNodeTag[LoadMark] = TreeNodeTag[LoadMark]("spark_regions.entry")
}

/** Who wants to know that a query has ended. */
final class QueryEnds {
  private val callbacks = new CopyOnWriteArrayList[QueryEnds.Callback]()

  def add(callback: QueryEnds.Callback): Unit = callbacks.add(callback)

  def fire(end: QueryEnd): Unit = callbacks.asScala.foreach { callback =>
    try callback(end)
    catch { case error: Throwable if Guard.isOurs(error) => Guard.warnOnce("a callback at a query's end", error) }
  }
}

object QueryEnds {
  type Callback = QueryEnd => Unit
}

/** @param millis when it ended, since the epoch */
final case class QueryEnd(query: Long, execution: QueryExecution, failed: Boolean, millis: Long)
