package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.regions.{Refusal, SignedNode, wire}
import org.apache.spark.sql.regions.exec.StoredLayout
import org.apache.spark.sql.regions.rules.{OrderCheck, Over}

/** How one kind of action changes the plan at its node. */
private[rules] trait ActionApplier[A <: wire.NodeAction] {

  /** Nothing below the node runs any more. */
  def replaces: Boolean = false

  /**
   * @param plan the node's plan with what was done so far below it and at it
   * @return what stands in its place, or why the action cannot be applied
   */
  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: A): Either[Refusal, LogicalPlan]

  /**
   * What the planner knows its choice by, where it can choose something else: the entry, the DataFrame, the engine, or "" for the
   * node's own rows.
   */
  def subject(action: A): Option[String] = None

  /**
   * Why the action would give rows in another order than plain Spark, where somebody sees it, or not fail where plain Spark does. Asked
   * before anything is changed.
   */
  def misplaced(check: OrderCheck, node: SignedNode, action: A): Option[String] = None

  /** The event that tells the planner that the action was not applied, if it has to know. */
  def refused(action: A, query: Long, refusal: Refusal): Option[wire.Event] = None
}

private[rules] object ActionApplier {
  def of[A <: wire.NodeAction](action: A): ActionApplier[A] = (action match {
    case _: wire.Load => LoadResult
    case _: wire.Store => StoreResult
    case _: wire.Share => ShareSubplan
    case _: wire.Persist => PersistResult
    case _: wire.ReadPersisted => ReadPersisted
    case _: wire.Route => RouteApplier
  }).asInstanceOf[ActionApplier[A]]
}

/** Reads what is there already. */
private[actions] trait ReadingApplier[A <: wire.NodeAction] extends ActionApplier[A] {
  override def replaces: Boolean = true

  /** A read in the place of `node`, whose rows those of the query's node `at` are computed from; it may be of another plan. */
  def read(
      reads: Reads,
      node: SignedNode,
      at: SignedNode,
      action: A): Either[Refusal, LogicalPlan]

  /** None where there is nothing to read. */
  protected def found(check: OrderCheck, action: A): Option[ReadingApplier.Found]

  override def subject(action: A): Option[String] = Some(entry(action))

  override def misplaced(check: OrderCheck, node: SignedNode, action: A): Option[String] =
    found(check, action).flatMap { found =>
      if (!check.order.fits(node, found.layout)) Some(Applying.rowOrder)
      else check.failing(node, found.columns, found.conjuncts)
    }

  /** Where only the order of rows or what may fail was wrong, it may well serve another query. */
  override def refused(action: A, query: Long, refusal: Refusal): Option[wire.Event] =
    Option.unless(Set(Applying.rowOrder, Over.mayFail)(refusal.code))(lost(action, query, refusal))

  /** The event of a result that cannot be read. */
  protected def lost(action: A, query: Long, refusal: Refusal): wire.Event

  /** What is read. */
  def entry(action: A): String
}

private[actions] object ReadingApplier {

  /**
   * What an action reads.
   *
   * @param layout in which order the rows are
   * @param conjuncts filters that all of them fulfil, without those that the node's filters imply
   */
  final case class Found(layout: Option[StoredLayout], columns: Seq[(String, Attribute)], conjuncts: Set[String])
}
