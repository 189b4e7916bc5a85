package org.apache.spark.sql.regions.ui

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}

import org.apache.spark.sql.regions.wire.Frames

/** JSON trees read as leniently as a log of another version needs: what is absent is empty. */
private[ui] object Trees {
  def elements(node: JsonNode): Seq[JsonNode] = if (node == null) Nil else node.elements().asScala.toSeq

  /** What was decided before the query ran; others tell of its stages, or what turned out. */
  def isMain(decision: JsonNode): Boolean = decision.text("session").nonEmpty && decision.text("topic").isEmpty

  /** An object out of names and values: None and NaN become null, sequences arrays. */
  def record(fields: (String, Any)*): ObjectNode = {
    val node = Frames.json.createObjectNode()
    fields.foreach { case (name, value) => node.set[JsonNode](name, tree(value)) }
    node
  }

  /** The same without what is None. */
  def present(fields: (String, Any)*): ObjectNode = record(fields.filterNot(_._2 == None): _*)

  /** The fields of a case class, without some. */
  def fieldsOf(product: Product, without: String*): ObjectNode =
    record(
      product.productElementNames.zip(product.productIterator).filterNot(field => without.contains(field._1)).toSeq: _*)

  private def tree(value: Any): JsonNode = value match {
    case None => Frames.json.nullNode()
    case Some(known) => tree(known)
    case unknown: Double if unknown.isNaN => Frames.json.nullNode()
    case node: JsonNode => node
    case items: Seq[_] => array(items.map(tree))
    case other => Frames.json.valueToTree(other)
  }

  def array(items: Seq[JsonNode]): ArrayNode = {
    val all = Frames.json.createArrayNode()
    items.foreach(all.add)
    all
  }

  implicit final class Fields(private val node: JsonNode) extends AnyVal {
    def text(name: String): String = Option(node.get(name)).filterNot(_.isNull).map(_.asText).getOrElse("")
    def number(name: String): Option[Double] = Option(node.get(name)).filter(_.isNumber).map(_.asDouble)
    def whole(name: String): Option[Long] = Option(node.get(name)).filter(_.isNumber).map(_.asLong)
    def items(name: String): Seq[JsonNode] = elements(node.path(name))
    def flag(name: String): Boolean = node.path(name).asBoolean(false)
  }
}
