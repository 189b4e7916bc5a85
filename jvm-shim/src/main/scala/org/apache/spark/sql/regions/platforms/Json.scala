package org.apache.spark.sql.regions.platforms

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, JsonNodeFactory, ObjectNode}

/** Trees of JSON. */
private[platforms] object Json {
  private val make = JsonNodeFactory.instance

  def text(value: String): JsonNode = make.textNode(value)
  def flag(value: Boolean): JsonNode = make.booleanNode(value)
  def number(value: Long): JsonNode = make.numberNode(value)

  def list(values: Iterable[JsonNode]): ArrayNode = {
    val made = make.arrayNode()
    values.foreach(made.add(_: JsonNode))
    made
  }

  def record(fields: (String, JsonNode)*): ObjectNode = {
    val made = make.objectNode()
    fields.foreach { case (name, value) => made.set[JsonNode](name, value) }
    made
  }
}
