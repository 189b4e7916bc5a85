package org.apache.spark.sql.regions.ui.events

import scala.jdk.CollectionConverters._
import scala.util.matching.Regex

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode, TextNode}

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.internal.config.{SECRET_REDACTION_PATTERN, STRING_REDACTION_PATTERN}
import org.apache.spark.util.Utils

/**
 * Texts as they may be shown: without what Spark would redact, and short.
 *
 * @param hidden spark.sql.redaction.string.regex, or spark.redaction.string.regex
 * @param secret spark.redaction.regex; matches keys
 */
final class Redaction(hidden: Option[Regex], secret: Regex) {
  import Redaction._

  /** Whether anything was cut since this was made. */
  var truncated = false

  def apply(text: String): String = {
    // First redacted, then cut: half of a secret would pass.
    val shown = if (text == null) "" else Utils.redact(hidden, text)
    if (shown.length <= longest) shown
    else {
      truncated = true
      shown.take(longest - 1) + "…"
    }
  }

  /** The same tree with every text in it treated so, and the values of secret keys hidden. */
  def apply(node: JsonNode): JsonNode = node match {
    case fields: ObjectNode =>
      fields.fieldNames().asScala.toSeq.foreach { name =>
        fields.get(name) match {
          case value: TextNode if secret.findFirstIn(name).nonEmpty => fields.put(name, replaced)
          case value => fields.set[JsonNode](name, apply(value))
        }
      }
      fields
    case items: ArrayNode =>
      (0 until items.size).foreach(i => items.set(i, apply(items.get(i))))
      items
    case text: TextNode => TextNode.valueOf(apply(text.asText))
    case other => other
  }

  /** At most `limit` of the items. */
  def first[T](items: Seq[T], limit: Int): Seq[T] = {
    if (items.lengthCompare(limit) > 0) truncated = true
    items.take(limit)
  }
}

object Redaction {
  val longest = 500
  private val replaced = "*********(redacted)"

  def apply(conf: SparkConf, hidden: Option[Regex]): Redaction =
    new Redaction(hidden, conf.get(SECRET_REDACTION_PATTERN))

  def apply(sc: SparkContext): Redaction = apply(sc.conf, sc.conf.get(STRING_REDACTION_PATTERN))

  /** Settings as Spark's Environment page shows them; a URL's user and password are nobody's business either. */
  def settings(conf: SparkConf, pairs: Seq[(String, String)]): Map[String, String] =
    Utils.redact(conf, pairs).map { case (key, value) =>
      key -> "://[^/@]*@".r.replaceAllIn(value, "://***@").take(longest)
    }.toMap
}
