package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.{Entries, StoredEntry}
import org.apache.spark.sql.regions.rules.actions.ActionApplier

/** Entries that one decision looks at, each opened once. */
private[rules] final class OpenedEntries(session: SparkSession) {
  private val opened = mutable.HashMap.empty[String, Either[Refusal, StoredEntry]]

  def apply(location: String, entry: String): Either[Refusal, StoredEntry] =
    opened.getOrElseUpdate(entry, Entries.open(session, location, entry))
}

/**
 * Which of the planner's choices would give rows in another order than plain Spark, where somebody sees it. Asked before anything
 * is changed, so that the planner can choose something else.
 */
private[rules] final class OrderCheck(
    val runtime: RegionsRuntime,
    signed: SignedQuery,
    val order: RowOrder,
    val opened: OpenedEntries) {

  /**
   * @param again whether something was refused before. Else a node's own rows may be stored unlooked at: their order is found beside
   * the query, and where it turns out to be unknown they are stored in vain, once.
   * @return node and entry of a read, node and DataFrame of what would be kept, or node and "" of its own result
   */
  def refused(answer: wire.Decision, shared: Seq[SharedPoint], again: Boolean): Seq[(Int, String)] = for {
    action <- answer.actions.collect { case action: wire.NodeAction => action }
    node <- signed.nodes.lift(action.node)
    // Of a read of another query's part of the plan nothing is known until it is put there.
    name <- ActionApplier.of(action).misplaced(this, node, action, shared, again)
  } yield node.id -> name

  /** What is kept of the node: its DataFrame where that does not fit, "" where the node's own rows could not be read in order. */
  def misplaced(node: SignedNode, ref: Option[String], shared: Seq[SharedPoint], known: Boolean): Option[String] =
    ref match {
      case Some(name) => shared.find(_.ref == name).filterNot(order.fits(node, _)).map(_.ref)
      case None => Option.unless(known || order.repeatable(node))("")
    }
}
