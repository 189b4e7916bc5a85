package org.apache.spark.sql.regions.bridge

import org.apache.spark.SparkConf

class BackoffSuite extends munit.FunSuite {
  test("0.5 s doubling, five in ten minutes, then again when they are forgotten") {
    var now = 0L
    val backoff = new Backoff(clock = () => now)
    assertEquals((1 to 6).map(_ => backoff.next()), Vector(500L, 1000L, 2000L, 4000L, 8000L).map(Option(_)) :+ None)
    now = 10 * 60 * 1000
    assertEquals(backoff.next(), Some(500L))
  }

  test("the longest delay is 60 s") {
    val backoff = new Backoff(limit = 20, clock = () => 0L)
    assertEquals((1 to 12).flatMap(_ => backoff.next()).last, 60000L)
  }

  test("the breaker closes again after one answer") {
    var now = 0L
    val breaker = new Breaker(clock = () => now)
    (1 to 3).foreach { _ => assert(breaker.allows); breaker.failed() }
    assert(!breaker.allows)
    now = 5000
    assert(breaker.allows, "the trial")
    assert(!breaker.allows, "only one trial")
    breaker.succeeded()
    assert(breaker.allows && breaker.allows)
  }

  test("a tenth of what decisions of late saved is waited for, two seconds at most, and nothing after a miss") {
    val waiting = new AdaptiveDeadline
    assertEquals(waiting.millis, 2000L, "what the first one saves is not known")
    waiting.answered(8)
    waiting.answered(8)
    assertEquals(waiting.millis, 600L)
    waiting.answered(0)
    assertEquals(waiting.millis, 300L)
    waiting.answered(1000)
    assertEquals(waiting.millis, 2000L)
    waiting.missed()
    assertEquals(waiting.millis, 0L)
  }

  test("which Python: the key, then the environment without front ends, then Spark's keys, then the parent") {
    val conf = new SparkConf(false)
    def chosen(environment: (String, String)*): String =
      PlannerPython.executable(conf, environment.toMap, Some("/p/python"))
    assertEquals(chosen(), "/p/python")
    assertEquals(PlannerPython.executable(conf, Map.empty, None), "python3")
    conf.set("spark.pyspark.python", "python3.11")
    assertEquals(chosen("PYSPARK_DRIVER_PYTHON" -> "jupyter"), "python3.11")
    assertEquals(chosen("PYSPARK_DRIVER_PYTHON" -> "jupyter", "PYSPARK_PYTHON" -> "/v/bin/python3"), "/v/bin/python3")
    conf.set("spark.regions.planner.python", "/opt/x")
    assertEquals(chosen("PYSPARK_PYTHON" -> "/v/bin/python3"), "/opt/x")
  }
}
