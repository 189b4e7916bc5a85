package org.apache.spark.sql.regions.exec

import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.TaskContext
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.Policy

class TeeSuite extends ExecSuite {
  private def numbers =
    spark.range(0, 1000, 1, 4).select(col("id"), (col("id") % 7).as("k"), concat(lit("s"), col("id")).as("s"))

  private def parquet = {
    val path = folder().getPath + "/in"
    numbers.write.parquet(path)
    spark.read.parquet(path)
  }

  for {
    aqe <- Seq("true", "false")
    codegen <- Seq("true", "false")
    columnar <- Seq(true, false)
  } test(s"rows pass unchanged: adaptive=$aqe codegen=$codegen columnar=$columnar") {
    withConf(
      "spark.sql.adaptive.enabled" -> aqe,
      "spark.sql.codegen.wholeStage" -> codegen,
      "spark.sql.codegen.factoryMode" -> (if (codegen == "true") "FALLBACK" else "NO_CODEGEN")
    ) {
      val df = if (columnar) parquet else numbers
      val store = storeFor(df)
      val teed = tee(df, store).groupBy("k").agg(sum("id"), count("s")).orderBy("k")
      val plain = df.groupBy("k").agg(sum("id"), count("s")).orderBy("k")
      assertEquals(teed.collect().toSeq, plain.collect().toSeq)
      val exec = collect(executed(teed)) { case t: TeeExec => t }
      assertEquals(exec.map(_.supportsColumnar), Seq(columnar && codegen == "true"))
      val done = store.committed()
      assertEquals(done.rows, 1000L)
      assertEquals(done.files, df.rdd.getNumPartitions)
      assertEquals(sorted(recycled(df, opened(store)).collect()), sorted(df.collect()))
    }
  }

  test("columns that nobody reads are stored too, and explain is short") {
    val df = numbers
    val store = storeFor(df)
    val teed = tee(df, store).select("id")
    assertEquals(teed.collect().length, 1000)
    assertEquals(opened { store.committed(); store }.schema.size, 3)
    val text = executed(teed).toString
    assert(text.contains(s"Tee [entry ${store.order.entry}]"), text)
    assert(!text.contains("StoreOrder"), text)
  }

  test("directory and files belong to the owner alone") {
    val store = storeFor(numbers)
    tee(numbers, store).collect()
    store.committed()
    def mode(file: java.io.File) = PosixFilePermissions.toString(Files.getPosixFilePermissions(file.toPath))
    assertEquals(mode(store.directory), "rwx------")
    assertEquals(mode(store.directory.getParentFile), "rwx------")
    assertEquals(parts(store).map(mode).distinct, Seq("rw-------"))
    assertEquals(mode(new java.io.File(store.directory, "_manifest.json")), "rw-------")
  }

  test("in memory: the driver writes what the tasks hold, unless the query had it quickly") {
    val expected = sorted(numbers.collect())
    def collected(waitMillis: Long): (Store, Long) = {
      val store = storeFor(numbers, inMemory = true)
      Stores.register(store.order)
      val began = System.nanoTime()
      Thread.sleep(waitMillis)
      assertEquals(sorted(tee(numbers, store).collect()), expected)
      (store, NANOSECONDS.toMillis(System.nanoTime() - began))
    }
    val (slow, _) = collected(Policy.storedAtOnceMillis)
    assertEquals(slow.committed().rows, 1000L)
    assertEquals(parts(slow).size, 4)
    assertEquals(sorted(recycled(numbers, opened(slow)).collect()), expected)
    // On a busy machine not every try is quick.
    val tries = Iterator.continually(collected(0)).take(50)
    val (quick, _) = tries.find { case (_, tookMillis) => tookMillis < Policy.storedAtOnceMillis }.get
    assertEquals(quick.abandoned().code, "TOO_CHEAP")
    assert(!quick.directory.exists())
  }

  test("in memory: more than the tasks hold is given up") {
    val many = spark.range(0, 200000, 1, 4).select(col("id"), sha2(col("id").cast("string"), 256).as("s"))
    val store = storeFor(many, inMemory = true)
    assertEquals(tee(many, store).count(), 200000L)
    val refusal = store.abandoned()
    assertEquals(refusal.code, "NOT_SMALL")
    assert(refusal.detail.contains("1048576 bytes of rows"), refusal.detail)
    assert(!store.directory.exists())
  }

  test("writing may take its share, and beside it what the query saves otherwise") {
    val many = spark.range(0, 2000000, 1, 1).select(col("id"), sha2(col("id").cast("string"), 512).as("s"))
    def stored(spareSeconds: Double): Store = {
      val store = newStore(2, maxOverhead = Some(1e-6), spareSeconds = spareSeconds)
      assertEquals(tee(many, store).count(), 2000000L)
      store
    }
    assertEquals(stored(0).abandoned().code, "NOT_WORTH_WRITING")
    assertEquals(stored(600).committed().rows, 2000000L)
  }

  test("its share is that of all tasks: each of many short ones writes less than is always allowed") {
    val tasks = 60
    val many = spark.range(0, 4000000, 1, tasks).select(col("id"), sha2(col("id").cast("string"), 512).as("s"))
    def stored(maxOverhead: Double): Store = {
      val store = newStore(2, maxOverhead = Some(maxOverhead))
      assertEquals(tee(many, store).count(), 4000000L)
      store
    }
    val refusal = stored(1e-6).abandoned()
    assertEquals(refusal.code, "NOT_WORTH_WRITING")
    assert(refusal.detail.endsWith(s"of $tasks tasks"), refusal.detail)
    assertEquals(stored(100).committed().rows, 4000000L)
  }

  test("a subplan with it and one without are the same to Spark") {
    val store = storeFor(numbers)
    assert(executed(tee(numbers, store)).sameResult(executed(numbers)))
  }

  test("limit: abandoned, directory gone") {
    val store = storeFor(numbers)
    assertEquals(tee(numbers, store).limit(5).collect().length, 5)
    assertEquals(store.abandoned().code, "PARTIAL_CONSUMPTION")
    assert(!store.directory.exists())
  }

  test("show of a limited prefix, and a store that never ran") {
    val store = storeFor(numbers)
    val teed = tee(numbers, store)
    teed.queryExecution.executedPlan
    assertEquals(store.abandoned().code, "NOT_EXECUTED")
    assertEquals(teed.collect().length, 1000)
    assertEquals(store.told, 1)
    assert(!store.directory.exists())
  }

  test("the buffered side of a sort-merge join is not read to its end") {
    withConf("spark.sql.autoBroadcastJoinThreshold" -> "-1", "spark.sql.adaptive.enabled" -> "false") {
      val store = newStore(1)
      val left = spark.range(0, 10, 1, 2).toDF("a").repartition(2, col("a")).sortWithinPartitions("a")
      val right = spark.range(0, 100000, 1, 2).toDF("b").repartition(2, col("b")).sortWithinPartitions("b")
      val teed = tee(right, store)
      assertEquals(left.join(teed, col("a") === col("b")).count(), 10L)
      assertEquals(store.abandoned().code, "PARTIAL_CONSUMPTION")
      assert(!store.directory.exists())
    }
  }

  test("a task that fails is tried again: stored once, no file left over") {
    val flaky = udf { (id: Long) =>
      if (TaskContext.get().attemptNumber() == 0 && id % 250 == 249) throw new IllegalStateException("first attempt")
      id
    }
    val df = spark.range(0, 1000, 1, 4).select(flaky(col("id")).as("x"))
    val store = storeFor(df)
    assertEquals(tee(df, store).collect().map(_.getLong(0)).sum, 499500L)
    assertEquals(store.committed().rows, 1000L)
    assertEquals(parts(store).size, 4)
    assertEquals(recycled(df, opened(store)).agg(sum("x")).collect().head.getLong(0), 499500L)
  }

  test("a failure above the tee after its partition was finished") {
    val df = spark.range(0, 1000, 1, 4).toDF("x")
    val store = storeFor(df)
    val failing = tee(df, store).repartition(2).rdd.mapPartitions { rows =>
      val all = rows.toList
      if (TaskContext.get().attemptNumber() == 0) throw new IllegalStateException("first attempt")
      all.iterator
    }
    assertEquals(failing.count(), 1000L)
    assertEquals(store.committed().rows, 1000L)
    assertEquals(parts(store).size, 4)
  }

  test("a query that fails") {
    val broken = udf((id: Long) => if (id == 999) throw new IllegalStateException("always") else id)
    val store = storeFor(numbers)
    intercept[Exception](tee(numbers, store).select(broken(col("id"))).collect())
    assertEquals(store.abandoned().code, "PARTIAL_CONSUMPTION")
    assert(!store.directory.exists())
  }

  test("reports that come twice: the first counts, the other file goes") {
    val df = numbers
    val store = storeFor(df)
    val run = new StoreRun(store.order)
    val (_, reports) = run.activate(SchemaOf(df), executed(df).execute(), executed(df)).get
    val files = (0 to 4).map { i =>
      val name = f"part-${i % 4}%05d-${java.util.UUID.randomUUID()}.parquet"
      Files.write(new java.io.File(store.directory, name).toPath, Array.fill(10)(1.toByte))
      PartitionReport(i % 4, 0, i / 4, name, 1, 10, 0, 0, None)
    }
    def arrive(report: PartitionReport): Unit = {
      val other = new StoreReports(null)
      other.add(report)
      reports.merge(other)
    }
    Seq(0, 1, 4, 2, 3).foreach(i => arrive(files(i)))
    assert(Stores.awaitCommits(10000))
    assertEquals(parts(store).map(_.getName), files.take(4).map(_.file))
    assertEquals(opened(store).files.map(_.name).toSeq, files.take(4).map(_.file))
    assertEquals(store.told, 1)
    // A straggler after the commit.
    val late = f"part-00000-${java.util.UUID.randomUUID()}.parquet"
    Files.write(new java.io.File(store.directory, late).toPath, Array[Byte](1))
    arrive(files(0).copy(file = late))
    assert(Stores.awaitCommits(10000))
    assertEquals(parts(store).size, 4)
    assertEquals(store.told, 1)
  }

  test("another attempt of indeterminate rows") {
    withConf("spark.sql.execution.sortBeforeRepartition" -> "false", "spark.sql.adaptive.enabled" -> "false") {
      val df = spark.range(0, 100, 1, 2).groupBy(hash(col("id"))).agg(max("id").as("id")).select("id").repartition(2)
      val store = storeFor(df)
      val flaky = udf { (id: Long) =>
        val context = TaskContext.get()
        if (context.attemptNumber() == 0 && context.partitionId() == 1) throw new IllegalStateException("first attempt")
        id
      }
      assertEquals(executed(df).execute().outputDeterministicLevel.toString, "INDETERMINATE")
      assertEquals(tee(df, store).select(flaky(col("id"))).collect().length, 100)
      assertEquals(store.abandoned().code, "INDETERMINATE_RETRY")
      assert(!store.directory.exists())
      val calm = storeFor(df)
      tee(df, calm).collect()
      assertEquals(calm.committed().rows, 100L)
    }
  }

  test("collected twice: written once") {
    val store = storeFor(numbers)
    val teed = tee(numbers, store)
    assertEquals(teed.collect().length, 1000)
    assert(Stores.awaitCommits(10000))
    val before = parts(store).map(f => f.getName -> f.lastModified)
    assertEquals(teed.collect().length, 1000)
    assertEquals(teed.rdd.count(), 1000L)
    store.committed()
    assertEquals(parts(store).map(f => f.getName -> f.lastModified), before)
    assertEquals(before.size, 4)
  }

  for (aqe <- Seq("true", "false"); reuse <- Seq("true", "false"))
    test(s"union and join with itself: written once, adaptive=$aqe reuse=$reuse") {
      withConf(
        "spark.sql.adaptive.enabled" -> aqe,
        "spark.sql.exchange.reuse" -> reuse,
        "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
        val store = storeFor(numbers)
        val teed = tee(numbers, store)
        assertEquals(teed.union(teed).count(), 2000L)
        assertEquals(store.committed().rows, 1000L)
        assertEquals(parts(store).size, 4)
        val again = storeFor(numbers)
        val grouped = tee(numbers, again).groupBy("k").count()
        val joined = grouped.as("l").join(grouped.as("r"), col("l.k") === col("r.k"))
        assertEquals(joined.count(), 7L)
        assertEquals(again.committed().rows, 1000L)
        assertEquals(parts(again).size, 4)
      }
    }

  test("a range partitioner's sampling pass and the pass after it") {
    val store = storeFor(numbers)
    val ordered = tee(numbers, store).orderBy(col("id").desc)
    assertEquals(ordered.collect().map(_.getLong(0)).toSeq, (0L until 1000L).reverse)
    assertEquals(store.committed().rows, 1000L)
    assertEquals(parts(store).size, 4)
  }

  test("no rows: partitions without files, and no partitions at all") {
    val none = numbers.where(col("id") < 0)
    val store = storeFor(none)
    assertEquals(tee(none, store).collect().length, 0)
    val done = store.committed()
    assertEquals((done.rows, done.files), (0L, 0))
    assertEquals(recycled(none, opened(store)).collect().length, 0)
    val empty = spark.emptyDataFrame.select(lit(1).as("one"))
    val second = storeFor(empty)
    val teed = withConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "") { tee(empty, second) }
    assertEquals(executed(teed).execute().getNumPartitions, 0)
    assertEquals(teed.collect().length, 0)
    assertEquals(second.committed().rows, 0L)
    assertEquals(recycled(empty, opened(second)).count(), 0L)
  }

  test("under coalesce, cartesian product, broadcast and subquery") {
    val one = storeFor(numbers)
    assertEquals(tee(numbers, one).coalesce(1).collect().length, 1000)
    assertEquals(parts { one.committed(); one }.size, 4)
    val two = newStore(1)
    val small = spark.range(0, 20, 1, 3).toDF("a")
    withConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      assertEquals(small.toDF("b").crossJoin(tee(small, two)).collect().length, 400)
    }
    assertEquals(two.committed().rows, 20L)
    assertEquals(parts(two).size, 3)
    val three = newStore(1)
    val joined = numbers.join(broadcast(tee(small, three)), col("id") === col("a"))
    assertEquals(joined.count(), 20L)
    assertEquals(three.committed().rows, 20L)
    val four = newStore(1)
    tee(small, four).createOrReplaceTempView("small_teed")
    numbers.createOrReplaceTempView("numbers_plain")
    assertEquals(spark.sql("select * from numbers_plain where id < (select max(a) from small_teed)").count(), 19L)
    assertEquals(four.committed().rows, 20L)
  }

  test("the order does not travel into the closures of operators above") {
    withConf("spark.sql.codegen.wholeStage" -> "false", "spark.sql.adaptive.enabled" -> "false") {
      val store = storeFor(numbers)
      val rows = tee(numbers, store).sortWithinPartitions("s").selectExpr("max(id) over (partition by k)")
      assertEquals(rows.collect().length, 1000)
      assertEquals(store.committed().rows, 1000L)
    }
  }

  test("ordering and partitioning stay") {
    val df = numbers.repartition(3, col("k")).sortWithinPartitions("k", "id")
    val store = storeFor(df)
    withConf("spark.sql.adaptive.enabled" -> "false") {
      val counted = tee(df, store).groupBy("k").count()
      val shuffles = collect(executed(counted)) {
        case s: org.apache.spark.sql.execution.exchange.ShuffleExchangeExec => s
      }
      assertEquals(shuffles.size, 1)
      assertEquals(counted.collect().length, 7)
    }
    store.committed()
  }
}

private object SchemaOf {
  def apply(df: org.apache.spark.sql.DataFrame): org.apache.spark.sql.types.StructType =
    org.apache.spark.sql.types.StructType(df.schema.zipWithIndex.map { case (f, i) => f.copy(name = s"c$i") })
}
