package org.apache.spark.sql.regions.bridge

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.wire.{DigestFunctions, Executed, Frames, Hello}

/** Real processes and real sockets: wire/spark_regions/planner.py is the other end. */
class PlannerClientSuite extends munit.FunSuite {
  private val folder = Paths.get(getClass.getResource("/wire").toURI).toString

  private def settings(mode: String, log: Option[Path] = None): PlannerSettings = PlannerSettings(
    command = Seq("python3", "-P", "-m", "spark_regions.planner"),
    version = "0.1.0",
    confs = Map("spark.regions.recycle.dir" -> "/tmp/x"),
    hello = Hello(_, PlannerClient.protocol, "app-1", "test", "me"),
    startupDeadlineMillis = 10000,
    environment = Map("PYTHONPATH" -> folder, "WIRE_MODE" -> mode) ++ log.map(path => "WIRE_LOG" -> path.toString)
  )

  private def withClient[T](
      settings: PlannerSettings,
      backoff: Backoff = new Backoff,
      breaker: Breaker = new Breaker,
      patience: AdaptiveDeadline = new AdaptiveDeadline(mostMillis = 0))(body: PlannerClient => T): T = {
    val client = new PlannerClient(settings, patience, backoff, breaker)
    try body(client)
    finally client.close()
  }

  /** The other end answers with what was said, and with how many events it had heard. */
  private def ask(client: PlannerClient, say: String, deadline: Long = 2000): Either[Refusal, Map[String, String]] =
    client.request(DigestFunctions(Nil, Seq(say)), deadline)
      .map(_.digests.map { case (name, found) => name -> found.digest.getOrElse("") })

  private def eventually[T](millis: Long)(body: => Option[T]): T = {
    val end = System.nanoTime() + millis * 1000000
    var result = body
    while (result.isEmpty && System.nanoTime() < end) {
      Thread.sleep(20)
      result = body
    }
    result.getOrElse(fail(s"not within $millis ms"))
  }

  private def code(answer: Either[Refusal, Any]): String = answer.swap.map(_.code).getOrElse(s"$answer")

  test("a request waits for the start and gets its answer; the token and the confs went over stdin") {
    val log = Files.createTempFile("wire", ".log")
    withClient(settings("late", Some(log))) { client =>
      val answer = ask(client, "hällo").toOption.get
      assertEquals(answer("said"), "hällo")
      assertEquals(client.stateName, "up")
      val lines = Files.readAllLines(log).asScala.map(Frames.json.readTree(_))
      assertEquals(lines(0).get("confs").get("spark.regions.recycle.dir").asText, "/tmp/x")
      assertEquals(lines(0).get("token").asText.length, 64)
      assertEquals(lines(1).get("application").asText, "app-1")
    }
  }

  test("a request is answered after everything observed before it") {
    withClient(settings("echo")) { client =>
      assert(ask(client, "up").isRight)
      (1 to 500).foreach(i => client.observe(Executed(i, "ok")))
      assertEquals(ask(client, "x").map(_("observed")), Right("500"))
      assertEquals(client.observationsDropped, 0L)
    }
  }

  test("deadline: a late answer is dropped, and the next request gets its own") {
    withClient(settings("slow-once")) { client =>
      eventually(10000)(Some(client.stateName).filter(_ == "up"))
      assertEquals(code(ask(client, "first", 100)), "PLANNER_DEADLINE")
      assertEquals(ask(client, "second").map(_("said")), Right("second"))
    }
  }

  test("until a decision was answered all requests are waited for, once") {
    withClient(settings("slow-once"), patience = new AdaptiveDeadline) { client =>
      assertEquals(ask(client, "first", 100).map(_("said")), Right("first"))
    }
    withClient(settings("hang"), patience = new AdaptiveDeadline(mostMillis = 500)) { client =>
      def waited: Long = {
        val began = System.nanoTime()
        assertEquals(code(ask(client, "x", 50)), "PLANNER_DEADLINE")
        (System.nanoTime() - began) / 1000000
      }
      eventually(10000)(Some(client.stateName).filter(_ == "up"))
      assert(waited >= 490)
      assert(waited < 490)
    }
  }

  test("deadline 0 never waits") {
    withClient(settings("late")) { client =>
      val began = System.nanoTime()
      assertEquals(code(ask(client, "x", 0)), "PLANNER_DEADLINE")
      assert(System.nanoTime() - began < 500000000L)
    }
  }

  test("three missed deadlines open the breaker: refusals without waiting, then one trial") {
    withClient(settings("hang"), breaker = new Breaker(3, 600)) { client =>
      eventually(10000)(Some(client.stateName).filter(_ == "up"))
      (1 to 3).foreach(_ => assertEquals(code(ask(client, "x", 50)), "PLANNER_DEADLINE"))
      val began = System.nanoTime()
      (1 to 20).foreach(_ => assertEquals(code(ask(client, "x", 50)), "PLANNER_DEADLINE"))
      assert(System.nanoTime() - began < 500000000L, "waited although open")
      Thread.sleep(650)
      val trial = System.nanoTime()
      ask(client, "x", 50)
      assert(System.nanoTime() - trial >= 49000000L, "no trial")
    }
  }

  test("a planner that hangs and stops reading does not block observe; the queue is bounded") {
    withClient(settings("hang").copy(queueLimit = 1000)) { client =>
      eventually(10000)(Some(client.stateName).filter(_ == "up"))
      ask(client, "x", 50)
      val event = Executed(1, "x" * 20000)
      val began = System.nanoTime()
      (1 to 3000).foreach(_ => client.observe(event))
      assert(System.nanoTime() - began < 5000000000L)
      assert(client.observationsDropped > 1000, client.observationsDropped)
    }
  }

  test("a planner that never answers is killed and restarted, one that was not asked for long is not") {
    withClient(settings("hang").copy(hungMillis = 500)) { client =>
      eventually(10000)(Some(client.stateName).filter(_ == "up"))
      val first = client.pid.get
      Thread.sleep(600)
      ask(client, "x", 20)
      assertEquals(client.pid, Some(first), "a missed deadline after a pause is not a planner that hangs")
      Thread.sleep(600)
      ask(client, "x", 20)
      eventually(10000)(Some(client).filter(c => c.pid.exists(_ != first) && c.stateName == "up"))
    }
  }

  test("garbage on the wire: PLANNER_PROTOCOL, connection dropped, planner restarted") {
    withClient(settings("garbage")) { client =>
      val first = { ask(client, "x"); client.pid.get }
      eventually(10000)(Some(client).filter(c => c.pid.exists(_ != first) && c.stateName == "up"))
      assertEquals(code(ask(client, "x")), "PLANNER_PROTOCOL")
    }
  }

  test("a death in mid-request: PLANNER_DOWN at once, later requests do not wait, then restarted") {
    withClient(settings("die")) { client =>
      eventually(10000)(Some(client.stateName).filter(_ == "up"))
      val first = client.pid.get
      val began = System.nanoTime()
      assertEquals(code(ask(client, "x", 5000)), "PLANNER_DOWN")
      assertEquals(code(ask(client, "x", 5000)), "PLANNER_DOWN")
      assert(System.nanoTime() - began < 1000000000L)
      eventually(10000)(Some(client).filter(c => c.pid.exists(_ != first) && c.stateName == "up"))
    }
  }

  test("too many deaths: PLANNER_GAVE_UP") {
    withClient(settings("die"), backoff = new Backoff(limit = 2, firstMillis = 10)) { client =>
      eventually(20000) {
        ask(client, "x", 500)
        client.refusal.filter(_.code == "PLANNER_GAVE_UP")
      }
    }
  }

  test("another version: refused with both versions and what to do") {
    withClient(settings("other-version")) { client =>
      val refusal = ask(client, "x").swap.toOption.get
      assertEquals(refusal.code, "PLANNER_VERSION_MISMATCH")
      assert(refusal.detail.contains("0.1.0") && refusal.detail.contains("9.9.9"), refusal.detail)
      assert(refusal.detail.contains("Hint: reinstall"), refusal.detail)
    }
  }

  test("the planner's own refusal at its start is passed on") {
    withClient(settings("refuse"))(client =>
      assertEquals(ask(client, "x").swap.toOption.get, Refusal("CATALOG_CORRUPT", "catalog.sqlite")))
  }

  test("not startable: no such executable, no such module, no port line") {
    val missing = settings("echo").copy(command = Seq("/nowhere/python3"))
    withClient(missing) { client =>
      val refusal = ask(client, "x").swap.toOption.get
      assertEquals(refusal.code, "PLANNER_NOT_STARTABLE")
      assert(refusal.detail.contains("/nowhere/python3"), refusal.detail)
    }
    withClient(settings("echo").copy(environment = Map("PYTHONPATH" -> ""))) { client =>
      val refusal = ask(client, "x").swap.toOption.get
      assertEquals(refusal.code, "PLANNER_NOT_STARTABLE")
      assert(refusal.detail.contains("No module named") && refusal.detail.contains("Hint:"), refusal.detail)
    }
    withClient(settings("chatter"))(client => assertEquals(code(ask(client, "x")), "PLANNER_NOT_STARTABLE"))
  }

  test("a planner that does not come up: the startup deadline, not longer") {
    withClient(settings("silent").copy(startupDeadlineMillis = 300)) { client =>
      val began = System.nanoTime()
      assertEquals(code(ask(client, "x")), "PLANNER_STARTING")
      assertEquals(code(ask(client, "x")), "PLANNER_STARTING")
      assert(System.nanoTime() - began < 1000000000L)
    }
  }

  test("close: the planner hears of the end, and its process is gone") {
    val log = Files.createTempFile("wire", ".log")
    val pid = withClient(settings("echo", Some(log))) { client =>
      assert(ask(client, "x").isRight)
      client.pid.get
    }
    eventually(5000)(Some(pid).filterNot(alive))
    assert(Files.readString(log).contains("\"type\": \"end\""))
    val silent = withClient(settings("silent"))(client => eventually(5000)(client.pid))
    eventually(5000)(Some(silent).filterNot(alive))
  }

  test("heartbeats") {
    val log = Files.createTempFile("wire", ".log")
    withClient(settings("echo", Some(log)).copy(heartbeatMillis = 50)) { client =>
      assert(ask(client, "x").isRight)
      eventually(3000)(Some(Files.readString(log)).filter(_.contains("\"type\": \"heartbeat\"")))
    }
  }

  test("round trip of a 20 KB message, with 8 threads at once each getting its own answer") {
    withClient(settings("echo")) { client =>
      val filler = "x" * 20000
      (1 to 300).foreach(_ => ask(client, filler))
      val millis = (1 to 500).map { _ =>
        val began = System.nanoTime()
        assert(ask(client, filler).isRight)
        (System.nanoTime() - began) / 1e6
      }.sorted
      println(
        f"round trip p50 ${millis(250)}%.2f ms, p99 ${millis(495)}%.2f ms; startup ${client.startupMillis.get} ms")
      assert(millis(250) < 20, millis(250))
      val threads = (1 to 8).map { t =>
        val wrong = new java.util.concurrent.atomic.AtomicInteger()
        val thread = new Thread(() =>
          (1 to 50).foreach { i =>
            if (!ask(client, s"$t-$i", 10000).exists(_("said") == s"$t-$i")) wrong.incrementAndGet()
          })
        thread.start()
        thread -> wrong
      }
      threads.foreach { case (thread, wrong) =>
        thread.join()
        assertEquals(wrong.get, 0)
      }
    }
  }

  private def alive(pid: Long): Boolean = ProcessHandle.of(pid).map[Boolean](_.isAlive).orElse(false)
}
