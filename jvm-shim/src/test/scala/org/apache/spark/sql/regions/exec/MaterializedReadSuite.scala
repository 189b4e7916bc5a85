package org.apache.spark.sql.regions.exec

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{Attribute, GreaterThan, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.ColumnarToRowExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions.{LocalSpark, Refusal}
import org.apache.spark.sql.regions.rules.OptimizerRuns

/** What [[MaterializedRead]] itself does, whatever it reads: choose at each execution, and stay out of the plan around it. */
class MaterializedReadSuite extends ExecSuite {
  private def numbers =
    spark.range(0, 1000, 1, 4).select(col("id"), (col("id") % 7).as("k"), concat(lit("s"), col("id")).as("s"))

  private def leaf(df: DataFrame): MaterializedRead =
    df.asInstanceOf[Dataset[_]].queryExecution.optimizedPlan.collectFirst { case r: MaterializedRead => r }.get

  for (aqe <- Seq("true", "false")) test(s"residual filter and projection are part of the read: adaptive=$aqe") {
    withConf("spark.sql.adaptive.enabled" -> aqe) {
      val df = numbers
      val (store, entry) = stored(df)
      val (queue, told) = refusals()
      def query(of: DataFrame) = of.where("id % 3 = 0 and id < 500").select(col("s"), (col("id") + col("k")).as("x"))
      val again = query(recycled(df, entry, told))
      val inside = leaf(again)
      assertEquals(inside.output.map(_.name), Seq("s", "x"))
      assertEquals(inside.read.output.map(_.exprId), inside.output.map(_.exprId))
      assertEquals(inside.original.output.map(_.exprId), inside.output.map(_.exprId))
      assert(inside.read.exists(_.isInstanceOf[Filter]) && inside.read.exists(_.isInstanceOf[Project]))
      val plain = sorted(query(df).collect())
      assertEquals(sorted(again.collect()), plain)
      assertEquals(scans(again).head.columns, Seq(0, 1, 2))
      assert(scans(again).head.simpleString(100).contains("< 500"), scans(again).head.simpleString(100))
      assertEquals(codes(queue), Nil)
      parts(store).foreach(file => assert(file.delete()))
      assertEquals(sorted(again.collect()), plain)
      assertEquals(sorted(again.collect()), plain)
      assertEquals(codes(queue), Seq("ENTRY_MISSING"))
      assertEquals(again.groupBy("x").count().count(), query(df).select("x").distinct().count())
    }
  }

  test("in batches, from rows and from batches") {
    val path = folder().getPath + "/in"
    numbers.write.parquet(path)
    for (df <- Seq(numbers, spark.read.parquet(path)); aqe <- Seq("true", "false")) {
      withConf("spark.sql.adaptive.enabled" -> aqe) {
        val (store, entry) = stored(df)
        val (queue, told) = refusals()
        // The same attributes: no projection, so that batches come through.
        val output = df.asInstanceOf[Dataset[_]].queryExecution.optimizedPlan.output
        def scan = MaterializedRelation(output, entry, output.indices)
        val again = served(df, entry.entry, () => scan, Entries.check(entry, _).left.toOption, told, Nil)
        val plain = sorted(df.collect())
        assertEquals(sorted(again.collect()), plain)
        assertEquals(reads(again).map(_.supportsColumnar), Seq(true))
        val above = collect(executed(again)) { case c: ColumnarToRowExec => c.child }
        assert(
          above.size == 1 && above.head.collectFirst { case r: MaterializedReadExec => r }.nonEmpty, executed(again))
        assertEquals(codes(queue), Nil)
        assert(parts(store).head.delete())
        assertEquals(sorted(again.collect()), plain)
        assertEquals(sorted(again.collect()), plain)
        assertEquals(codes(queue), Seq("ENTRY_MISSING"))
      }
    }
  }

  for (aqe <- Seq("true", "false")) test(s"in subqueries and below a shuffle, computed again: adaptive=$aqe") {
    withConf("spark.sql.adaptive.enabled" -> aqe, "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      val df = numbers.groupBy("k").agg(count("s").as("n"))
      val (store, entry) = stored(df)
      val (queue, told) = refusals()
      recycled(df, entry, told).createOrReplaceTempView("again")
      df.createOrReplaceTempView("plain")
      numbers.createOrReplaceTempView("numbers")
      val queries = Seq(
        "select id from numbers where id = (select max(n) from again)",
        "select id from numbers where id in (select n from again where k > 2)",
        "select id from numbers p where exists (select 1 from again a where a.n = p.id)",
        "select numbers.id, n from numbers join again using (k)"
      )
      val planned = queries.map(spark.sql)
      planned.foreach(q => assert(reads(q).nonEmpty, executed(q)))
      parts(store).foreach(file => assert(file.delete()))
      planned.zip(queries).foreach { case (frame, text) =>
        queue.clear()
        assertEquals(sorted(frame.collect()), sorted(spark.sql(text.replace("again", "plain")).collect()), text)
        assertEquals(codes(queue), Seq("ENTRY_MISSING"), text)
      }
    }
  }

  test("a plan made before its persisted result was released computes the rows itself, and keeps nothing") {
    val df = numbers.groupBy("k").agg(count("s").as("n"))
    val optimized = df.asInstanceOf[Dataset[_]].queryExecution.optimizedPlan
    val persisted = new Persisted
    val (queue, told) = refusals()
    val opened = persisted.open(spark, "p1", optimized, Seq("d0", "d1"), Set.empty, "MEMORY_AND_DISK")
    val again = served(df, "p1", () => opened.relation, _ => persisted.missing("p1"), told, Seq(new Listing))
    val plain = sorted(df.collect())
    assertEquals(persisted.bytes("p1"), None)
    assertEquals(sorted(again.collect()), plain)
    assert(persisted.bytes("p1").exists(_ > 0))
    persisted.drop("p1")
    assertEquals(persisted.get("p1").map(_.columns), None)
    assertEquals(sorted(again.collect()), plain)
    assertEquals(codes(queue), Seq("ENTRY_MISSING"))
    assertEquals(spark.sparkContext.getPersistentRDDs.size, 0)
  }

  for (columnar <- Seq(true, false)) test(s"columns that nobody wants are not read: columnar=$columnar") {
    val df = numbers.groupBy("k").agg(count("s").as("n"), max("id").as("last"))
    val optimized = df.asInstanceOf[Dataset[_]].queryExecution.optimizedPlan
    val persisted = new Persisted
    val (queue, told) = refusals()
    val kept =
      persisted.open(spark, "p1", optimized, Seq("d0", "d1", "d2"), Set.empty, "MEMORY_AND_DISK", None, columnar)
    val recycled = leaf(served(df, "p1", () => kept.relation, _ => None, told, Nil))
    val Seq(k, n, _) = recycled.output
    val above = Seq[(LogicalPlan, Seq[Attribute], DataFrame)](
      (Project(Seq(n), recycled), Seq(n), df.select("n")),
      (Project(Seq(n), Filter(GreaterThan(k, Literal(2L)), recycled)), Seq(k, n), df.where("k > 2").select("n")),
      (recycled, recycled.output, df)
    )
    try above.foreach { case (plan, wanted, plain) =>
        val query = spark.sessionState.executePlan(plan)
        val read = query.sparkPlan.collectFirst { case read: MaterializedReadExec => read }.get
        assertEquals(read.output.map(_.exprId), wanted.map(_.exprId))
        val scan = read.children.flatMap(_.collect { case scan: InMemoryTableScanExec => scan }).head
        assertEquals(scan.attributes.map(_.exprId), wanted.map(_.exprId), "names of its own need no projection")
        assertEquals(scan.supportsColumnar, columnar)
        assertEquals(sorted(Dataset.ofRows(spark, plan).collect()), sorted(plain.collect()))
      }
    finally persisted.dropAll()
    assertEquals(codes(queue), Nil)
  }

  for (aqe <- Seq("true", "false")) test(s"over a result that Spark persists: adaptive=$aqe") {
    withConf("spark.sql.adaptive.enabled" -> aqe) {
      val df = numbers.groupBy("k").agg(count("s").as("n"))
      val optimized = df.asInstanceOf[Dataset[_]].queryExecution.optimizedPlan
      val persisted = new Persisted
      val input = new Listing
      val (queue, told) = refusals()
      def source(): LogicalPlan =
        persisted.open(spark, "p1", optimized, Seq("d0", "d1"), Set.empty, "MEMORY_AND_DISK").relation
      def again = served(df, "p1", () => source(), _ => None, told, Seq(input))
      val queries = Seq[DataFrame => DataFrame](
        identity,
        _.where("k > 2").select("n"),
        _.groupBy("n").count(),
        f => f.as("l").join(f.as("r"), col("l.k") === col("r.n")),
        f => numbers.join(broadcast(f), "k").select("id", "n")
      )
      // In time, because a stage that the logical plan does not show could be planned for ever.
      def collected(frame: DataFrame) =
        Await.result(
          Future {
            LocalSpark.use(spark)
            sorted(frame.collect())
          },
          60.seconds)
      try {
        val frames = queries.map(query => query(again) -> sorted(query(df).collect()))
        frames.zipWithIndex.foreach { case ((frame, plain), i) =>
          assert(reads(frame).nonEmpty)
          assertEquals(collected(frame), plain, s"query $i")
          assertEquals(collected(frame), plain, s"query $i, again")
        }
        assertEquals(codes(queue), Nil)
        assertEquals(spark.sharedState.cacheManager.isEmpty, true)
        input.same.set(false)
        // Of a frame that ran, Spark keeps what it shuffled or broadcast; only the first two have nothing of that kind.
        val old = frames.take(2)
        val fresh = queries.zip(frames).map { case (query, (_, plain)) => query(again) -> plain }
        (old ++ fresh).zipWithIndex.foreach { case ((frame, plain), i) =>
          queue.clear()
          assertEquals(collected(frame), plain, s"query $i on changed input")
          assertEquals(codes(queue).distinct, Seq("INPUT_CHANGED"), s"query $i: ${executed(frame)}")
        }
      } finally persisted.dropAll()
      assert(spark.sparkContext.getPersistentRDDs.isEmpty)
    }
  }

  test("a check that fails, and a listener that fails, cost the user nothing") {
    val df = numbers
    val (_, entry) = stored(df)
    val (queue, told) = refusals()
    val attributes = df.asInstanceOf[Dataset[_]].queryExecution.optimizedPlan.output
    def frame(check: MaterializedRead.Check, onInvalid: Refusal => Unit) =
      served(df, entry.entry, () => MaterializedRelation(attributes, entry, attributes.indices), check, onInvalid, Nil)
    val broken = frame(_ => throw new NoClassDefFoundError("x/Y"), told)
    assertEquals(broken.count(), 1000L)
    assertEquals(codes(queue), Seq("ENTRY_DAMAGED"))
    val deaf = frame(_ => Some(Refusal("ENTRY_MISSING")), _ => throw new IllegalStateException("x"))
    assertEquals(sorted(deaf.collect()), sorted(df.collect()))
  }

  test("our own rules pass by while the original is planned") {
    val df = numbers
    val (store, entry) = stored(df)
    val (queue, told) = refusals()
    val again = recycled(df, entry, told)
    executed(again)
    val before = ServedRule.bypassed.get
    assertEquals(again.count(), 1000L)
    assertEquals(ServedRule.bypassed.get, before)
    assert(parts(store).head.delete())
    assertEquals(again.collect().length, 1000)
    assert(ServedRule.bypassed.get > before)
    assertEquals(codes(queue), Seq("ENTRY_MISSING"))
    assert(!OptimizerRuns.bypassed)
  }

  test("the sources are below it, and explain shows what it reads") {
    val (_, entry) = stored(numbers)
    val again = recycled(numbers, entry).where("id > 5")
    assertEquals(leaf(again).children, leaf(again).original.collectLeaves())
    assertEquals(leaf(again).missingInput.size, 0)
    assertEquals(leaf(again).innerChildren, Seq(leaf(again).read))
    val text = executed(again).toString
    assert(text.contains(s"MaterializedRead ${entry.entry}") && text.contains(s"MaterializedScan ${entry.entry}"), text)
    assert(!text.contains("StoredEntry") && !text.contains("Refusal"), text)
  }
}
