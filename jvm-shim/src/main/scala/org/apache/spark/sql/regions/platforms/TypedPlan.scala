package org.apache.spark.sql.regions.platforms

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.{
  And,
  Attribute,
  Exists,
  Expression,
  ListQuery,
  Literal,
  NullsFirst,
  SortOrder,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.optimizer.{DecimalAggregates, RewritePredicateSubquery}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{AVERAGE, EXISTS_SUBQUERY, LIST_SUBQUERY, PLAN_EXPRESSION, SUM}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{RegionsConf, SignedNode, SignedPlan}
import org.apache.spark.sql.regions.exec.MaterializedRead
import org.apache.spark.sql.regions.platforms.Json.{list, record, text}
import org.apache.spark.sql.regions.platforms.TypedExpression.PlanIds
import org.apache.spark.sql.regions.rules.OperatorForms

/**
 * A signed plan with its expressions and types, for whoever translates it for another engine: `typed` of docs/protocol.md.
 *
 * Expressions are those that Spark runs: what it rewrites with another result after the plan was signed is rewritten here. Beside the
 * signed nodes, by their ids, there are others: those of subqueries' plans, which were decided on before and are told as plain Spark
 * has them, and the joins that predicates with subqueries stand for. A node comes before all that is below it.
 *
 * @param inputs by the id of its node, each relation that the engine can read
 */
private[regions] final case class TypedPlan(json: String, inputs: Map[Int, EngineInput])

private[regions] object TypedPlan {

  /**
   * None where no engine is wanted, where it could read nothing, or where there is too much to tell.
   *
   * @param unread whether nobody sees in which order the rows of a node come
   */
  def of(session: SparkSession, signed: SignedPlan, unread: SignedNode => Boolean): Option[TypedPlan] = {
    val conf = session.sessionState.conf
    val mostBytes = conf.getConf(RegionsConf.platformsMaxInputBytes)
    def readable(plan: LogicalPlan): Boolean = plan match {
      case relation: LogicalRelation => EngineInput.possible(relation, session, mostBytes)
      case read: MaterializedRead => read.original.exists(readable)
      case _ => false
    }
    // Inside of a subquery that was decided on before there are no signed nodes.
    def inside(node: SignedNode): Boolean =
      if (node.children.isEmpty) node.plan.exists(readable) else readable(node.plan)
    // What could not be signed at all is one node.
    val whole = signed.nodes.head.signature.isRight || signed.nodes.size > 1
    if (conf.getConf(RegionsConf.platforms) == "off" || !whole || !signed.nodes.exists(inside)) None
    else apply(session, signed, unread)
  }

  /** Averages of short decimals, which Spark computes by doubles; the last digit may be another one than a decimal's. */
  def asRun(plan: LogicalPlan): LogicalPlan =
    if (plan.expressions.exists(_.containsAnyPattern(SUM, AVERAGE))) {
      // On this node alone.
      DecimalAggregates(plan.withNewChildren(plan.children.map(child => Placed(-1, child.output))))
    } else plan

  /** None where there is too much to tell. */
  def apply(
      session: SparkSession,
      signed: SignedPlan,
      unread: SignedNode => Boolean = _ => true): Option[TypedPlan] =
    SQLConf.withExistingConf(session.sessionState.conf) {
      val conf = session.sessionState.conf
      try {
        val walk = new TypedWalk(session, signed)
        val told = record(
          "nodes" -> list(walk.nodes),
          "inOrder" -> list(signed.nodes.filterNot(unread).map(node => Json.number(node.id))),
          "zone" -> text(conf.sessionLocalTimeZone),
          "ansi" -> Json.flag(conf.ansiEnabled),
          "caseSensitive" -> Json.flag(conf.caseSensitiveAnalysis)
        )
        Some(TypedPlan(told.toString, walk.inputs.toMap))
      } catch { case TypedExpression.TooLarge => None }
    }
}

/** What stands for a plan that has an id already. */
private final case class Placed(id: Int, output: Seq[Attribute]) extends LeafNode

private final class TypedWalk(session: SparkSession, signed: SignedPlan) {
  val nodes = mutable.ArrayBuffer.empty[JsonNode]
  val inputs = mutable.Map.empty[Int, EngineInput]
  private val expressions = new TypedExpression
  private var next = signed.nodes.size

  visit(signed.nodes.head)

  private def visit(node: SignedNode): Unit = {
    val (below, apart) = node.children.map(signed.nodes(_)).splitAt(node.plan.children.size)
    // A subquery that was decided on before is one node, whatever is in it.
    if (below.size < node.plan.children.size || node.plan.isInstanceOf[MaterializedRead]) inside(node.id, node.plan)
    else {
      val asked = new PlanIds()
      apart.foreach(root => asked.put(root.plan, root.id))
      val readable = node.signature.isRight
      add(node.id, node.plan, below.map(_.id), asked, readable)
      (below ++ apart).foreach(visit)
    }
  }

  /** A plan that is not signed; what is read in it is told as what it stands for. */
  private def inside(id: Int, plan: LogicalPlan): Unit = plan match {
    case read: MaterializedRead => inside(id, read.original)
    case _ =>
      val asked = new PlanIds()
      if (plan.containsPattern(PLAN_EXPRESSION))
        plan.expressions.foreach(
          _.foreach {
            case subquery: SubqueryExpression => asked.computeIfAbsent(subquery.plan, _ => Int.box(number()))
            case _ =>
          })
      val below = plan.children.map(_ => number())
      add(id, plan, below, asked, readable = true)
      below.zip(plan.children).foreach { case (child, its) => inside(child, its) }
      asked.forEach((its, root) => inside(root.intValue, its))
  }

  private def number(): Int = {
    next += 1
    next - 1
  }

  /**
   * @param below ids of the node's inputs
   * @param asked those of the plans that its expressions ask
   */
  private def add(
      id: Int,
      plan: LogicalPlan,
      below: Seq[Int],
      asked: PlanIds,
      readable: Boolean): Unit =
    if (plan.containsAnyPattern(EXISTS_SUBQUERY, LIST_SUBQUERY) && predicates(plan).nonEmpty) {
      // Spark's own rule, on this node alone, which makes joins of the predicates. It runs after the plan is signed.
      val placed = plan.withNewChildren(below.zip(plan.children).map { case (child, its) => Placed(child, its.output) })
      val apart = placed.transformExpressions {
        case subquery @ (_: Exists | _: ListQuery) =>
          val own = subquery.asInstanceOf[SubqueryExpression]
          own.withNewPlan(Placed(asked.get(own.plan).intValue, own.plan.output))
      }
      joined(id, RewritePredicateSubquery(apart), asked)
    } else put(id, plan, below, asked, readable)

  private def predicates(plan: LogicalPlan): Seq[Expression] =
    plan.expressions.filter(_.exists(e => e.isInstanceOf[Exists] || e.isInstanceOf[ListQuery]))

  private def joined(id: Int, plan: LogicalPlan, asked: PlanIds): Unit = {
    val below = plan.children.map {
      case Placed(known, _) => known
      case _ => number()
    }
    put(id, plan, below, asked, readable = false)
    below.zip(plan.children).foreach {
      case (_, _: Placed) =>
      case (child, its) => joined(child, its, asked)
    }
  }

  private def put(
      id: Int,
      plan: LogicalPlan,
      below: Seq[Int],
      asked: PlanIds,
      readable: Boolean): Unit = {
    def told(expression: Expression): JsonNode = expressions(expression, asked)
    def all(several: Seq[Expression]): JsonNode = list(several.map(told))
    val roots = plan.expressions.flatMap(
      _.collect { case s: SubqueryExpression if asked.containsKey(s.plan) => asked.get(s.plan).intValue })
    val known: Option[JsonNode] = Option(TypedPlan.asRun(plan)).collect {
      case relation: LogicalRelation if readable => this.relation(id, relation, told)
      case _: LogicalRelation => record()
      case local: LocalRelation if local.data.size <= TypedWalk.mostRows =>
        val types = local.output.map(_.dataType)
        record("rows" -> list(
          local.data.map(row =>
            list(types.zipWithIndex.map { case (dataType, i) => told(Literal(row.get(i, dataType), dataType)) }))))
      case Project(columns, _) => record("list" -> all(columns))
      case Filter(condition, _) => filter(told, condition)
      case Aggregate(keys, columns, _, _) => record("keys" -> all(keys), "list" -> all(columns))
      case join: Join => this.join(told, join)
      case Sort(order, whole, _, _) => record("order" -> this.order(told, order), "global" -> Json.flag(whole))
      case GlobalLimit(size, _) => record("limit" -> told(size))
      case LocalLimit(size, _) => record("limit" -> told(size))
      case Union(_, false, _) => record()
      case Window(columns, partition, order, _, _) =>
        record("list" -> all(columns), "partition" -> all(partition), "order" -> this.order(told, order))
      case WindowGroupLimit(partition, order, rank, size, _) =>
        record(
          "partition" -> all(partition),
          "order" -> this.order(told, order),
          "rank" -> text(TypedExpression.name(rank)),
          "limit" -> Json.number(size))
      case Expand(projections, _, _) => record("projections" -> list(projections.map(all)))
    }
    // Another operator is translated by nobody, and may read each of its inputs' columns.
    val args = known.getOrElse(record("list" -> all(plan.children.flatMap(_.output))))
    nodes += record(
      "id" -> Json.number(id),
      "operator" -> text(if (known.isDefined) plan.getClass.getSimpleName else plan.getClass.getName),
      "children" -> list((below ++ roots).distinct.map(child => Json.number(child))),
      "output" -> list(
        plan.output.map { a =>
          val told = Seq("id" -> text(a.exprId.id.toString), "name" -> text(a.name), "type" -> text(a.dataType.sql))
          record(told ++ Option.when(!a.nullable)("nullable" -> Json.flag(false)): _*)
        }),
      "args" -> args
    )
  }

  /** Without what Spark adds for speed: joins above remove the same rows. */
  private def filter(told: Expression => JsonNode, condition: Expression): JsonNode = {
    val plain = TypedWalk.conjuncts(condition).filterNot(OperatorForms.isRuntimeFilter)
    record("condition" -> told(plain.reduceOption(And).getOrElse(Literal.TrueLiteral)))
  }

  private def order(told: Expression => JsonNode, order: Seq[SortOrder]): JsonNode = list(
    order.map { key =>
      record(
        "child" -> told(key.child),
        "ascending" -> Json.flag(key.isAscending),
        "nullsFirst" -> Json.flag(key.nullOrdering == NullsFirst))
    })

  private def join(told: Expression => JsonNode, join: Join): JsonNode = {
    val args = record("kind" -> text(TypedWalk.kind(join.joinType)))
    join.condition.foreach(condition => args.set[JsonNode]("condition", told(condition)))
    join.joinType match {
      case ExistenceJoin(exists) => args.put("exists", exists.exprId.id.toString)
      case _ =>
    }
    args
  }

  private def relation(id: Int, relation: LogicalRelation, told: Expression => JsonNode): JsonNode =
    EngineInput.of(relation, session).fold(record()) { input =>
      inputs(id) = input
      val types = input.partition.fields.map(_.dataType).toSeq
      record(
        "files" -> list(
          input.files.map { file =>
            record(
              "path" -> text(file.path),
              "bytes" -> Json.number(file.bytes),
              "modified" -> Json.number(file.modified),
              "values" -> list(
                types.zipWithIndex.map { case (dataType, i) =>
                  told(Literal(file.values.get(i, dataType), dataType))
                })
            )
          }),
        "columns" -> list(relation.output.map(_.name).filterNot(input.partition.fieldNames.contains).map(text)),
        "partition" -> list(input.partition.fieldNames.toSeq.map(text))
      )
    }
}

private object TypedWalk {

  /** Of a local relation, which becomes a part of a statement. */
  val mostRows = 1000

  def kind(join: JoinType): String = join match {
    case _: ExistenceJoin => "ExistenceJoin"
    case other => other.getClass.getSimpleName.stripSuffix("$")
  }

  def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }
}
