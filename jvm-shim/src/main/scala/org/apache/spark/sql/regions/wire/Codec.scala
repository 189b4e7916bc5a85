package org.apache.spark.sql.regions.wire

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

/** The peer said something that is not the protocol. */
final class ProtocolException(message: String, cause: Throwable = null) extends java.io.IOException(message, cause)

/** A value as JSON, and back. */
trait Codec[A] {
  def write(out: JsonGenerator, value: A): Unit

  /** @param at what the value belongs to, for the message of the ProtocolException where it is none */
  def read(node: JsonNode, at: String): A
}

object Codec {

  /** The fields of one record: a missing one, or one of another type, is refused with its name. */
  final class Fields(node: JsonNode, at: String) {
    def apply[A](name: String)(implicit codec: Codec[A]): A = {
      val found = node.get(name)
      if (found == null) throw new ProtocolException(s"$at.$name is missing")
      codec.read(found, s"$at.$name")
    }

    def or[A](name: String, default: => A)(implicit codec: Codec[A]): A =
      if (node.has(name)) apply[A](name) else default
  }

  final class Writer(out: JsonGenerator) {
    def apply[A](name: String, value: A)(implicit codec: Codec[A]): Unit = {
      out.writeFieldName(name)
      codec.write(out, value)
    }

    /** Without what is None. */
    def some[A](name: String, value: A)(implicit codec: Codec[A]): Unit = if (value != None) apply(name, value)
  }

  /** @param tag name and value of the field that tells the record from others of its union; "" where it is in none */
  def record[A](name: String, tag: String, value: String, fields: Set[String])(
      reads: Fields => A,
      writes: (Writer, A) => Unit): Codec[A] = of(
    (out, message) => {
      out.writeStartObject()
      if (tag.nonEmpty) out.writeStringField(tag, value)
      writes(new Writer(out), message)
      out.writeEndObject()
    },
    (node, at) => {
      val here = if (at.isEmpty) name else at
      if (!node.isObject) expected("an object", node, here)
      if (tag.nonEmpty && node.path(tag).asText != value) expected(value, node.path(tag), s"$here.$tag")
      node.fieldNames.asScala.find(each => each != tag && !fields(each)).foreach { each =>
        throw new ProtocolException(s"$here.$each is not known")
      }
      reads(new Fields(node, here))
    }
  )

  def union[A](tag: String, name: String)(
      writes: (JsonGenerator, A) => Unit,
      members: (String, Codec[_ <: A])*): Codec[A] = {
    val byTag = members.toMap
    of(
      writes,
      (node, at) =>
        byTag.get(node.path(tag).asText).fold(expected(byTag.keys.mkString(" or "), node.path(tag),
            s"$at$name.$tag"): A)(
          _.read(node, at)))
  }

  implicit val text: Codec[String] =
    of(_.writeString(_), (node, at) => if (node.isTextual) node.asText else expected("a string", node, at))
  implicit val flag: Codec[Boolean] =
    of(_.writeBoolean(_), (node, at) => if (node.isBoolean) node.asBoolean else expected("true or false", node, at))
  implicit val int: Codec[Int] =
    of(_.writeNumber(_),
      (node, at) =>
        if (node.canConvertToExactIntegral && node.canConvertToInt) node.asInt else expected("an Int", node, at))
  implicit val long: Codec[Long] =
    of(_.writeNumber(_),
      (node, at) =>
        if (node.canConvertToExactIntegral && node.canConvertToLong) node.asLong else expected("a Long", node, at))
  implicit val double: Codec[Double] =
    of(_.writeNumber(_), (node, at) => if (node.isNumber) node.asDouble else expected("a number", node, at))

  /** What is only passed on. */
  implicit val any: Codec[JsonNode] = of((out, value) => out.writeTree(value), (node, _) => node)

  implicit def option[A](implicit one: Codec[A]): Codec[Option[A]] = of(
    (out, value) => value.fold(out.writeNull())(one.write(out, _)),
    (node, at) => if (node.isNull) None else Some(one.read(node, at)))

  implicit def seq[A](implicit one: Codec[A]): Codec[Seq[A]] = of(
    (out, values) => {
      out.writeStartArray()
      values.foreach(one.write(out, _))
      out.writeEndArray()
    },
    (node, at) =>
      if (node.isArray) node.elements.asScala.map(one.read(_, at)).toVector else expected("a list", node, at)
  )

  implicit def pair[A, B](implicit first: Codec[A], second: Codec[B]): Codec[(A, B)] = of(
    (out, value) => {
      out.writeStartArray()
      first.write(out, value._1)
      second.write(out, value._2)
      out.writeEndArray()
    },
    (node, at) =>
      if (node.isArray && node.size == 2) (first.read(node.get(0), at), second.read(node.get(1), at))
      else expected("a pair", node, at)
  )

  implicit def map[A](implicit one: Codec[A]): Codec[Map[String, A]] = of(
    (out, values) => {
      out.writeStartObject()
      values.foreach { case (key, value) =>
        out.writeFieldName(key)
        one.write(out, value)
      }
      out.writeEndObject()
    },
    (node, at) =>
      if (!node.isObject) expected("an object", node, at)
      else node.properties.asScala.map(each => each.getKey -> one.read(each.getValue, s"$at.${each.getKey}")).toMap
  )

  private def of[A](writes: (JsonGenerator, A) => Unit, reads: (JsonNode, String) => A): Codec[A] = new Codec[A] {
    override def write(out: JsonGenerator, value: A): Unit = writes(out, value)
    override def read(node: JsonNode, at: String): A = reads(node, at)
  }

  private def expected(what: String, found: JsonNode, at: String): Nothing =
    throw new ProtocolException(s"$at: expected $what, found ${found.toString.take(100)}")
}
