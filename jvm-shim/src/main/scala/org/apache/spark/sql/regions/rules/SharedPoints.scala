package org.apache.spark.sql.regions.rules

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.{Attribute, PythonUDF}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.Layout
import org.apache.spark.sql.regions.platforms.TypedPlan

/**
 * A DataFrame that earlier queries of the session were built on, and the node of the present query that it could stand in for.
 *
 * @param analyzed the DataFrame as the program has it
 * @param held its ids where no earlier query was built on it, but the program still refers to it
 * @param weaker no DataFrame of the program's: the node without the filters that change from iteration to iteration of a loop
 * @param signed the DataFrame's own optimized plan, with all its columns
 * @param columns digest and attribute of each distinct column
 * @param layout how plain Spark would arrange its rows, were it a query by itself
 * @param typed its plan for another engine
 * @param morePython whether it calls Python functions that the node does not call
 */
final case class SharedPoint(
    ref: String,
    analyzed: LogicalPlan,
    node: Int,
    seen: Int,
    held: Set[Long],
    signed: SignedQuery,
    signature: Signature,
    columns: Seq[(String, Attribute)],
    layout: () => Option[Layout],
    weaker: Boolean = false,
    typed: () => Option[TypedPlan] = () => None,
    morePython: Boolean = false) {

  /** Nodes of the query below its place, each with the DataFrame's own node of the same rows. */
  def places(query: SignedPlan): Seq[(Int, Int)] = {
    def rows(n: SignedNode) = n.signature.toOption.map(s => (s.lineage, n.operator))
    val own = signed.nodes.flatMap(n => rows(n).map(_ -> n.id)).reverse.toMap
    query.below(query.nodes(node)).flatMap(n => rows(n).flatMap(own.get).map(n.id -> _))
  }

  def plan: LogicalPlan = signed.nodes.head.plan

  /** With some of its columns only, so that what holds just these serves the nodes below; None where that is not the same rows. */
  def narrowed(session: SparkSession, runtime: RegionsRuntime, kept: Set[String]): Option[SharedPoint] = {
    val chosen = columns.collect { case (digest, attribute) if kept(digest) => attribute }
    for {
      plan <- SharedPoints.optimized(session, Project(chosen, analyzed))
      own = runtime.recycling.sign(session, plan)
      root = own.nodes.head
      if root.signature.exists(_.lineage == signature.lineage)
      narrow = own.storeColumns(root)
      if kept.subsetOf(narrow.map(_._1).toSet)
    } yield copy(signed = own, columns = narrow, layout = RowOrder.alone(session, own.nodes.head.plan))
  }
}

/** Those of one query. The planner may ask for more of them, or again: each DataFrame is optimized and signed once. */
private[rules] final class SharedPoints(
    session: SparkSession,
    runtime: RegionsRuntime,
    signed: SignedPlan,
    order: RowOrder,
    frames: Seq[LogicalPlan],
    changed: Set[String]) {

  private final case class Frame(
      own: SignedQuery,
      signature: Signature,
      columns: Seq[(String, Attribute)],
      node: SignedNode) {

    def point(
        ref: String,
        analyzed: LogicalPlan,
        seen: Int,
        held: Set[Long],
        layout: () => Option[Layout],
        weaker: Boolean = false): SharedPoint =
      SharedPoint(ref, analyzed, node.id, seen, held, own, signature, columns, layout, weaker)
  }

  private val looked = new IdentityHashMap[LogicalPlan, Option[(Frame, KnownFrame)]]

  /** A DataFrame of which it is known, without looking further, that its rows would come in another order than those of any node. */
  var misfit = false

  private lazy val repeated = {
    val firstUse = session.sessionState.conf.getConf(RegionsConf.recycleFirstUseOverhead) > 0
    // What Spark will hold serves its next uses.
    if (frames.isEmpty || OptimizerRuns.ofHeldRows) Nil else SharedDataFrames.repeated(frames, firstUse)
  }

  /** One for each of the topmost nodes that a filter moved through which changed. */
  private lazy val weaker: Seq[SharedPoint] =
    new WeakerSubplans(changed)(signed).take(SharedDataFrames.most).zipWithIndex.flatMap { case ((node, plan), i) =>
      framed(plan, Seq(node)).map(
        _.point(s"w$i", plan, 1, Set.empty, RowOrder.alone(session, plan), weaker = true))
    }

  /**
   * One for each result: of DataFrames with the same rows the one used most, else the outermost, which has all its columns.
   *
   * @param offered how many of the widest DataFrames are wanted beside those that were used before
   */
  def apply(offered: Int): Seq[SharedPoint] = {
    val known = repeated.map(_.plan).toSet
    val more = SharedDataFrames.all(frames, offered).filterNot(sighted => known.exists(_ eq sighted.plan))
    (repeated ++ more).zipWithIndex.flatMap { case (sighted, i) => point(sighted, s"s$i") }
      .groupBy(p => (p.node, p.signature.lineage)).values.map(_.maxBy(_.seen)).toSeq ++ weaker
  }

  private def point(sighted: SharedDataFrames.Sighted, ref: String): Option[SharedPoint] =
    for {
      (frame, known) <- looked.computeIfAbsent(sighted.plan, look)
      more = asksForMorePython(frame.node, frame.own.nodes.head.plan)
      if sighted.held.isEmpty || !more
    } yield frame.point(ref, sighted.plan, sighted.seen, sighted.held, () => known.layout)
      .copy(typed = () => known.typed(frame.own), morePython = more)

  private def look(analyzed: LogicalPlan): Option[(Frame, KnownFrame)] = {
    val known = KnownFrame.of(session, analyzed)
    known.plan.filterNot { plan =>
      val nowhere = signed.nodes.forall(order.misfits(_, plan, known.shuffles))
      misfit ||= nowhere
      nowhere
    }.flatMap(framed(_, signed.nodes)).map(_ -> known)
  }

  private def framed(plan: LogicalPlan, places: Seq[SignedNode]): Option[Frame] = {
    val own = runtime.recycling.sign(session, plan)
    val root = own.nodes.head
    val columns = own.storeColumns(root)
    for {
      signature <- root.signature.toOption
      if root.notStorable.isEmpty
      node <- places.find(replaceable(_, plan, signature, columns))
    } yield Frame(own, signature, columns, node)
  }

  /** A Python function may take any time: for a use that may never come, none is called that this query does not call. */
  private def asksForMorePython(node: SignedNode, plan: LogicalPlan): Boolean = {
    def python(plan: LogicalPlan): Set[String] =
      plan.collect { case p => p.expressions.flatMap(_.collect { case udf: PythonUDF => UdfDigests.key(udf.func) }) }
        .flatten.toSet
    (python(plan) -- python(node.plan)).nonEmpty
  }

  private def replaceable(
      node: SignedNode,
      plan: LogicalPlan,
      shared: Signature,
      columns: Seq[(String, Attribute)]): Boolean = node.signature.exists { s =>
    node.notStorable.isEmpty && !node.asItIs && s.core == shared.core && shared.conjuncts.forall(
      s.conjuncts.contains) &&
    signed.over(node, plan, columns, shared.conjuncts.toSet).isRight
  }
}

private[rules] object SharedPoints {

  def optimized(session: SparkSession, analyzed: LogicalPlan): Option[LogicalPlan] =
    OptimizerRuns.captureOptimized(session, session.sharedState.cacheManager.useCachedData(analyzed))
}
