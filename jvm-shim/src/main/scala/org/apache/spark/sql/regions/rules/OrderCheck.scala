package org.apache.spark.sql.regions.rules

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.{Entries, StoredEntry}

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
    runtime: RegionsRuntime,
    signed: SignedQuery,
    order: RowOrder,
    opened: OpenedEntries) {

  /**
   * @param again whether something was refused before. Else a node's own rows may be stored unlooked at: their order is found beside
   * the query, and where it turns out to be unknown they are stored in vain, once.
   * @return node and entry of a read, node and DataFrame of what would be kept, or node and "" of its own result
   */
  def refused(answer: JsonNode, shared: Seq[SharedPoint], again: Boolean): Seq[(Int, String)] = for {
    action <- answer.path("actions").elements().asScala.toSeq
    node <- signed.nodes.lift(action.path("node").asInt(-1))
    // Of a read of another query's part of the plan nothing is known until it is put there.
    name <- refused(node, action, shared, again)
  } yield node.id -> name

  private def refused(
      node: SignedNode,
      action: JsonNode,
      shared: Seq[SharedPoint],
      again: Boolean): Option[String] = {
    val entry = action.path("entry").asText("")
    action.path("kind").asText match {
      case "load" =>
        val found = opened(action.path("location").asText, entry)
        found.toOption.filterNot(stored => order.fits(node, stored.layout)).map(_ => entry)
      case "recall" => runtime.recycling.persisted.get(entry).filterNot(h => order.fits(node, h.layout)).map(_ => entry)
      case "store" | "persist" if action.hasNonNull("ref") =>
        val ref = action.path("ref").asText
        shared.find(_.ref == ref).filterNot(point => order.fits(node, point.plan)).map(_ => ref)
      case "store" if !again => None
      case "store" | "persist" => if (order.repeatable(node)) None else Some("")
      case _ => None
    }
  }
}
