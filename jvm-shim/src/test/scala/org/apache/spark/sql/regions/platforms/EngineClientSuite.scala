package org.apache.spark.sql.regions.platforms

import java.io.ByteArrayOutputStream
import java.nio.file.Paths
import java.util.Base64
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter
import org.apache.spark.sql.regions.{Refusal, wire}
import org.apache.spark.sql.regions.bridge.{Backoff, PlannerClient}
import org.apache.spark.sql.regions.exec.ExecSession
import org.apache.spark.sql.regions.wire.Hello
import org.apache.spark.sql.types._

/** Real processes and real sockets: wire/spark_regions/engine.py is the other end. */
class EngineClientSuite extends munit.FunSuite {
  private val folder = Paths.get(getClass.getResource("/wire").toURI).toString
  private lazy val sc = ExecSession.spark.sparkContext
  private val schema = StructType(Seq(StructField("a", LongType), StructField("tied", BooleanType)))

  private def settings(confs: (String, String)*): EngineSettings = EngineSettings(
    command = Seq("python3", "-P", "-m", "spark_regions.engine"),
    version = "0.1.0",
    confs = confs.toMap,
    hello = Hello(_, PlannerClient.protocol, "app-1", "test", "me"),
    environment = Map("PYTHONPATH" -> folder)
  )

  private def withClient[T](confs: (String, String)*)(body: EngineClient => T): T = {
    val client = new EngineClient(sc, new EngineProcess(settings(confs: _*), new Backoff(limit = 2)))
    try body(client)
    finally client.close()
  }

  private def stream(rows: Seq[InternalRow], of: StructType = schema): String = {
    val bytes = new ByteArrayOutputStream
    val writer = new ArrowBatchStreamWriter(of, bytes, "UTC", false, false)
    writer.writeBatches(EngineBatches(of, rows.grouped(2).toSeq).iterator)
    writer.end()
    Base64.getEncoder.encodeToString(bytes.toByteArray)
  }

  private def rows(n: Int): Seq[InternalRow] = (1 to n).map(i => InternalRow(i.toLong, i == 3))

  private def statement(what: String, count: Int, answer: String, seconds: Double = 20): wire.RunStatement =
    wire.RunStatement("1.0", s"$what $count $answer", Map.empty, Seq("BIGINT", "BOOLEAN"), 1000, seconds)

  private def run(client: EngineClient, what: String, count: Int = 5): Either[Refusal, EngineRows] =
    client.run(statement(what, count, stream(rows(5))), schema)

  private def code(answer: Either[Refusal, Any]): String = answer.swap.map(_.code).getOrElse(s"$answer")

  test("the rows of a statement; the process is started by the first one") {
    withClient() { client =>
      val first = run(client, "rows").fold(why => fail(s"$why"), identity)
      assertEquals((first.rows, first.batches.size), (5L, 3))
      assert(first.startSeconds > 0 && first.seconds >= first.startSeconds)
      assertEquals(EngineRows.decode(first.batches.iterator, schema).map(_.getLong(0)).toList, List(1L, 2L, 3L, 4L, 5L))
      assertEquals(run(client, "rows").map(_.startSeconds), Right(0.0))
    }
  }

  test("why there are none, and another form than expected") {
    withClient() { client =>
      assertEquals(run(client, "error").left.toOption, Some(Refusal("ENGINE_OUT_OF_MEMORY", "1.0")))
      val other = StructType(Seq(StructField("a", IntegerType), StructField("tied", BooleanType)))
      val narrow = stream((1 to 2).map(i => InternalRow(i, false)), other)
      assertEquals(code(client.run(statement("rows", 2, narrow), schema)), "RESULT_SCHEMA")
    }
  }

  test("a stream that breaks off is no result, wherever it does") {
    withClient() { client =>
      assertEquals(code(run(client, "rows", count = 6)), "ENGINE_PROTOCOL")
      assert(Set("ENGINE_DOWN", "ENGINE_PROTOCOL")(code(run(client, "half"))))
    }
  }

  test("an engine that ends is started again, and not for ever") {
    withClient() { client =>
      assertEquals(code(run(client, "die")), "ENGINE_DOWN")
      assert(run(client, "rows").isRight)
      assertEquals(code(run(client, "die")), "ENGINE_DOWN")
      assertEquals(code(run(client, "rows")), "ENGINE_DOWN", "it is not started again at once")
      Thread.sleep(1000)
      assert(run(client, "rows").isRight)
      assertEquals(code(run(client, "die")), "ENGINE_DOWN")
      assertEquals(code(run(client, "rows")), "ENGINE_GAVE_UP")
      assertEquals(client.refusal.map(_.code), Some("ENGINE_GAVE_UP"))
    }
  }

  test("another version, or none at all, is found out once") {
    withClient("version" -> "other") { client =>
      assertEquals(code(run(client, "rows")), "ENGINE_VERSION_MISMATCH")
      assertEquals(client.refusal.map(_.code), Some("ENGINE_VERSION_MISMATCH"))
    }
    val missing = new EngineProcess(settings().copy(command = Seq("/no/such/python")))
    assertEquals(code(missing.up()), "ENGINE_NOT_STARTABLE")
  }

  test("after its deadline a process that does not answer is killed") {
    withClient() { client =>
      val late = client.run(statement("hang", 0, stream(Nil), seconds = 0.2), schema)
      assertEquals(code(late), "DEADLINE")
      assert(run(client, "rows").isRight)
    }
  }

  /** Runs a statement without end on a thread of its own, and gives what it ended with. */
  private def ended(client: EngineClient)(end: Thread => Unit): Option[Throwable] = {
    val raised = new AtomicReference[Throwable]()
    val thread = new Thread(() => {
      sc.setJobGroup("engine-suite", "")
      try run(client, "slow")
      catch { case error: Throwable => raised.set(error) }
    })
    thread.start()
    Thread.sleep(2500)
    end(thread)
    thread.join(10000)
    assert(!thread.isAlive, "it goes on")
    Option(raised.get)
  }

  test("an interrupted thread, and a job group that is cancelled, end the statement") {
    withClient() { client =>
      assert(run(client, "rows").isRight)
      assert(ended(client)(_.interrupt()).exists(_.isInstanceOf[InterruptedException]))
      assert(ended(client)(_ => sc.cancelJobGroup("engine-suite")).exists(_.isInstanceOf[InterruptedException]))
      assert(run(client, "rows").isRight)
    }
  }

  test("a row that may change places with the next one is told, up to the limit") {
    withClient() { client =>
      val engines = new Engines(client)
      def asked(limit: Option[Long], tied: Boolean = true) =
        engines.rows(Asked(7, 2, "test", statement("rows", 5, stream(rows(5))), schema, tied, limit))
      assertEquals(Seq(Some(3L), Some(5L), None).map(limit => code(asked(limit))), Seq("TIED", "TIED", "TIED"))
      assert(asked(Some(2)).isRight && asked(None, tied = false).isRight)
      val told = engines.taken(Seq(7, 8))
      assertEquals(told.map(_.refusal.map(_.code)), Seq(Some("TIED"), Some("TIED"), Some("TIED"), None, None))
      assertEquals(told.map(_.rows), Seq(0L, 0L, 0L, 2L, 5L))
      assertEquals(engines.taken(Seq(7)), Nil)
    }
  }
}
