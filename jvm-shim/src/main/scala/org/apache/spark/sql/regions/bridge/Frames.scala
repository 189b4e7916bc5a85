package org.apache.spark.sql.regions.bridge

import java.io.{DataInputStream, DataOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/** The peer said something that is not the protocol. */
final class ProtocolException(message: String, cause: Throwable = null) extends IOException(message, cause)

/** Frames of docs/protocol.md: four bytes of length, big-endian, then one JSON object. */
object Frames {
  val maxBytes: Int = 64 << 20

  /** Shared and thread-safe; messages may hold Scala collections and Options. */
  val json: ObjectMapper = new ObjectMapper().registerModule(DefaultScalaModule)

  def encode(message: AnyRef): Array[Byte] = {
    val bytes = json.writeValueAsBytes(message)
    if (bytes.length > maxBytes) throw new ProtocolException(s"message of ${bytes.length} bytes, at most $maxBytes")
    bytes
  }

  def write(out: DataOutputStream, body: Array[Byte]): Unit = {
    out.writeInt(body.length)
    out.write(body)
  }

  def read(in: DataInputStream): JsonNode = {
    val length = in.readInt()
    if (length < 2 || length > maxBytes) throw new ProtocolException(s"frame of $length bytes, expected 2 to $maxBytes")
    val body = new Array[Byte](length)
    in.readFully(body)
    val node =
      try json.readTree(body)
      catch { case error: IOException => throw new ProtocolException("frame is not JSON", error) }
    if (node == null || !node.isObject) throw new ProtocolException("frame is not a JSON object")
    node
  }

  def parse(line: String): Option[JsonNode] =
    try Option(json.readTree(line.getBytes(UTF_8))).filter(_.isObject)
    catch { case _: IOException => None }
}
