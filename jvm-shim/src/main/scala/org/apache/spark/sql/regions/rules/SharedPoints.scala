package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._

/**
 * A DataFrame that earlier queries of the session were built on, and the node of the present query that it could stand in for.
 *
 * @param plan the DataFrame's own optimized plan, with all its columns
 * @param columns digest and attribute of each distinct column
 */
final case class SharedPoint(
    ref: String,
    node: Int,
    seen: Int,
    plan: LogicalPlan,
    signature: Signature,
    columns: Seq[(String, Attribute)])

object SharedPoints {

  /** One for each result: of DataFrames with the same rows the one used most, else the outermost, which has all its columns. */
  def of(session: SparkSession, runtime: RegionsRuntime, signed: SignedPlan): Seq[SharedPoint] =
    found(session, runtime, signed).groupBy(p => (p.node, p.signature.lineage)).values.map(_.maxBy(_.seen)).toSeq

  private def found(session: SparkSession, runtime: RegionsRuntime, signed: SignedPlan): Seq[SharedPoint] =
    SharedDataFrames.repeated().zipWithIndex.flatMap { case (sighted, i) =>
      for {
        plan <- OptimizerRuns.captureOptimized(session, session.sharedState.cacheManager.useCachedData(sighted.plan))
        own = runtime.recycling.sign(session, plan)
        root = own.nodes.head
        signature <- root.signature.toOption
        if root.notStorable.isEmpty
        columns = own.storeColumns(root)
        node <- signed.nodes.find(replaceable(signed, _, plan, signature, columns))
      } yield SharedPoint(s"s$i", node.id, sighted.seen, plan, signature, columns)
    }

  private def replaceable(
      signed: SignedPlan,
      node: SignedNode,
      plan: LogicalPlan,
      shared: Signature,
      columns: Seq[(String, Attribute)]): Boolean = node.signature.exists { s =>
    node.notStorable.isEmpty && s.core == shared.core && shared.conjuncts.forall(s.conjuncts.contains) &&
    signed.over(node, plan, columns, shared.conjuncts.toSet).isRight
  }
}
