package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.regions.{Refusal, SignedNode}
import org.apache.spark.sql.regions.exec.{TieCheck, Ties}

/**
 * A place of a query whose rows are plain Spark's in whatever order those below come, as long as no two of them are equal in the keys
 * of a sort.
 *
 * A sort's first k rows are determined where no two of its first k + 1 are equal: each of the others is behind row k. A window's values
 * are, where no two rows of a partition are equal in what it orders them by; where only rows up to a number are kept, where no two up to
 * the next number are.
 *
 * @param top the node that a check is put under
 * @param digest of the sort: by names, so that it stays the same when files change
 */
private[rules] final case class TiePlace(
    top: SignedNode,
    groups: Seq[Attribute],
    keys: Seq[SortOrder],
    digest: String) {

  /** @param plan the place with other rows below; None where it has not the form any more that it had */
  def over(plan: LogicalPlan, found: Ties, onTies: Refusal => Unit): Option[LogicalPlan] = (plan, top.plan) match {
    // What is computed of the rows that a limit takes is not computed of the row behind them, which may raise.
    case (Limits(count, Project(list, below)), Limits(_, Project(_, before))) if below.output == before.output =>
      Some(Project(list, limited(count, below, before, found, onTies)))
    case (Limits(count, below), Limits(_, before)) if below.output == before.output =>
      Some(limited(count, below, before, found, onTies))
    case (Filter(condition, window), filter: Filter) if window.output == filter.child.output =>
      val more = TiePlace.numbered(filter).fold(window) { case (number, most) =>
        Filter(LessThanOrEqual(number, Literal(most + 1)), window)
      }
      Some(Filter(condition, TieCheck(more, filter, groups, keys, found, onTies)))
    case (window, original: Window) if window.output == original.output =>
      Some(TieCheck(window, original, groups, keys, found, onTies))
    case _ => None
  }

  /** The first rows of a sort, or of what was put around one. */
  private def limited(
      count: Int,
      sort: LogicalPlan,
      before: LogicalPlan,
      found: Ties,
      onTies: Refusal => Unit): LogicalPlan = {
    val columns: Seq[NamedExpression] = keys.map(_.child).map {
      case a: Attribute => a
      case other => Alias(other, "key")()
    }
    val more = columns.filterNot(column => sort.outputSet.contains(column.toAttribute))
    val sorted = keys.zip(columns).map { case (key, column) => key.copy(child = column.toAttribute) }
    def wide(plan: LogicalPlan): LogicalPlan = if (more.isEmpty) plan else Project(plan.output ++ more, plan)
    val check = TieCheck(Limits(count + 1, wide(sort)), Limits(count, wide(before)), Nil, sorted, found, onTies)
    Limits(count, if (more.isEmpty) check else Project(sort.output, check))
  }
}

private[rules] object TiePlace extends PredicateHelper {

  /** Rows that are held while they are compared; most limits are much smaller. */
  private val most = 100000

  /** @param above the node's ancestors, from its parent on */
  def limit(sort: SignedNode, above: Iterator[SignedNode]): Option[TiePlace] = sort.plan match {
    case Sort(keys, true, _, _) =>
      def taken(plan: LogicalPlan): Boolean = plan match {
        case Limits(count, Project(_, below)) => count > 0 && count <= most && (below eq sort.plan)
        case Limits(count, below) => count > 0 && count <= most && (below eq sort.plan)
        case _ => false
      }
      // A projection, and the local limit below the global one.
      above.take(3).find(node => taken(node.plan)).map(TiePlace(_, Nil, keys, digest(keys, sort.plan)))
    case _ => None
  }

  /** @param parent of the window */
  def window(node: SignedNode, parent: Option[SignedNode]): Option[TiePlace] = node.plan match {
    case window @ Window(calls, groups, keys, _, _)
        if groups.nonEmpty && keys.nonEmpty && (groups ++ keys.map(_.child)).forall(_.isInstanceOf[Attribute]) &&
          calls.forall(call => call.deterministic && !call.exists(_.isInstanceOf[UserDefinedExpression])) =>
      val by = groups.collect { case a: Attribute => a }
      def at(top: SignedNode) = Some(TiePlace(top, by, keys, digest(by.map(SortOrder(_, Ascending)) ++ keys, window)))
      parent.map(above => above -> above.plan) match {
        // It is asked of more rows than in plain Spark, which may have taken the first of each group already.
        case Some((above, Filter(condition, _))) => if (TotalExpressions(condition)) at(above) else None
        case _ => at(node)
      }
    case _ => None
  }

  /** The window's row numbers that pass a filter are at most this. */
  private def numbered(filter: Filter): Option[(Attribute, Int)] = {
    val numbers = filter.child match {
      case window: Window => rowNumbers(window)
      case _ => AttributeSet.empty
    }
    def up(number: Attribute, most: Int): Option[(Attribute, Int)] =
      Option.when(numbers.contains(number) && most >= 0 && most < Int.MaxValue - 1)(number -> most)
    splitConjunctivePredicates(filter.condition).flatMap {
      case LessThanOrEqual(a: Attribute, IntegerLiteral(k)) => up(a, k)
      case GreaterThanOrEqual(IntegerLiteral(k), a: Attribute) => up(a, k)
      case LessThan(a: Attribute, IntegerLiteral(k)) => up(a, k - 1)
      case GreaterThan(IntegerLiteral(k), a: Attribute) => up(a, k - 1)
      case EqualTo(a: Attribute, IntegerLiteral(k)) => up(a, k)
      case EqualTo(IntegerLiteral(k), a: Attribute) => up(a, k)
      case _ => None
    }.minByOption(_._2)
  }

  def rowNumbers(window: Window): AttributeSet = AttributeSet(
    window.windowExpressions.collect {
      case a @ Alias(WindowExpression(_: RowNumber, _), _) => a.toAttribute
    })

  /** No two rows are equal in these. */
  def unique(plan: LogicalPlan): Seq[AttributeSet] = plan match {
    case Project(list, child) =>
      val kept = AttributeSet(list.collect { case a: Attribute => a })
      unique(child).filter(_.subsetOf(kept))
    case Filter(_, child) => unique(child)
    case window @ Window(_, groups, _, _, _) if groups.forall(_.isInstanceOf[Attribute]) =>
      rowNumbers(window).toSeq.map(number => AttributeSet(groups.flatMap(_.references) :+ number))
    case _ => Nil
  }

  def digest(sort: Sort): String = digest(sort.order, sort)

  private def digest(keys: Seq[SortOrder], plan: LogicalPlan): String = {
    // What a key is computed from has a name that others have, too.
    val computed = plan.children.collect { case Project(list, _) => list }.flatten
    Digest.of("ties", keys.map(_.sql) ++ plan.output.map(a => s"${a.name} ${a.dataType.sql}") ++ computed.map(_.sql))
  }
}

/** A sort of all rows, perhaps with fewer of its columns, or with some that are computed of these. */
private[rules] object Sorted {
  def unapply(plan: LogicalPlan): Option[Sort] = plan match {
    case sort: Sort => Option.when(sort.global)(sort)
    case Project(_, sort: Sort) => unapply(sort)
    case _ => None
  }
}

/** The first rows of a plan. */
private[rules] object Limits {
  def apply(count: Int, plan: LogicalPlan): LogicalPlan = Limit(Literal(count), plan)

  def unapply(plan: LogicalPlan): Option[(Int, LogicalPlan)] = plan match {
    case GlobalLimit(IntegerLiteral(most), LocalLimit(IntegerLiteral(same), child)) if most == same =>
      Some((most, child))
    case _ => None
  }
}
