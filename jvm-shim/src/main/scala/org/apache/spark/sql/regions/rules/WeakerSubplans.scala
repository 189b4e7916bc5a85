package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.regions.{BoundedMap, SignedNode, SignedPlan}

/** Which filters changed since the plan of the same shape before; of one application. */
private[regions] final class ChangedFilters {
  private val last = BoundedMap[String, Set[String]](limit = 200, byUse = true)

  /** @return filters as [[QueryShape.condition]] tells them; none where the shape is new */
  def apply(shape: String, conditions: Set[String]): Set[String] =
    Option(last.put(shape, conditions)).fold(Set.empty[String])(conditions -- _)
}

/**
 * A node without the filters that change from iteration to iteration of a loop, and with the columns that they read.
 *
 * {{{
 *   Join k = k                               Join k = k
 *     Project k                                Project k, v
 *       Filter v > 3           →                 sales
 *         sales                                shops
 *     shops
 * }}}
 *
 * Spark has pushed such a filter below joins, so that no two iterations have a result in common that is worth keeping. What is left
 * meets rows that plain Spark would not have met it on: only what raises no error on any row. Whether its rows, filtered, are the
 * node's is not taken on trust: it is signed.
 */
private[rules] final class WeakerSubplans(changed: Set[String]) {

  /** Topmost nodes with their weaker plans. */
  def apply(signed: SignedPlan): Seq[(SignedNode, LogicalPlan)] = {
    def visit(node: SignedNode): Seq[(SignedNode, LogicalPlan)] =
      Some(node).filter(n => n.signature.isRight && n.notStorable.isEmpty && moves(n.plan)).flatMap(weaker)
        .map(plan => Seq(node -> plan))
        .getOrElse(node.children.take(node.plan.children.size).flatMap(child => visit(signed.nodes(child))))
    if (changed.isEmpty) Nil else visit(signed.nodes.head)
  }

  private def weaker(node: SignedNode): Option[LogicalPlan] = {
    val read = AttributeSet(conjuncts(node.plan).filter(changes).flatMap(_.references))
    if (read.isEmpty) None
    else {
      val plan = without(node.plan, read)
      Option.when((plan ne node.plan) && total(plan))(plan)
    }
  }

  private def changes(conjunct: Expression): Boolean = changed(QueryShape.condition(conjunct))

  /** Of the operators that filters move through. */
  private def conjuncts(plan: LogicalPlan): Seq[Expression] = plan match {
    case Filter(condition, child) => ExpressionDigest.flatten[And](condition) ++ conjuncts(child)
    case Project(_, child) => conjuncts(child)
    case join: Join => join.condition.toSeq.flatMap(ExpressionDigest.flatten[And](_)) ++ sides(join).flatMap(conjuncts)
    case _ => Nil
  }

  /** Inputs whose filters are filters of the join. */
  private def sides(join: Join): Seq[LogicalPlan] = join.joinType match {
    case _: InnerLike => Seq(join.left, join.right)
    case LeftOuter | LeftSemi | LeftAnti => Seq(join.left)
    case RightOuter => Seq(join.right)
    case _ => Nil
  }

  private def without(plan: LogicalPlan, read: AttributeSet): LogicalPlan = plan match {
    case Filter(condition, child) => kept(condition, read).foldLeft(without(child, read))((rows, c) => Filter(c, rows))
    case Project(list, child) =>
      val below = without(child, read)
      val more = below.output.filter(a => read.contains(a) && !list.exists(_.exprId == a.exprId))
      if ((below eq child) && more.isEmpty) plan else Project(list ++ more, below)
    case join: Join =>
      val inputs = sides(join)
      def side(input: LogicalPlan) = if (inputs.exists(_ eq input)) without(input, read) else input
      join.copy(side(join.left), side(join.right), condition = join.condition.flatMap(kept(_, read)))
    case _ => plan
  }

  /** That a value is not null was often found out from the filter that goes. */
  private def kept(condition: Expression, read: AttributeSet): Option[Expression] =
    ExpressionDigest.flatten[And](condition).filter {
      case IsNotNull(a: Attribute) if read.contains(a) => false
      case conjunct => !changes(conjunct)
    }.reduceOption(And)

  private def moves(plan: LogicalPlan): Boolean = plan.exists {
    case _: Join | _: Aggregate | _: Window => true
    case _ => false
  }

  private def total(plan: LogicalPlan): Boolean = plan match {
    case _: Filter | _: Project | _: Join =>
      plan.expressions.forall(TotalExpressions(_)) && plan.children.forall(total)
    case _ => true
  }
}
