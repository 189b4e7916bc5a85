package org.apache.spark.sql.regions.wire

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/** The messages of tests/fixtures/wire, which the planner's side reads and writes as well. */
class WireSuite extends munit.FunSuite {
  private val fixtures: JsonNode = {
    val file = Iterator.iterate(Paths.get("").toAbsolutePath)(_.getParent).takeWhile(_ != null)
      .map(_.resolve("tests/fixtures/wire/messages.json")).find(Files.exists(_)).get
    Frames.json.readTree(file.toFile)
  }

  private val codecs: Map[String, Codec[_]] = Map(
    "Request" -> Request.codec,
    "Event" -> Event.codec,
    "Answer" -> Answer.codec,
    "Greeting" -> Greeting.codec,
    "Started" -> Started.codec,
    "EngineRequest" -> EngineRequest.codec,
    "EngineAnswer" -> EngineAnswer.codec
  )

  private def samples: Seq[(String, ObjectNode)] = for {
    kind <- fixtures.properties.asScala.toSeq
    sample <- kind.getValue.elements.asScala
  } yield kind.getKey -> sample.asInstanceOf[ObjectNode]

  private def again[A](sample: JsonNode)(implicit codec: Codec[A]): JsonNode =
    Frames.tree(codec.read(sample, ""))

  test("a message is the same once it was read and written") {
    assertEquals(codecs.keySet, samples.map(_._1).toSet)
    samples.foreach { case (kind, sample) =>
      val written = again(sample)(codecs(kind))
      assert(sample.equals(Comparing, written), s"$written is not $sample")
    }
  }

  /** A Long that fits into an Int is read as one. */
  private object Comparing extends java.util.Comparator[JsonNode] {
    override def compare(one: JsonNode, other: JsonNode): Int =
      if (one == other || one.isNumber && other.isNumber && one.asDouble == other.asDouble) 0 else 1
  }

  test("a renamed field is refused with its name") {
    samples.foreach { case (kind, sample) =>
      sample.fieldNames.asScala.toSeq.filter(_ != "type").foreach { name =>
        val broken = sample.deepCopy()
        broken.set[JsonNode](name + "X", broken.remove(name))
        val error = intercept[ProtocolException](codecs(kind).read(broken, ""))
        assert(error.getMessage.contains(name), error.getMessage)
      }
    }
  }

  test("a value of another type is refused with the field's name") {
    val error = intercept[ProtocolException](
      Answer.codec.read(Frames.json.readTree("""{"type":"decision","declines":[{"node":"x","code":"A"}]}"""), ""))
    assertEquals(error.getMessage, "Decision.declines.node: expected an Int, found \"x\"")
  }
}
