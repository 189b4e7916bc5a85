package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.{Entries, StoredEntry}
import org.apache.spark.sql.regions.rules.actions.{ActionApplier, Applying}

/** Entries that one decision looks at, each opened once. */
private[rules] final class OpenedEntries(session: SparkSession) {
  private val opened = mutable.HashMap.empty[String, Either[Refusal, StoredEntry]]

  def apply(location: String, entry: String): Either[Refusal, StoredEntry] =
    opened.getOrElseUpdate(entry, Entries.open(session, location, entry))
}

/**
 * Which of the planner's choices would give rows in another order than plain Spark, where somebody sees it, or rows where it fails.
 * Asked before anything is changed, so that the planner can choose something else.
 *
 * @param again whether something of the query was refused before. Else a node's own rows may be stored unlooked at: their order is
 *   found beside the query, and where it turns out to be unknown they are stored in vain, once
 */
private[rules] final class OrderCheck(
    val runtime: RegionsRuntime,
    signed: SignedQuery,
    val order: RowOrder,
    val opened: OpenedEntries,
    shared: Seq[SharedPoint],
    val again: Boolean) {

  /** Node and why; the detail is what the planner knows its choice by. */
  def refused(answer: wire.Decision): Seq[(Int, Refusal)] = for {
    action <- answer.actions.collect { case action: wire.NodeAction => action }
    node <- signed.nodes.lift(action.node)
    applier = ActionApplier.of(action)
    subject <- applier.subject(action)
    // Of a read of another query's part of the plan nothing is known until it is put there.
    why <- if (signed.skips(node)) Some(Over.mayFail) else applier.misplaced(this, node, action)
  } yield node.id -> Refusal(why, subject)

  /** Why what is kept of the node, or its DataFrame, could not be read in its place. */
  def misplaced(node: SignedNode, ref: Option[String], known: Boolean): Option[String] =
    ref match {
      case Some(name) => shared.find(_.ref == name).flatMap { point =>
          if (!order.fits(node, point)) Some(Applying.rowOrder)
          else failing(node, point.columns, point.signature.conjuncts.toSet)
        }
      case None => Option.unless(known || order.repeatable(node))(Applying.rowOrder)
    }

  /** Whether plain Spark computes for the node what may fail of rows that a source does not have. */
  def failing(node: SignedNode, columns: Seq[(String, Attribute)], conjuncts: Set[String]): Option[String] =
    signed.over(node, LocalRelation(columns.map(_._2)), columns, conjuncts).left.toOption.map(_.code)
      .filter(_ == Over.mayFail)
}
