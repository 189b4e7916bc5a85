package org.apache.spark.sql.regions.exec

import java.io.File
import java.nio.file.Files

import org.apache.spark.sql.functions._

class StoreFaultSuite extends ExecSuite {
  private def numbers = spark.range(0, 20000, 1, 4).select(col("id"), sha2(col("id").cast("string"), 256).as("s"))

  /** Twenty copies are more than tasks hold in memory. */
  private def many(copies: Int) = numbers.crossJoin(spark.range(0, copies, 1, 1).toDF("n")).select("id", "s")

  private def passes(store: Store, copies: Int = 1): Unit =
    assertEquals(tee(many(copies), store).agg(sum("id")).head().getLong(0), 199990000L * copies)

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
    for (copies <- Seq(20, 1)) {
      val store = newStore(2)
      val rows = executed(tee(many(copies), store)).execute()
      assert(store.directory.exists())
      assert(store.directory.delete())
      assertEquals(rows.count(), 20000L * copies)
      if (copies > 1) {
        assertEquals(store.abandoned().code, "STORE_NOT_SHARED")
        assert(!store.directory.exists())
      } else {
        store.committed()
        assertEquals(sorted(recycled(many(copies), opened(store)).collect()), sorted(many(copies).collect()))
      }
    }
  }

  private def fullStore(inMemory: Boolean = false) =
    newStore(2, location = Some("full://" + new File(folder(), "e1").getPath), inMemory = inMemory)

  private def failsToWrite(store: Store, detail: String): Unit = {
    assert(Stores.awaitCommits(20000))
    val refusal = store.abandoned()
    assertEquals(refusal.code, "WRITE_FAILED")
    assert(refusal.detail.contains(detail), refusal.detail)
    assert(!store.directory.exists())
  }

  test("the disk is full, at once or in the middle") {
    for (room <- Seq(0L, 100L, 50000L); copies <- Seq(1, 20)) {
      val store = fullStore()
      FullFileSystem.withRoom(room) {
        passes(store, copies)
        failsToWrite(store, "No space left")
      }
    }
  }

  test("the memory is full where rows are written, by tasks or by the driver") {
    for ((copies, inMemory) <- Seq((20, false), (1, false), (1, true))) {
      val store = fullStore(inMemory)
      Stores.register(store.order)
      Thread.sleep(250)
      FullFileSystem.withRoom(100, new OutOfMemoryError("Java heap space")) {
        passes(store, copies)
        failsToWrite(store, "OutOfMemoryError: Java heap space")
      }
    }
  }

  test("another file system than the local one") {
    val store = fullStore()
    passes(store)
    store.committed()
    assertEquals(recycled(numbers, opened(store)).agg(sum("id")).head().getLong(0), 199990000L)
  }

  test("what tasks hold in memory: the disk is full when the driver writes it") {
    val store = fullStore(inMemory = true)
    Stores.register(store.order)
    Thread.sleep(250)
    FullFileSystem.withRoom(100) {
      passes(store)
      failsToWrite(store, "No space left")
    }
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
    (0 to 3).foreach(i => lost.add(PartitionReport(i, 0, 0, s"part-0000$i-x.parquet", 1, 10, 0, 0, None)))
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
