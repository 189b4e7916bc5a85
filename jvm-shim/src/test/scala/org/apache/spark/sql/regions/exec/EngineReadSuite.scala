package org.apache.spark.sql.regions.exec

import java.util.concurrent.atomic.{AtomicInteger, AtomicReference}

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions.Refusal
import org.apache.spark.sql.regions.platforms.{EngineBatches, EngineRows}
import org.apache.spark.sql.types.StructType

/** A statement's rows in the place of a plan: when it is asked, what is answered without a job, and what runs where it fails. */
class EngineReadSuite extends ExecSuite {
  private def numbers: DataFrame =
    spark.range(0, 100, 1, 4).select(col("id"), (col("id") % 7).as("k"), concat(lit("s"), col("id")).as("s"))

  /** An engine that has the rows of `df`, in as many batches. */
  private final class Engine(df: DataFrame, batches: Int = 3, settled: Boolean = false, limit: Option[Long] = None) {
    val asked = new AtomicInteger
    val answer = new AtomicReference[Option[Refusal]](None)
    private val rows: EngineRows = {
      val all = executed(df).executeCollect().toSeq
      EngineBatches.rows(df.schema, all.grouped(math.max(1, all.size / batches)).toSeq)
    }

    private val statement = new EngineStatement("test", settled,
      () => {
        asked.incrementAndGet()
        answer.get.toLeft(rows)
      })

    def relation: EngineRelation = {
      val output = planOf(df).output
      val columns = output.map(a => AttributeReference(a.name, a.dataType)())
      val values = columns.zip(output).map { case (column, a) => Alias(column, a.name)(a.exprId) }
      EngineRelation(columns, values, statement, rows.rows, rows.bytes, limit)
    }
  }

  private def routed(df: DataFrame, engine: Engine, told: Refusal => Unit = refusal => fail(s"$refusal")): DataFrame =
    served(df, "test", () => engine.relation, _ => None, told, Seq(new Listing))

  private def jobs[T](body: => T): (T, Int) = {
    val group = java.util.UUID.randomUUID().toString
    spark.sparkContext.setJobGroup(group, "")
    try {
      val result = body
      spark.sparkContext.listenerBus.waitUntilEmpty()
      (result, spark.sparkContext.statusTracker.getJobIdsForGroup(group).length)
    } finally spark.sparkContext.clearJobGroup()
  }

  test("what is explained or planned asks nothing; a collect asks once and needs no job") {
    val df = numbers
    val (engine, plain) = (new Engine(df), df.collect().toSeq)
    val again = routed(df, engine)
    executed(again)
    again.explain(true)
    assertEquals(engine.asked.get, 0)
    val (found, ran) = jobs(again.collect().toSeq)
    assertEquals(found, plain)
    assertEquals((engine.asked.get, ran), (1, 0))
    val scan = collect(executed(again)) { case scan: EngineScanExec => scan }.head
    assertEquals(scan.metrics("numOutputRows").value, 100L)
    assertEquals(scan.metrics("engineTime").value, 250L)
    assert(executed(again).toString.contains("EngineScan test"), executed(again))
  }

  test("each execution asks again, unless no file can have changed unseen") {
    val df = numbers
    for ((settled, times) <- Seq(false -> 3, true -> 1)) {
      val engine = new Engine(df, settled = settled)
      val again = routed(df, engine)
      (1 to 3).foreach(_ => assertEquals(again.collect().length, 100))
      assertEquals(engine.asked.get, times, s"settled=$settled")
    }
  }

  for (aqe <- Seq("true", "false")) test(s"below other operators it is asked once an execution: adaptive=$aqe") {
    withConf("spark.sql.adaptive.enabled" -> aqe) {
      val df = numbers
      val queries = Seq[DataFrame => DataFrame](
        _.groupBy("k").agg(count("s").as("n"), max("id").as("m")),
        f => spark.range(50).toDF("k").join(broadcast(f), "k"),
        f => spark.range(50).toDF("other").join(f, col("other") === col("id"), "left"),
        _.where("id > 5").select((col("id") + 1).as("x")).orderBy(col("x").desc),
        f => f.union(numbers)
      )
      queries.zipWithIndex.foreach { case (query, i) =>
        val engine = new Engine(df)
        val frame = query(routed(df, engine))
        assertEquals(sorted(frame.collect()), sorted(query(df).collect()), s"query $i")
        assertEquals(engine.asked.get, 1, s"query $i")
        assertEquals(sorted(frame.collect()), sorted(query(df).collect()), s"query $i, again")
      }
    }
  }

  test("rdd, toLocalIterator, take, tail, count, cached") {
    val df = numbers
    val plain = df.collect().toSeq
    def fresh = routed(df, new Engine(df))
    assertEquals(fresh.rdd.collect().toSeq, plain)
    val iterated = fresh.toLocalIterator()
    assertEquals(Iterator.continually(iterated).takeWhile(_.hasNext).map(_.next()).toSeq, plain)
    assertEquals(fresh.take(5).toSeq, plain.take(5))
    assertEquals(fresh.tail(5).toSeq, plain.takeRight(5))
    assertEquals(fresh.count(), 100L)
    val cached = fresh.cache()
    try {
      assertEquals(sorted(cached.collect()), sorted(plain.toArray))
      assertEquals(cached.where("k = 3").count(), df.where("k = 3").count())
    } finally cached.unpersist(blocking = true)
  }

  test("the first rows of more") {
    val df = numbers
    val engine = new Engine(df, limit = Some(99))
    assertEquals(routed(df, engine).collect().toSeq, df.collect().toSeq.take(99))
    assertEquals(routed(df, engine).rdd.collect().toSeq, df.collect().toSeq.take(99))
  }

  for (aqe <- Seq("true", "false"))
    test(s"where it has no rows Spark runs, in the same query, and stays: adaptive=$aqe") {
      withConf("spark.sql.adaptive.enabled" -> aqe) {
        val df = numbers.groupBy("k").agg(count("s").as("n"))
        val engine = new Engine(df)
        engine.answer.set(Some(Refusal("TIED", "3")))
        val (queue, told) = refusals()
        val again = routed(df, engine, told)
        assertEquals(sorted(again.collect()), sorted(df.collect()))
        engine.answer.set(None)
        assertEquals(sorted(again.collect()), sorted(df.collect()))
        assertEquals((codes(queue), engine.asked.get), (Seq("TIED"), 1))
        // Planned anew.
        assertEquals(sorted(again.rdd.collect()), sorted(df.collect()))
        assertEquals((codes(queue), engine.asked.get), (Seq("TIED"), 2))
      }
    }

  test("an engine that raises, or a file that changed, cost the user nothing") {
    val df = numbers
    val (queue, told) = refusals()
    val broken = new EngineStatement("test", false, () => throw new NoClassDefFoundError("x/Y"))
    val relation = new Engine(df).relation.copy(statement = broken)
    assertEquals(served(df, "test", () => relation, _ => None, told, Nil).collect().toSeq, df.collect().toSeq)
    assertEquals(codes(queue), Seq("ENGINE_ERROR"))
    val (input, engine) = (new Listing, new Engine(df))
    val again = served(df, "test", () => engine.relation, _ => None, told, Seq(input))
    input.same.set(false)
    assertEquals(again.collect().toSeq, df.collect().toSeq)
    assertEquals(codes(queue), Seq("ENGINE_ERROR", "INPUT_CHANGED"))
    assertEquals(engine.asked.get, 0)
  }

  test("a query that is cancelled while the engine works does not go on, and can be run again") {
    val df = numbers
    val engine = new Engine(df)
    val cancelled = new AtomicReference[Boolean](true)
    val known = engine.relation
    val statement = new EngineStatement(
      "test",
      false,
      () =>
        if (cancelled.getAndSet(false)) throw new InterruptedException("cancelled")
        else Right(EngineBatches.rows(df.schema, Seq(executed(df).executeCollect().toSeq)))
    )
    for (run <- Seq[DataFrame => Seq[Row]](_.collect().toSeq, _.rdd.collect().toSeq)) {
      cancelled.set(true)
      val again = served(df, "test", () => known.copy(statement = statement), _ => None, _ => fail("told"), Nil)
      // Not by `intercept`, to which this is its own thread's end.
      val ended =
        try { run(again); None }
        catch { case error: InterruptedException => Some(error.getMessage) }
      assertEquals(ended, Some("cancelled"))
      assertEquals(run(again), df.collect().toSeq)
    }
  }

  test("expected sizes are what the plan above goes by") {
    val relation = new Engine(numbers).relation
    assertEquals(relation.stats.rowCount, Some(BigInt(100)))
    assert(relation.stats.sizeInBytes >= 100)
    assertEquals(relation.copy(limit = Some(3)).maxRows, Some(3L))
    assertEquals(StructType(relation.output.map(a => numbers.schema(a.name))), numbers.schema)
    assert(numbers.asInstanceOf[Dataset[_]].queryExecution.analyzed.output.size == relation.columns.size)
  }
}
