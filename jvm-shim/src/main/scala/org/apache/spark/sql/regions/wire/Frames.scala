package org.apache.spark.sql.regions.wire

import java.io.{ByteArrayOutputStream, DataInputStream, DataOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/** Frames of docs/protocol.md: four bytes of length, big-endian, then one JSON object. */
object Frames {
  val maxBytes: Int = 64 << 20

  /** Shared and thread-safe; values may hold Scala collections and Options. */
  val json: ObjectMapper = new ObjectMapper().registerModule(DefaultScalaModule)

  def encode[A](message: A)(implicit codec: Codec[A]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(1024)
    val out = json.createGenerator(bytes)
    codec.write(out, message)
    out.close()
    if (bytes.size > maxBytes) throw new ProtocolException(s"message of ${bytes.size} bytes, at most $maxBytes")
    bytes.toByteArray
  }

  /** The request with its number, which its answer has, too. */
  def numbered(request: Request[_ <: Answer], seq: Long): Array[Byte] =
    s"""{"seq":$seq,""".getBytes(UTF_8) ++ encode[Request[_ <: Answer]](request).drop(1)

  def tree[A](message: A)(implicit codec: Codec[A]): JsonNode = json.readTree(encode(message))

  def write(out: DataOutputStream, body: Array[Byte]): Unit = {
    out.writeInt(body.length)
    out.write(body)
  }

  /** An answer, and the number of its request. */
  def read(in: DataInputStream): (JsonNode, Option[Long]) = {
    val length = in.readInt()
    if (length < 2 || length > maxBytes) throw new ProtocolException(s"frame of $length bytes, expected 2 to $maxBytes")
    val body = new Array[Byte](length)
    in.readFully(body)
    val node =
      try json.readTree(body)
      catch { case error: IOException => throw new ProtocolException("frame is not JSON", error) }
    node match {
      case answer: ObjectNode => answer -> Option(answer.remove("seq")).filter(_.isIntegralNumber).map(_.asLong)
      case _ => throw new ProtocolException("frame is not a JSON object")
    }
  }

  /** @throws ProtocolException it is an answer to something else, or does not fit; or none at all */
  def answer[A](node: JsonNode)(implicit codec: Codec[A]): Either[ErrorAnswer, A] =
    if (node.path("type").asText == "error") Left(ErrorAnswer.codec.read(node, "")) else Right(codec.read(node, ""))
}
