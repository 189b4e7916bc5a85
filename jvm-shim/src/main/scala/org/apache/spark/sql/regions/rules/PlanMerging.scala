package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Several plans of one shape as one that has the columns of all, and the rows of all: where their filters differ, a row passes
 * that passes any of them. Whoever reads the merged plan has to filter it again.
 *
 * {{{
 *   Aggregate [year, c], sum(v)        Aggregate [year, c], max(w)          Aggregate [year, c], sum(v), max(w)
 *     Join sold = date                   Join sold = date               →     Join sold = date
 *       sales                              sales                                sales
 *       Filter year = 2001, dates          Filter year = 2002, dates            Filter year = 2001 OR year = 2002, dates
 * }}}
 *
 * An expression that may fail is evaluated on no row that no plan of those that have it would evaluate it on.
 * Refuses by [[Refused]].
 */
private[rules] object PlanMerging {

  def apply(plans: Seq[LogicalPlan]): MergedPlan =
    if (plans.tail.forall(_.canonicalized == plans.head.canonicalized)) {
      MergedPlan(plans.head, plans.map(p => AttributeMap(p.output.zip(plans.head.output))), Extent.Same)
    } else if (plans.exists(_.isInstanceOf[Project])) projects(plans)
    else if (plans.exists(_.isInstanceOf[Filter])) filters(plans)
    else
      all(plans) { case p: Aggregate => p }.map(aggregates)
        .orElse(all(plans) { case p: Join => p }.map(joins))
        .orElse(all(plans) { case p: Window => p }.map(windows))
        .getOrElse(Refused("SHAPES_DIFFER", plans.map(_.nodeName).distinct.mkString(", ")))

  private def all[T](plans: Seq[LogicalPlan])(kind: PartialFunction[LogicalPlan, T]): Option[Seq[T]] =
    Some(plans.collect(kind)).filter(_.size == plans.size)

  private def projects(plans: Seq[LogicalPlan]): MergedPlan = {
    val (lists, children) = plans.map {
      case Project(list, child) => (list, child)
      case other => (other.output, other)
    }.unzip
    val child = apply(children)
    val named = new MergedNames(child, plans.size)
    val attributes = lists.zipWithIndex.map { case (list, i) => named.add(list, i) }
    named.check()
    val missing = child.kept.filterNot(kept => named.list.exists(_.exprId == kept.exprId))
    MergedPlan(Project(named.list ++ missing, child.plan), attributes, child.extent, child.kept)
  }

  private def filters(plans: Seq[LogicalPlan]): MergedPlan = {
    val (conditions, children) = plans.map {
      case Filter(condition, child) => (Some(condition), child)
      case other => (None, other)
    }.unzip
    val child = apply(children)
    val merged = MergedConditions(conditions, child.attributes)
    val rows = merged.condition.fold(child.plan)(Filter(_, child.plan))
    if (child.extent == Extent.Wider) merged.condition.foreach(checkTotal)
    if (!merged.differ) child.copy(plan = rows)
    else {
      val extent = if (child.extent == Extent.Same) Extent.Union else Extent.Wider
      MergedPlan(rows, child.attributes, extent, (child.kept ++ merged.kept).distinctBy(_.exprId))
    }
  }

  private def aggregates(plans: Seq[Aggregate]): MergedPlan = {
    val child = apply(plans.map(_.child))
    val keys = plans.zip(child.attributes).map { case (plan, attributes) =>
      plan.groupingExpressions.map(mapped(_, attributes))
    }
    if (keys.tail.exists(other => !same(other, keys.head))) Refused("SHAPES_DIFFER", "grouped otherwise")
    if (plans.map(p => (hashed(p), p.hint)).distinct.size > 1) Refused("SHAPES_DIFFER", "another kind of aggregation")
    if (child.extent == Extent.Wider) keys.head.foreach(checkTotal)
    val named = new MergedNames(child, plans.size)
    val attributes = plans.zipWithIndex.map { case (plan, i) => named.add(plan.aggregateExpressions, i) }
    named.check()
    val grouped = if (child.extent == Extent.Same) Nil else keys.head.collect { case key: Attribute => key }
    val missing = grouped.filterNot(key => named.list.exists(_.exprId == key.exprId))
    val plan = plans.head.copy(keys.head, named.list ++ missing, child.plan)
    MergedPlan(plan, attributes, child.extent, grouped)
  }

  /** One that needs sorted rows would make the others sort theirs. Those in Python are planned apart, and have no buffers. */
  private def hashed(plan: Aggregate): Boolean = {
    val calls = plan.aggregateExpressions.flatMap(_.collect { case call: aggregate.AggregateExpression => call })
    val buffers = calls.map(_.aggregateFunction).flatMap {
      case python: PythonUDAF => Refused("SHAPES_DIFFER", s"${python.name} of groups in Python")
      case function => function.aggBufferAttributes
    }
    Aggregate.supportsHashAggregate(buffers, plan.groupingExpressions)
  }

  private def windows(plans: Seq[Window]): MergedPlan = {
    val child = apply(plans.map(_.child))
    val specs = plans.zip(child.attributes).map { case (plan, attributes) =>
      (plan.partitionSpec ++ plan.orderSpec).map(mapped(_, attributes))
    }
    val sizes = plans.map(plan => (plan.partitionSpec.size, plan.orderSpec.size)).distinct.size
    if (sizes > 1 || specs.tail.exists(other => !same(other, specs.head))) Refused("SHAPES_DIFFER", "other windows")
    if (child.extent == Extent.Wider) specs.head.foreach(checkTotal)
    val named = new MergedNames(child, plans.size)
    val attributes = plans.zipWithIndex.map { case (plan, i) => named.add(plan.windowExpressions, i) }
    named.check()
    val first = plans.head
    MergedPlan(
      first.copy(
        windowExpressions = named.list,
        partitionSpec = specs.head.take(first.partitionSpec.size),
        orderSpec = specs.head.drop(first.partitionSpec.size).map(_.asInstanceOf[SortOrder]),
        child = child.plan
      ),
      child.attributes.zip(attributes).map { case (below, own) => below ++ own },
      child.extent,
      child.kept
    )
  }

  private def joins(plans: Seq[Join]): MergedPlan = {
    val first = plans.head
    if (plans.exists(plan => plan.joinType != first.joinType || plan.hint != first.hint)) {
      Refused("SHAPES_DIFFER", "joined otherwise")
    }
    // An existence join makes an attribute of its own in each of the plans.
    if (first.joinType.isInstanceOf[ExistenceJoin]) Refused("SHAPES_DIFFER", "ExistenceJoin")
    val left = apply(plans.map(_.left))
    val right = apply(plans.map(_.right))
    val attributes = left.attributes.zip(right.attributes).map { case (a, b) => a ++ b }
    val merged = MergedConditions(plans.map(_.condition), attributes)
    if (merged.differ) checkInner(first, merged, left, right)
    val extent = (left.extent, right.extent) match {
      case (Extent.Same, Extent.Same) => if (merged.differ) Extent.Union else Extent.Same
      case (Extent.Union, Extent.Same) | (Extent.Same, Extent.Union) if !merged.differ => Extent.Union
      // With two sides that are wider, pairs of rows meet that meet in no plan.
      case _ => Extent.Wider
    }
    if (extent == Extent.Wider) merged.condition.foreach(checkTotal)
    val plan = first.copy(left = left.plan, right = right.plan, condition = merged.condition)
    val kept = (left.kept ++ right.kept ++ merged.kept).distinctBy(_.exprId)
    MergedPlan(plan, attributes, extent, kept.filter(plan.outputSet.contains))
  }

  private def checkInner(join: Join, merged: MergedConditions, left: MergedPlan, right: MergedPlan): Unit = {
    val equal = merged.condition.toSeq.flatMap(ExpressionDigest.flatten[And](_)).exists {
      case EqualTo(a, b) =>
        def across(one: Expression, other: Expression): Boolean =
          one.references.nonEmpty && other.references.nonEmpty &&
            one.references.subsetOf(left.plan.outputSet) && other.references.subsetOf(right.plan.outputSet)
        across(a, b) || across(b, a)
      case _ => false
    }
    if (!join.joinType.isInstanceOf[InnerLike] || !equal) Refused("SHAPES_DIFFER", "joined on other conditions")
  }

  def mapped[T <: Expression](expression: T, attributes: AttributeMap[Attribute]): T =
    expression.transform { case a: Attribute => attributes.getOrElse(a, a) }.asInstanceOf[T]

  def same(one: Seq[Expression], other: Seq[Expression]): Boolean =
    one.size == other.size && one.zip(other).forall { case (a, b) => a.canonicalized == b.canonicalized }

  def checkTotal(expression: Expression): Unit =
    if (!TotalExpressions(expression)) Refused("MAY_FAIL", expression.sql.take(80))
}

/** The named expressions of several plans over one merged child: each once. */
private final class MergedNames(child: MergedPlan, plans: Int) {
  private val found = mutable.ArrayBuffer.empty[NamedExpression]
  private val having = mutable.ArrayBuffer.empty[mutable.Set[Int]]
  private val places = mutable.HashMap.empty[Expression, Int]

  def list: Seq[NamedExpression] = found.toSeq

  /** Those of the plan `number`, in order. */
  def add(expressions: Seq[NamedExpression], number: Int): AttributeMap[Attribute] =
    AttributeMap(
      expressions.map { expression =>
        val own = PlanMerging.mapped(expression, child.attributes(number))
        val value = own match {
          case Alias(inner, _) => inner
          case other => other
        }
        val place = places.getOrElseUpdate(
          value.canonicalized, {
            found += (own match {
              case alias: Alias if number > 0 => Alias(alias.child, alias.name)()
              case other => other
            })
            having += mutable.Set.empty[Int]
            found.size - 1
          }
        )
        having(place) += number
        expression.toAttribute -> found(place).toAttribute
      })

  /** On rows that only some plans have, only what cannot fail, or what those plans evaluate as well. */
  def check(): Unit = found.zip(having).foreach { case (expression, by) =>
    val everywhere = child.extent == Extent.Same || (child.extent == Extent.Union && by.size == plans)
    if (!everywhere) PlanMerging.checkTotal(expression)
  }
}

/**
 * The filters of several plans at one place.
 *
 * @param condition the conjuncts of all, and that at least one plan's others hold
 * @param differ whether any plan has a conjunct that others lack
 * @param kept what those read
 */
private final case class MergedConditions(condition: Option[Expression], differ: Boolean, kept: Seq[Attribute])

private object MergedConditions {
  def apply(conditions: Seq[Option[Expression]], attributes: Seq[AttributeMap[Attribute]]): MergedConditions = {
    val each = conditions.zip(attributes).map { case (condition, map) =>
      condition.toSeq.flatMap(c => ExpressionDigest.flatten[And](PlanMerging.mapped(c, map))).distinctBy(
        _.canonicalized)
    }
    def in(conjuncts: Seq[Expression], one: Expression): Boolean =
      conjuncts.exists(_.canonicalized == one.canonicalized)
    val (common, _) = each.head.partition(one => each.tail.forall(in(_, one)))
    val others = each.map(_.filterNot(in(common, _)))
    val differ = others.exists(_.nonEmpty)
    // The conjuncts are evaluated in another order, and so on other rows.
    if (differ) each.flatten.foreach(PlanMerging.checkTotal)
    val any =
      if (others.exists(_.isEmpty)) None
      else Some(others.map(_.reduce(And)).distinctBy(_.canonicalized).reduce(Or)).filter(_ => differ)
    MergedConditions(
      (common ++ any).reduceOption(And),
      differ,
      others.flatten.flatMap(_.references.toSeq).distinctBy(_.exprId))
  }
}
