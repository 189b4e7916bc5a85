package org.apache.spark.sql.regions.profile

import java.util.{Collections, IdentityHashMap}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LogicalPlan, Project, ReturnAnswer}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.{HashAggregateExec, ObjectHashAggregateExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike,
  Exchange,
  ReusedExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.apache.spark.sql.regions.Tags
import org.apache.spark.sql.regions.exec.{MaterializedReadExec, RecordedWriteExec}
import org.apache.spark.sql.regions.skew.{RowCountsExec, SkewReadExec}

/**
 * One physical operator of the plan that really ran.
 *
 * @param parent index, -1 for a root
 * @param reads segment in which the operator's output is made; for an exchange, where it is read
 * @param writes segment that an exchange ends, otherwise `reads`
 * @param partial whether a consumer may have stopped before the end of the output
 * @param foreign part of a cached plan, which another query was signed for
 */
final class Operator(
    val index: Int,
    val plan: SparkPlan,
    val parent: Int,
    val reads: Int,
    val writes: Int,
    val partial: Boolean,
    val foreign: Boolean,
    val node: Option[Int],
    val entry: Option[LoadMark]) {
  val children: mutable.ArrayBuffer[Operator] = mutable.ArrayBuffer.empty
  val kind: String = plan.getClass.getSimpleName
}

/**
 * @param query number of the query that the plan was signed for
 * @param queries numbers of all queries of which a part is in the plan: that one, its subqueries, and what was cached before
 * @param segments number of segments; a segment is what lies between exchanges, and runs as one stage
 * @param passed nodes that Spark planned into the operators of the node given with them, with nothing of their own
 */
final case class WalkedPlan(
    operators: IndexedSeq[Operator],
    segments: Int,
    query: Option[Long],
    queries: Seq[Long],
    passed: Map[Int, Int]) {

  /** Segments, those that others read before these. */
  def inOrder: Seq[Int] = {
    val inputs = operators.filter(o => o.writes != o.reads).groupMap(_.reads)(_.writes)
    val ranks = mutable.Map.empty[Int, Int]
    // An exchange ends a segment that is numbered after the one that reads it.
    (segments - 1 to 0 by -1).foreach { segment =>
      ranks(segment) = inputs.getOrElse(segment, Nil).map(ranks(_) + 1).maxOption.getOrElse(0)
    }
    ranks.keys.toSeq.sortBy(segment => (ranks(segment), segment))
  }
}

/** Flattens an executed plan, through adaptive execution, query stages, code generation and subqueries. */
object PlanWalk {

  def apply(plan: SparkPlan): WalkedPlan = {
    val walk = new PlanWalk
    walk.visit(plan, -1, walk.newSegment(), false, false, Position(None, None, None))
    WalkedPlan(walk.operators.toVector, walk.segments, walk.query, walk.queries.toSeq, walk.passed.toMap)
  }

  /** Where in the logical plan the walk is: the link it came by, and the node of the block that the last operator is. */
  private final case class Position(
      link: Option[LogicalPlan],
      at: Option[LogicalPlan],
      mark: Option[NodeMark],
      computes: Boolean = false)
}

private final class PlanWalk {
  import PlanWalk.Position

  val operators = mutable.ArrayBuffer.empty[Operator]
  val passed = mutable.Map.empty[Int, Int]
  var segments = 0
  var query: Option[Long] = None
  val queries = mutable.LinkedHashSet.empty[Long]
  private val stagesSeen = Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean]())
  private val subqueriesSeen = Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean]())

  def newSegment(): Int = {
    segments += 1
    segments - 1
  }

  def visit(plan: SparkPlan, parent: Int, segment: Int, partial: Boolean, foreign: Boolean, from: Position): Unit =
    plan match {
      // executedPlan, not finalPhysicalPlan: the latter would run what has not run yet.
      case adaptive: AdaptiveSparkPlanExec => visit(adaptive.executedPlan, parent, segment, partial, foreign, from)
      // A split join reads a stage several times; it ran once.
      case stage: QueryStageExec if !stagesSeen.add(stage) =>
      case stage: QueryStageExec => visit(stage.plan, parent, segment, partial, foreign, from)
      case WholeStageCodegenExec(child) => visit(child, parent, segment, partial, foreign, from)
      case InputAdapter(child) => visit(child, parent, segment, partial, foreign, from)
      case AQEShuffleReadExec(child, _) => visit(child, parent, segment, partial, foreign, from)
      case SkewReadExec(child, _) => visit(child, parent, segment, partial, foreign, from)
      case RecordedWriteExec(child, _) => visit(child, parent, segment, partial, foreign, from)
      case RowCountsExec(child, _) => visit(child, parent, segment, partial, foreign, from)
      case other => add(other, parent, segment, partial, foreign, from)
    }

  private def add(
      plan: SparkPlan,
      parent: Int,
      segment: Int,
      partial: Boolean,
      foreign: Boolean,
      from: Position): Unit = {
    val position = if (foreign) from else locate(plan, from)
    if (query.isEmpty && !foreign) {
      query = position.mark.map(_.query).orElse(position.at.flatMap(_.getTagValue(Tags.query)))
    }
    val link = if (foreign) plan.logicalLink else position.at
    queries ++= link.flatMap(_.getTagValue(ProfileTags.part))
    // A subquery that was signed as a query of its own has numbers of its own.
    val mark = position.mark.filter(mark => !foreign && query.contains(mark.query))
    val writes = if (plan.isInstanceOf[Exchange]) newSegment() else segment
    val operator = new Operator(
      operators.size,
      plan,
      parent,
      segment,
      writes,
      partial,
      foreign,
      mark.map(_.id),
      if (foreign) loadOf(plan) else position.at.flatMap(_.getTagValue(ProfileTags.entry))
    )
    queries ++= operator.entry.map(_.query)
    operators += operator
    if (parent >= 0) operators(parent).children += operator
    descend(operator, position)
  }

  /** Of a cached plan's scan. */
  private def loadOf(plan: SparkPlan): Option[LoadMark] = plan match {
    case _: LeafExecNode => plan.logicalLink.flatMap(link =>
        blockFrom(link, None).flatMap { case (node, _) => node.getTagValue(ProfileTags.entry) }.headOption)
    case _ => None
  }

  private def descend(operator: Operator, position: Position): Unit = {
    val plan = operator.plan
    val partialBelow = plan match {
      case _: BaseLimitExec | _: CollectLimitExec | _: SortMergeJoinExec => true
      case _: Exchange | _: SortExec | _: HashAggregateExec | _: ObjectHashAggregateExec => false
      case _ => operator.partial
    }
    plan match {
      case _: ReusedExchangeExec =>
      case scan: InMemoryTableScanExec =>
        // Whoever first reads a cached plan also runs it, in the same stage. Where that was decided for this query, it is the
        // work of the query's own node; otherwise that time is not this query's nodes'.
        if (position.computes && !operator.foreign) {
          visit(scan.relation.cachedPlan, operator.index, operator.reads, false, false, position.copy(computes = false))
        } else {
          visit(scan.relation.cachedPlan, -1, operator.reads, false, true, Position(None, None, None))
        }
      case _ =>
        val below = plan match {
          case recycled: MaterializedReadExec =>
            position.copy(computes = recycled.node != null && recycled.node.computes)
          case _ => position
        }
        plan.children.foreach(visit(_, operator.index, operator.writes, partialBelow, operator.foreign, below))
    }
    plan.subqueries.foreach {
      case _: ReusedSubqueryExec =>
      case subquery => if (subqueriesSeen.add(subquery)) {
          subquery.children.foreach(visit(_, -1, newSegment(), false, operator.foreign, Position(None, None, None)))
        }
    }
  }

  /**
   * The logical node of an operator. An operator that Spark inserted on its own (exchange, sort) belongs to the node
   * that needs it, its parent. A block of projections and filters over a relation is planned at once, and its operators
   * all link to the block's top; they are matched to the block's nodes by kind.
   */
  private def locate(plan: SparkPlan, from: Position): Position = plan.logicalLink match {
    case None => from
    case Some(link) if plan.getTagValue(SparkPlan.LOGICAL_PLAN_TAG).isEmpty && from.link.exists(_ eq link) =>
      advance(plan, from)
    case Some(link) =>
      val top = firstTagged(link)
      val mark = top.flatMap(_.getTagValue(ProfileTags.node))
        .orElse(from.mark.flatMap(_.below(link.nodeName)))
        .orElse(from.mark)
      advance(plan, Position(Some(link), top.orElse(Some(link)), mark, from.computes))
  }

  /** The planner may link to a node of its own around ours: ReturnAnswer. */
  private def firstTagged(link: LogicalPlan): Option[LogicalPlan] =
    link match {
      case ReturnAnswer(child) if isTagged(child) => Some(child)
      case _ => Some(link).filter(isTagged)
    }

  private def isTagged(node: LogicalPlan): Boolean =
    node.getTagValue(ProfileTags.node).isDefined || node.getTagValue(ProfileTags.entry).isDefined

  private def advance(plan: SparkPlan, position: Position): Position = position.at match {
    case Some(at) =>
      val block = blockFrom(at, position.mark)
      block.indexWhere { case (node, _) => matches(plan, node) } match {
        case -1 => position
        case found =>
          val (hit, mark) = block(found)
          val above = block.take(found).flatMap(_._2).map(_.id).distinct
          // Nodes in between left no operator of their own.
          for (id <- mark.map(_.id); skipped <- above if skipped != id && !owns(skipped)) passed(skipped) = id
          position.copy(at = Some(hit), mark = mark.orElse(position.mark))
      }
    case None => position
  }

  private def owns(node: Int): Boolean = operators.exists(_.node.contains(node))

  /** Projections and filters from `top` down, and the relation below them if there is one. */
  private def blockFrom(top: LogicalPlan, mark: Option[NodeMark]): IndexedSeq[(LogicalPlan, Option[NodeMark])] = {
    val block = mutable.ArrayBuffer((top, mark))
    var node = top
    var last = mark
    while (node.isInstanceOf[Project] || node.isInstanceOf[Filter]) {
      node = node.children.head
      if (node.isInstanceOf[Project] || node.isInstanceOf[Filter] || node.isInstanceOf[LeafNode]) {
        last = node.getTagValue(ProfileTags.node).orElse(last.flatMap(_.below(node.nodeName))).orElse(last)
        block += node -> last
      }
    }
    block.toVector
  }

  private def matches(plan: SparkPlan, node: LogicalPlan): Boolean = (plan, node) match {
    case (_: ProjectExec, _: Project) => true
    case (_: FilterExec, _: Filter) => true
    case (_: LeafExecNode, _: LeafNode) => true
    case _ => false
  }
}
