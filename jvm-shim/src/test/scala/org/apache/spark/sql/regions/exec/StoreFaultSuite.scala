package org.apache.spark.sql.regions.exec

import java.io.File
import java.nio.file.Files

import org.apache.spark.sql.functions._

class StoreFaultSuite extends ExecSuite {
  private def numbers = spark.range(0, 20000, 1, 4).select(col("id"), sha2(col("id").cast("string"), 256).as("s"))

  private def passes(store: Store): Unit =
    assertEquals(tee(numbers, store).agg(sum("id")).head().getLong(0), 199990000L)

  test("the location cannot be a directory") {
    val file = new File(folder(), "plain")
    Files.write(file.toPath, Array[Byte](1))
    val store = newStore(2, location = Some(new File(file, "e1").toURI.toString))
    passes(store)
    assertEquals(store.abandoned().code, "WRITE_FAILED")
    assert(file.isFile)
  }

  test("the location is not empty: nothing of it is touched") {
    val store = newStore(2)
    store.directory.mkdirs()
    val theirs = new File(store.directory, "theirs")
    Files.write(theirs.toPath, Array[Byte](1))
    passes(store)
    assertEquals(store.abandoned().code, "WRITE_FAILED")
    assert(theirs.exists())
  }

  test("the directory disappears before the tasks write") {
    // More than a task holds in memory, and as much.
    for (copies <- Seq(20, 1)) {
      val store = newStore(2)
      val many = numbers.crossJoin(spark.range(0, copies, 1, 1).toDF("n")).select("id", "s")
      val rows = executed(tee(many, store)).execute()
      assert(store.directory.exists())
      assert(store.directory.delete())
      assertEquals(rows.count(), 20000L * copies)
      if (copies > 1) {
        assertEquals(store.abandoned().code, "STORE_NOT_SHARED")
        assert(!store.directory.exists())
      } else {
        store.committed()
        assertEquals(sorted(recycled(many, opened(store)).collect()), sorted(many.collect()))
      }
    }
  }

  test("the disk is full, at once or in the middle") {
    for (room <- Seq(0L, 100L, 50000L)) {
      FullFileSystem.room = room
      val store = newStore(2, location = Some("full://" + new File(folder(), "e1").getPath))
      try {
        passes(store)
        assert(Stores.awaitCommits(20000))
      } finally FullFileSystem.room = Long.MaxValue
      val refusal = store.abandoned()
      assertEquals(refusal.code, "WRITE_FAILED")
      assert(refusal.detail.contains("No space left"), refusal.detail)
      assert(!store.directory.exists())
    }
  }

  test("another file system than the local one") {
    val store = newStore(2, location = Some("full://" + new File(folder(), "e1").getPath))
    passes(store)
    store.committed()
    assertEquals(recycled(numbers, opened(store)).agg(sum("id")).head().getLong(0), 199990000L)
  }

  test("what tasks hold in memory: the disk is full when the driver writes it") {
    val store = newStore(2, location = Some("full://" + new File(folder(), "e1").getPath), inMemory = true)
    Stores.register(store.order)
    Thread.sleep(250)
    FullFileSystem.room = 100
    try {
      passes(store)
      assert(Stores.awaitCommits(20000))
    } finally FullFileSystem.room = Long.MaxValue
    assertEquals(store.abandoned().code, "WRITE_FAILED")
    assert(!store.directory.exists())
  }

  test("what tasks hold in memory: the application ends before it is written") {
    val store = newStore(2, inMemory = true)
    Stores.register(store.order)
    executed(tee(numbers, store)).execute()
    Stores.abandonAll(org.apache.spark.sql.regions.Refusal("APPLICATION_ENDED"))
    assertEquals(store.abandoned().code, "APPLICATION_ENDED")
    assert(!store.directory.exists())
  }

  test("more bytes than allowed") {
    val store = newStore(2, maxBytes = 1000)
    passes(store)
    assertEquals(store.abandoned().code, "OVER_BUDGET")
    assert(!store.directory.exists())
  }

  test("one partition alone is far over the budget: its task stops writing") {
    val wide = spark.range(0, 1800000, 1, 1).select(col("id"), sha2(col("id").cast("string"), 256).as("s"))
    val store = newStore(2, maxBytes = 1000)
    assertEquals(tee(wide, store).count(), 1800000L)
    val refusal = store.abandoned()
    assertEquals(refusal.code, "OVER_BUDGET")
    assert(refusal.detail.contains("alone"), refusal.detail)
  }

  test("an input changed before the commit") {
    val input = new Listing
    val store = newStore(2, inputs = Seq(input))
    input.same.set(false)
    passes(store)
    assertEquals(store.abandoned().code, "INPUT_CHANGED")
    assert(!store.directory.exists())
  }

  test("a file is lost before the commit") {
    val store = newStore(2)
    val run = new StoreRun(store.order)
    val (_, reports) = run.activate(SchemaOf(numbers), executed(numbers).execute(), executed(numbers)).get
    val lost = new StoreReports(null)
    (0 to 3).foreach(i => lost.add(PartitionReport(i, 0, 0, s"part-0000$i-x.parquet", 1, 10, 0, None)))
    reports.merge(lost)
    assertEquals(store.abandoned().code, "STORE_NOT_SHARED")
  }

  test("a second writer of the same entry leaves the first one's manifest") {
    val store = newStore(2)
    val fs = StoreFiles.system(new org.apache.hadoop.fs.Path(store.location), spark.sessionState.newHadoopConf())
    val directory = new org.apache.hadoop.fs.Path(store.location)
    StoreFiles.makeDirectory(fs, directory)
    assert(StoreFiles.createManifest(fs, directory, "first"))
    assert(!StoreFiles.createManifest(fs, directory, "second"))
    val manifest = new File(store.directory, "_manifest.json")
    assertEquals(Files.readString(manifest.toPath), "first")
    assertEquals(store.directory.list().toSeq.filterNot(_.endsWith(".crc")), Seq("_manifest.json"))
  }

  test("an end that cannot be told, and all runs abandoned at the end of the application") {
    val store = newStore(2)
    val broken = new Store(store.order.copy(onEnd = _ => throw new IllegalStateException("x")), null)
    passes(broken)
    Stores.finish(broken.order.query)
    assert(Stores.awaitCommits(10000))
    assert(new File(store.directory, "_manifest.json").exists())
    val open = newStore(2)
    executed(tee(numbers, open)).execute()
    Stores.abandonAll(org.apache.spark.sql.regions.Refusal("APPLICATION_ENDED"))
    assertEquals(open.abandoned().code, "APPLICATION_ENDED")
    assert(!open.directory.exists())
  }
}
