package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.WriteFiles
import org.apache.spark.sql.regions.{RegionsConf, RegionsRuntime, SignedNode, SignedPlan, Tags}
import org.apache.spark.sql.regions.exec.{Arranged, Layout, MaterializedRead, StoredLayout}

/**
 * In which order plain Spark would give the rows of a query's nodes, and whether anybody would see another one.
 *
 * @param engine whether another engine may compute parts of what is the whole query then, in an order of its own; asked late, as
 *   that is known once the planner has answered
 * @param held whether later queries may read the rows from where this one leaves them in memory, as those of a cache
 */
private[rules] final class RowOrder(
    session: SparkSession,
    signed: SignedPlan,
    engine: => Boolean = false,
    held: => Boolean = false) {
  val any: Boolean = RowOrder.any(session)

  import signed.parents

  private lazy val whole = new PlainPlan(session, signed)
  private val found = mutable.HashMap.empty[Int, (SparkPlan, Option[Layout])]

  private def plain(node: SignedNode): (SparkPlan, Option[Layout]) =
    found.getOrElseUpdate(node.id, planned(node, node.plan)())

  /** @param own the node's plan, or a copy; what it is for now is taken, and planned when that is asked for */
  private def planned(node: SignedNode, own: => LogicalPlan): () => (SparkPlan, Option[Layout]) =
    if (inSubquery(node)) {
      // The plan of a subquery is no part of the plan around it.
      val copy = own
      () => {
        val plan = RowOrder.plain(session, copy)
        (plan, Layout.of(plan, plan))
      }
    } else {
      val (copy, around) = (own, whole)
      () => {
        val plan = around(node).getOrElse(RowOrder.plain(session, copy))
        (plan, Layout.of(plan, around.physical))
      }
    }

  private def layout(node: SignedNode): Option[Layout] = plain(node)._2

  /** Marks the nodes whose tasks may be arranged otherwise. */
  def mark(): Unit = signed.nodes.foreach { node =>
    if (node.signature.isRight && (RowOrder.single(node.plan) && !DeterminedOrder.sees(node.plan) || hidden(node)))
      node.plan.setTagValue(Tags.anyOrder, true)
  }

  /** Finds the layout when it is asked for, which may be beside the query. */
  def later(node: SignedNode): () => Option[Layout] = found.get(node.id).map { case (_, layout) => () => layout }
    .getOrElse {
      // A copy: the query goes on with its own.
      val own = node.plan.clone()
      val plan = planned(node, own)
      val around = if (inSubquery(node)) own else whole.logical
      val top = onTop(node)
      RowOrder.beside(session) {
        val layout = plan()._2
        if (top) layout.map(_.copy(origin = PlanOrigin.of(session, own, around))) else layout
      }
    }

  def arranged(node: SignedNode, stored: StoredLayout): Option[Arranged] =
    if (stored.plan.origin.isDefined && stored.plan.beside.isEmpty && onTop(node) && origin(node) == stored.plan.origin)
      Some(Arranged(UnknownPartitioning(stored.partitions), Nil))
    else {
      val (plan, layout) = plain(node)
      // Partitioned anew for what is above, they would come in another order there.
      layout.flatMap(Layout.arranged(_, plan, stored)).filter { _ =>
        stored.planned || stored.partitions < 0 || !reliedOn(node, plan)
      }
    }

  private def reliedOn(node: SignedNode, plan: SparkPlan): Boolean =
    if (inSubquery(node)) !onTop(node) else Layout.reliedOn(plan, whole.physical)

  private val origins = mutable.HashMap.empty[Int, Option[String]]

  private def origin(node: SignedNode): Option[String] =
    origins.getOrElseUpdate(node.id, PlanOrigin.of(session, node.plan, RowOrder.query(signed.nodes.head.plan)))

  /** Whether nothing above asks how rows are partitioned, so that nothing has to be claimed. */
  @annotation.tailrec
  private def onTop(node: SignedNode): Boolean = parents.get(node.id) match {
    case None => true
    case Some(parent) =>
      parent.plan match {
        case _: Project | _: Filter | _: GlobalLimit | _: LocalLimit | _: Sort | _: Command | _: WriteFiles
            if parent.plan.children.size == 1 && parent.plan.children.head.eq(node.plan) => onTop(parent)
        case _ => false
      }
  }

  /**
   * Whether that is known without planning anything: its shuffles are coalesced by sizes, which other columns change.
   *
   * @param shuffled whether it is known to be shuffled; joins may be broadcast
   */
  def misfits(node: SignedNode, wider: LogicalPlan, shuffled: Boolean = false): Boolean =
    session.sparkContext.isLocal && session.sessionState.conf.adaptiveExecutionEnabled &&
      (shuffled || RowOrder.shuffles(wider)) && !free(node) && !wider.sameResult(node.plan)

  /** Another DataFrame's plan in the place of the node, before it has run. */
  def matches(node: SignedNode, wider: SharedPoint): Boolean = !misfits(node, wider.plan) && {
    val (plan, layout) = plain(node)
    wider.layout().exists { other =>
      val partitions = plan.outputPartitioning.numPartitions
      layout.exists(Layout.arranged(_, plan, StoredLayout(other, partitions, true, false, Nil)).isDefined)
    }
  }

  /** Whether nobody sees another order of the node's rows: not in this query, or each run has its own. */
  def settled(node: SignedNode): Boolean =
    hidden(node) || !asked(node) &&
      (any || RowOrder.single(node.plan) || engine && handedOn(node) || !repeats(node))

  /** Whether the query asks for an order of the node's rows; of sorts the rows below are kept. */
  def asked(node: SignedNode): Boolean = node.plan.isInstanceOf[GlobalLimit]

  /** The same, or nobody does as long as there are no ties, which is checked. */
  def free(node: SignedNode): Boolean = hiding(node).isDefined || settled(node)

  /** What the query has to check while it runs, where rows come in the node's place in another order. */
  def checks(node: SignedNode): Seq[TiePlace] = if (settled(node)) Nil else hiding(node).getOrElse(Nil)

  /** Whether rows that were stored as `stored` can be read in the place of the node. */
  def fits(node: SignedNode, stored: Option[StoredLayout]): Boolean =
    free(node) || stored.flatMap(arranged(node, _)).isDefined

  /** Whether another DataFrame can be computed in the place of the node. */
  def fits(node: SignedNode, wider: SharedPoint): Boolean = free(node) || matches(node, wider)

  /** Whether the node's own rows, once they are stored, could be read in its place. */
  def repeatable(node: SignedNode): Boolean = free(node) || layout(node).isDefined

  /** What several executors shuffle arrives as it comes. */
  private def repeats(node: SignedNode): Boolean =
    session.sparkContext.isLocal || !plain(node)._1.exists(_.isInstanceOf[RowOrder.Shuffle])

  /** Whether something above gives the same rows in the same order, whatever the order of the node's rows is. */
  private def hidden(node: SignedNode): Boolean = hiding(node).exists(_.isEmpty)

  private val hidings = mutable.HashMap.empty[Int, Option[List[TiePlace]]]

  /** Where something above does that: what has to be checked for it. */
  private def hiding(node: SignedNode): Option[List[TiePlace]] =
    hidings.getOrElseUpdate(node.id, hiding(node, Nil))

  @annotation.tailrec
  private def hiding(node: SignedNode, checks: List[TiePlace]): Option[List[TiePlace]] = parents.get(node.id) match {
    // Last digits show the order of the rows that were added up, as the first of them does.
    case Some(parent) if handsOn(parent, checks.nonEmpty) =>
      parent.plan match {
        case aggregate if RowOrder.single(aggregate) => Some(checks)
        case sort: Sort if sort.global && RowOrder.total(sort) => Some(checks)
        case other if scalar(other, node.plan) => Some(checks)
        case _: Sort =>
          checkable(TiePlace.limit(parent, ancestors(parent))) match {
            case Some(place) => Some(place :: checks)
            case None => hiding(parent, checks)
          }
        case _ => hiding(parent, checks)
      }
    case Some(parent) if parent.children.headOption.contains(node.id) =>
      checkable(TiePlace.window(parent, parents.get(parent.id))) match {
        case Some(place) => hiding(parent, place :: checks)
        case None => None
      }
    case _ => None
  }

  /**
   * Whether the order of the node's rows shows in those of one above it, or in how they are cut into partitions. One row, and the first
   * rows of a sort, are one partition in any case.
   */
  @annotation.tailrec
  def shows(node: SignedNode, above: SignedNode, sorted: Boolean = false): Boolean =
    node.id == above.id || (parents.get(node.id) match {
      case None => false
      case Some(parent) =>
        parent.plan match {
          case aggregate if RowOrder.single(aggregate) => false
          case other if scalar(other, node.plan) => false
          case _: GlobalLimit if sorted => false
          case Sort(_, global, _, _) => shows(parent, above, global)
          case _: Project | _: LocalLimit => shows(parent, above, sorted)
          case _ => shows(parent, above, false)
        }
    })

  /** @param checked below it something has no signature, for what is checked */
  private def handsOn(node: SignedNode, checked: Boolean): Boolean =
    if (node.signature.isRight) !DeterminedOrder.sees(node.plan)
    else checked && (node.plan match {
      case _: Project | _: Filter | _: Sort =>
        node.plan.deterministic && !node.plan.expressions.exists(_.exists(_.isInstanceOf[UserDefinedExpression]))
      case _ => false
    })

  /** What is remembered of the sort whose rows the node's are, perhaps the first of them, where they had ties. */
  @annotation.tailrec
  def sorted(node: SignedNode): Option[String] = node.plan match {
    case sort: Sort if sort.global => Some(TiePlace.digest(sort))
    case _: Project | _: GlobalLimit | _: LocalLimit if node.children.nonEmpty =>
      sorted(signed.nodes(node.children.head))
    case _ => None
  }

  private def ancestors(node: SignedNode): Iterator[SignedNode] =
    Iterator.iterate(parents.get(node.id))(_.flatMap(above => parents.get(above.id))).takeWhile(_.isDefined).flatten

  /** Where it has had ties, it is likely to have some again. */
  private def checkable(place: Option[TiePlace]): Option[TiePlace] = place.filter(found =>
    RegionsRuntime.of(session).exists(runtime => !runtime.recycling.ties.contains(found.digest)))

  private def scalar(parent: LogicalPlan, inner: LogicalPlan): Boolean = parent.expressions.exists(
    _.exists {
      case subquery: ScalarSubquery => subquery.plan eq inner
      case _ => false
    })

  /**
   * Whether another engine may compute the node: the query has the same rows, each as often, in whatever order the node's come, and
   * those that are sorted in the same order, as long as there are no ties (`checks`).
   */
  def unread(node: SignedNode): Boolean = any || hiding(node).isDefined || handedOn(node)

  private lazy val seenLater: Boolean = held

  /**
   * Whether each operator above gives for the same rows the same rows, up to the query's own, and nobody sees the order of those but who
   * asked for them. A list of those that are known to.
   */
  @annotation.tailrec
  private def handedOn(node: SignedNode): Boolean = parents.get(node.id) match {
    case None => !seenLater
    case Some(parent) =>
      parent.plan match {
        case _: DataWritingCommand | _: WriteFiles => handedOn(parent)
        case _ if parent.signature.isLeft || DeterminedOrder.sees(parent.plan) => false
        // Rows that a subquery is asked for, whether there are such, or how many.
        case asking if !asking.children.exists(_ eq node.plan) => true
        case _: Project | _: Filter | _: Join | _: Aggregate | _: Window | _: Union | _: Expand => handedOn(parent)
        case _ => false
      }
  }

  @annotation.tailrec
  private def inSubquery(node: SignedNode): Boolean = parents.get(node.id) match {
    case Some(parent) if parent.children.take(parent.plan.children.size).contains(node.id) => inSubquery(parent)
    case above => above.isDefined
  }
}

private[regions] object RowOrder {

  /** To plan a command is the business of whoever runs it. */
  def query(plan: LogicalPlan): LogicalPlan = plan match {
    case (_: Command | _: WriteFiles) if plan.children.size == 1 => query(plan.children.head)
    case other => other
  }
  type Shuffle = org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

  def plain(session: SparkSession, plan: LogicalPlan): SparkPlan = MaterializedRead.physical(session, plan)

  /** The layout of a plan that is a query by itself. */
  def alone(session: SparkSession, plan: LogicalPlan): () => Option[Layout] = {
    val own = plan.clone()
    beside(session) {
      val physical = plain(session, own)
      Layout.of(physical, physical)
    }
  }

  /** Planned with the settings of now, or not at all. */
  private def beside(session: SparkSession)(layout: => Option[Layout]): () => Option[Layout] = {
    def settings = session.sessionState.conf.getAllConfs
    val now = settings
    () => session.withActive(layout).filter(_ => settings == now)
  }

  private def shuffles(plan: LogicalPlan): Boolean = plan.exists {
    case Aggregate(keys, _, _, _) => keys.nonEmpty
    case _: Distinct | _: Window | _: RepartitionOperation => true
    case _ => false
  }

  private def single(plan: LogicalPlan): Boolean = plan match {
    case aggregate: Aggregate => aggregate.groupingExpressions.isEmpty
    case _ => false
  }

  /** Whether somebody may see the order of what a physical operator makes: each run of plain Spark has the same here. */
  def seen(session: SparkSession, plan: SparkPlan): Boolean =
    session.sparkContext.isLocal && !any(session) && !plan.logicalLink.exists(unordered)

  private def any(session: SparkSession): Boolean =
    session.sessionState.conf.getConf(RegionsConf.recycleRowOrder) == "any"

  /** Projections and filters may be newer than the marks. */
  @annotation.tailrec
  private def unordered(plan: LogicalPlan): Boolean = plan match {
    case marked if marked.getTagValue(Tags.anyOrder).isDefined => true
    case Project(_, child) => unordered(child)
    case Filter(_, child) => unordered(child)
    case _ => false
  }

  /** No two different rows are ties. */
  def total(sort: Sort): Boolean = {
    val keys = sort.order.map(_.child)
    val exact = AttributeSet(keys.collect { case a: Attribute if ValueDigest.groupsExactly(a.dataType) => a })
    sort.child.outputSet.subsetOf(exact) || sort.child.distinctKeys.exists(_.subsetOf(ExpressionSet(keys))) ||
    TiePlace.unique(sort.child).exists(_.subsetOf(AttributeSet(keys.collect { case a: Attribute => a })))
  }
}
