package org.apache.spark.sql.regions.exec

import java.io.{File, RandomAccessFile}
import java.nio.file.{Files, StandardOpenOption}

import org.apache.spark.sql.functions._
import org.apache.spark.sql.regions.{InputListing, Refusal}

class MaterializedScanSuite extends ExecSuite {
  private def numbers =
    spark.range(0, 1000, 1, 4).select(col("id"), (col("id") % 7).as("k"), concat(lit("s"), col("id")).as("s"))

  test("partitions keep their order: small files packed, big ones split") {
    val df = spark.range(0, 200000, 1, 7).select(col("id"), sha2(col("id").cast("string"), 256).as("s"))
    val (_, entry) = stored(df)
    val again = recycled(df, entry)
    val all = (0L until 200000L)
    assertEquals(again.collect().map(_.getLong(0)).toSeq, all)
    withConf("spark.sql.files.maxPartitionBytes" -> "100k", "spark.sql.files.openCostInBytes" -> "1k") {
      val split = recycled(df, entry)
      assert(split.rdd.getNumPartitions > 50, s"${split.rdd.getNumPartitions}")
      assertEquals(split.collect().map(_.getLong(0)).toSeq, all)
    }
    withConf("spark.sql.files.openCostInBytes" -> "1g") {
      assertEquals(recycled(df, entry).rdd.getNumPartitions, 7)
    }
  }

  test("pruning and push-down: fewer bytes and row groups are read") {
    val df = spark.range(0, 4000, 1, 4).select(
      col("id"), sha2(col("id").cast("string"), 256).as("s"), (col("id") % 3).as("k"))
    val (_, entry) = stored(df)
    def read(query: org.apache.spark.sql.DataFrame => org.apache.spark.sql.DataFrame) = {
      val again = query(recycled(df, entry))
      val rows = sorted(again.collect())
      assertEquals(rows, sorted(query(df).collect()))
      (scans(again).head, scans(again).head.metrics("numOutputRows").value)
    }
    val (pruned, all) = read(_.select("k"))
    assertEquals((pruned.columns, all), (Seq(2), 4000L))
    val (filtered, some) = read(_.where("id between 1500 and 1600").select("s"))
    assertEquals(filtered.columns, Seq(0, 1))
    assert(filtered.simpleString(100).contains("PushedFilters: [(c0#"), filtered.simpleString(100))
    assertEquals(some, 1000L)
    assertEquals(read(_.where("id > 100000"))._2, 0L)
    assertEquals(read(_.where("s is null"))._2, 0L)
    assertEquals(read(_.agg(count(lit(1))))._1.columns, Nil)
    assertEquals(read(_.where("rand(1) < 2").select("k"))._2, 4000L)
    assertEquals(filtered.metrics("numFiles").value, 4L)
    assertEquals(filtered.metrics("filesSize").value, entry.bytes)
    assertEquals(filtered.nodeName, s"MaterializedScan ${entry.entry}")
  }

  test("filters that Parquet and Spark see differently stay with Spark") {
    val df = spark.range(0, 4, 1, 1).selectExpr(
      "case id when 0 then -0.0D when 1 then double('NaN') when 2 then 1.0D end as d",
      "cast(case when id < 2 then 'ABC' else 'x' end as string collate UTF8_LCASE) as c"
    )
    val (_, entry) = stored(df)
    for (condition <- Seq(
        "d = 0.0D", "d > 5", "d = double('NaN')", "d <=> null", "d in (0.0D, 7)", "c = 'abc'", "c > 'b'")) {
      val again = recycled(df, entry).where(condition)
      assertEquals(sorted(again.collect()), sorted(df.where(condition).collect()), condition)
    }
  }

  for (aqe <- Seq("true", "false")) test(s"joins, self-joins, broadcasts, subqueries: adaptive=$aqe") {
    withConf("spark.sql.adaptive.enabled" -> aqe) {
      val df = numbers
      val (_, entry) = stored(df)
      val again = recycled(df, entry)
      val self = again.as("l").join(again.as("r"), col("l.id") === col("r.k"))
      assertEquals(sorted(self.collect()), sorted(df.as("l").join(df.as("r"), col("l.id") === col("r.k")).collect()))
      val side = df.join(broadcast(again.select(col("id").as("x"))), col("id") === col("x"))
      assertEquals(side.count(), 1000L)
      again.createOrReplaceTempView("again")
      df.createOrReplaceTempView("plain")
      for (q <- Seq(
          "select * from plain where id = (select max(k) from again)",
          "select * from plain p where exists (select 1 from again a where a.k = p.id)",
          "select k, count(*), max(s) from again group by k",
          "select id, s from again order by id limit 7"
        )) {
        assertEquals(sorted(spark.sql(q).collect()), sorted(spark.sql(q.replace("again", "plain")).collect()), q)
      }
    }
  }

  test("statistics") {
    val df = numbers
    val (_, entry) = stored(df)
    val relation = MaterializedRelation(planOf(df).output, entry, 0 to 2)
    assertEquals(relation.stats.rowCount, Some(BigInt(1000)))
    assert(relation.stats.sizeInBytes >= entry.bytes)
    val one = MaterializedRelation(planOf(df).output.take(1), entry, Seq(0))
    assert(one.stats.sizeInBytes < relation.stats.sizeInBytes)
    val leaf = MaterializedRead(entry.entry, relation.output, relation, planOf(df), Nil, _ => None, _ => ())
    assertEquals((leaf.stats, leaf.maxRows), (relation.stats, Some(1000L)))
    assertEquals(leaf.simpleString(10).takeWhile(_ != ','), s"MaterializedRead [entry ${entry.entry}]")
  }

  private def breaks(name: String, code: String)(damage: Store => Unit): Unit =
    for (aqe <- Seq("true", "false")) test(s"$name: computed again, adaptive=$aqe") {
      withConf("spark.sql.adaptive.enabled" -> aqe) {
        val df = numbers
        val (store, entry) = stored(df)
        def usages(told: Refusal => Unit) = {
          def again = recycled(df, entry, told)
          Seq(
            again -> df,
            again.where("id % 3 = 0 and id < 500").select("s") -> df.where("id % 3 = 0 and id < 500").select("s"),
            again.groupBy("k").count() -> df.groupBy("k").count(),
            df.join(broadcast(again.select(col("id").as("x"))), col("id") === col("x")) ->
              df.join(broadcast(df.select(col("id").as("x"))), col("id") === col("x")),
            again.as("l").join(again.as("r"), col("l.id") === col("r.k")) ->
              df.as("l").join(df.as("r"), col("l.id") === col("r.k"))
          )
        }
        val (queue, told) = refusals()
        val planned = usages(told)
        planned.foreach { case (used, _) => assert(reads(used).nonEmpty) }
        damage(store)
        assertEquals(Entries.open(spark, store.location, store.order.entry).left.map(_.code), Left(code))
        planned.zipWithIndex.foreach { case ((used, plain), i) =>
          queue.clear()
          val rows = sorted(plain.collect())
          assertEquals(sorted(used.collect()), rows, s"usage $i")
          assert(queue.size >= 1 && queue.size <= 2, s"usage $i: $queue")
          assertEquals(codes(queue).distinct, Seq(code))
          assertEquals(sorted(used.collect()), rows, s"usage $i, again")
        }
        queue.clear()
        val late = recycled(df, entry, told).where("k = 1").select("s")
        assertEquals(sorted(late.collect()), sorted(df.where("k = 1").select("s").collect()), "planned afterwards")
        assertEquals(codes(queue), Seq(code))
      }
    }

  breaks("missing file", "ENTRY_MISSING")(store => assert(parts(store).head.delete()))
  breaks("missing directory", "ENTRY_MISSING") { store =>
    store.directory.listFiles().foreach(_.delete())
    assert(store.directory.delete())
  }
  breaks("truncated file", "ENTRY_DAMAGED") { store =>
    val file = parts(store).last
    val time = file.lastModified()
    val access = new RandomAccessFile(file, "rw")
    access.setLength(file.length() / 2)
    access.close()
    file.setLastModified(time)
  }
  breaks("altered file of equal length", "ENTRY_DAMAGED") { store =>
    val file = parts(store).head
    val bytes = Files.readAllBytes(file.toPath)
    bytes(bytes.length / 2) = (bytes(bytes.length / 2) + 1).toByte
    Files.write(file.toPath, bytes)
    file.setLastModified(file.lastModified() + 5000)
  }
  breaks("symbolic link", "ENTRY_DAMAGED") { store =>
    val file = parts(store).head
    val target = new File(folder(), "target")
    val time = file.lastModified()
    Files.move(file.toPath, target.toPath)
    Files.createSymbolicLink(file.toPath, target.toPath)
    target.setLastModified(time)
  }

  private def manifest(store: Store) = new File(store.directory, "_manifest.json")

  test("manifests that lie are refused") {
    val (store, entry) = stored(numbers)
    val good = Files.readString(manifest(store).toPath)
    val name = entry.files.head.name
    val id = store.order.entry
    val lies = Seq(
      good.replace(name, "../../etc/passwd"),
      good.replace(name, ".."),
      good.replace(name, s"x/$name"),
      good.replace("\"version\":2", "\"version\":3"),
      good.replace(s""""entry":"$id"""", "\"entry\":\"other\""),
      good.replace("\"rows\":1000", "\"rows\":999"),
      good.replace("\"partition\":0", "\"partition\":3"),
      good.take(good.length / 2),
      "",
      "[]",
      "null",
      good.replace("\"rows\":1000", "\"rows\":-1000"),
      good.replace("\"c1\"", "\"c2\"").replace("\\\"c1\\\"", "\\\"c2\\\""),
      good.replace("\\\"long\\\"", "\\\"interval\\\""),
      good.replace(
        "\\\"type\\\":\\\"long\\\"",
        "\\\"type\\\":{\\\"type\\\":\\\"udt\\\",\\\"class\\\":\\\"java.lang.Object\\\"}"),
      good.replace(s"\"$name\"", "7"),
      good.replace("\"d0\"", "\"d0\",\"d9\"")
    )
    lies.foreach { lie =>
      assert(lie != good, lie.take(50))
      Files.writeString(manifest(store).toPath, lie, StandardOpenOption.TRUNCATE_EXISTING)
      assertEquals(Entries.open(spark, store.location, id).left.map(_.code), Left("ENTRY_DAMAGED"), lie.take(300))
    }
    Files.writeString(manifest(store).toPath, good, StandardOpenOption.TRUNCATE_EXISTING)
    assert(Entries.open(spark, store.location, id).isRight)
    assertEquals(Entries.open(spark, store.location, "other").left.map(_.code), Left("ENTRY_DAMAGED"))
    assertEquals(Entries.open(spark, "nosuch://x/y", id).left.map(_.code), Left("ENTRY_DAMAGED"))
    assertEquals(Entries.open(spark, folder().toURI.toString, id).left.map(_.code), Left("ENTRY_MISSING"))
    Files.move(manifest(store).toPath, new File(folder(), "m").toPath)
    val (queue, told) = refusals()
    assertEquals(recycled(numbers, entry, told).count(), 1000L)
    assertEquals(codes(queue), Seq("ENTRY_MISSING"))
  }

  test("silent damage is an error, never wrong rows") {
    val df = spark.range(0, 5000, 1, 1).select(col("id"), sha2(col("id").cast("string"), 256).as("s"))
    for (conf <- Seq("true", "false")) {
      val (store, entry) = stored(df)
      val file = parts(store).head
      new File(file.getParentFile, s".${file.getName}.crc").delete()
      val time = file.lastModified()
      val bytes = Files.readAllBytes(file.toPath)
      bytes(bytes.length / 2) = (bytes(bytes.length / 2) ^ 4).toByte
      Files.write(file.toPath, bytes)
      file.setLastModified(time)
      withConf("spark.sql.files.ignoreCorruptFiles" -> "true", "spark.sql.parquet.enableVectorizedReader" -> conf) {
        val error = intercept[Exception](recycled(df, entry).collect())
        assert(
          Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null)
            .exists(e => String.valueOf(e.getMessage).toLowerCase.contains("crc")),
          error.toString
        )
      }
    }
  }

  for (aqe <- Seq("true", "false"); wide <- Seq(false, true))
    test(s"an input changes between two executions of one DataFrame: adaptive=$aqe shuffled original=$wide") {
      withConf("spark.sql.adaptive.enabled" -> aqe) {
        val path = new File(folder(), "in.csv")
        def put(rows: Seq[Int]): Unit = Files.writeString(path.toPath, rows.mkString("x\n", "\n", "\n"))
        put(101 to 200)
        val base = spark.read.option("header", "true").schema("x int").csv(path.getPath)
        val df = if (wide) base.groupBy("x").count().selectExpr("x", "count") else base.selectExpr("x", "x + 1")
        val input = new InputListing {
          private val (time, length) = (path.lastModified, path.length)
          override def unchanged(): Boolean = path.lastModified == time && path.length == length
          override def describe: String = path.getName
        }
        val (_, entry) = stored(df)
        val (queue, told) = refusals()
        val again = recycled(df, entry, told, Seq(input))
        assertEquals(again.collect().map(_.getInt(0)).sum, 15050)
        assertEquals(again.collect().map(_.getInt(0)).sum, 15050)
        assertEquals(codes(queue), Nil)
        put(201 to 300)
        path.setLastModified(path.lastModified + 5000)
        assertEquals(again.collect().map(_.getInt(0)).sum, 25050)
        assertEquals(codes(queue), Seq("INPUT_CHANGED"))
        assertEquals(again.collect().map(_.getInt(0)).sum, 25050)
        assertEquals(again.where("x > 250").count(), 50L)
        assertEquals(again.limit(3).collect().length, 3)
      }
    }

  test("an entry without rows is found to be out of date at the second execution") {
    val path = new File(folder(), "in.csv")
    Files.writeString(path.toPath, "x\n1\n")
    val df = spark.read.option("header", "true").schema("x int").csv(path.getPath).where("x > 5")
    val input = new Listing
    val (_, entry) = stored(df)
    val (queue, told) = refusals()
    val again = recycled(df, entry, told, Seq(input))
    assertEquals(again.collect().length, 0)
    Files.writeString(path.toPath, "x\n7\n")
    input.same.set(false)
    assertEquals(again.collect().map(_.getInt(0)).toSeq, Seq(7))
    assertEquals(codes(queue), Seq("INPUT_CHANGED"))
  }
}
