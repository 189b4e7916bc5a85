package org.apache.spark.sql.regions.skew

import scala.collection.mutable

import org.apache.spark.{HashPartitioner, ShuffleDependency, SparkContext, SparkEnv, SparkException}
import org.apache.spark.internal.config.SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.regions.LocalSpark

class StageLoadsSuite extends munit.FunSuite {
  private var sc: SparkContext = _
  private var loads: StageLoads = _
  private val told = mutable.ArrayBuffer.empty[(String, Seq[TaskLoad])]

  override def beforeEach(context: BeforeEach): Unit = {
    loads = new StageLoads(10)
    told.clear()
    sc = LocalSpark.session(_ => ()).sparkContext
    sc.addSparkListener(loads)
  }

  override def afterEach(context: AfterEach): Unit = sc.removeSparkListener(loads)

  private def pairs: RDD[(Int, Int)] = sc.parallelize(1 to 100, 4).map(n => (n % 7, n))

  /** A hundred rows in three partitions, of seven keys. */
  private def shuffled: (RDD[(Int, Int)], Int) = {
    val rows = pairs.partitionBy(new HashPartitioner(3))
    (rows, shuffleId(rows))
  }

  private def shuffleId(rows: RDD[_]): Int =
    rows.dependencies.head.asInstanceOf[ShuffleDependency[_, _, _]].shuffleId

  private def await(shuffle: Int, owner: String, tasks: Int): Unit =
    loads.await(shuffle, StageKey(owner, None), tasks)(found => told += owner -> found)

  private def heard: Seq[(String, Seq[TaskLoad])] = {
    sc.listenerBus.waitUntilEmpty()
    told.toSeq
  }

  test("what each task read, in the order of their numbers") {
    val (rows, shuffle) = shuffled
    await(shuffle, "reader", 3)
    assertEquals(rows.map(_._2).collect().length, 100)
    val Seq(("reader", tasks)) = heard
    val counts = (0 until 3).map(p => (1 to 100).count(_ % 7 % 3 == p).toLong)
    assertEquals(tasks.map(_.rows), counts)
    assertEquals(tasks.forall(_.bytes > 0), true)
    // The shuffle is there already: the stage that wrote it is skipped, and nobody waits any more.
    rows.count()
    assertEquals(heard.size, 1)
    await(shuffle, "reader", 3)
    rows.count()
    assertEquals(heard.size, 2)
  }

  test("what each task put aside while it sorted") {
    val (unsorted, shuffle) = shuffled
    await(shuffle, "unsorted", 3)
    unsorted.count()
    val rows = pairs.repartitionAndSortWithinPartitions(new HashPartitioner(3))
    val threshold = SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD
    SparkEnv.get.conf.set(threshold, 30)
    try {
      await(shuffleId(rows), "sorted", 3)
      rows.count()
    } finally SparkEnv.get.conf.remove(threshold)
    val found = heard.toMap
    assertEquals(found("unsorted").map(_.spilled), Seq(0L, 0L, 0L))
    assertEquals(found("sorted").map(task => task.rows > 30), Seq(true, false, false))
    assertEquals(found("sorted").map(task => task.spilled > 0), Seq(true, false, false))
  }

  test("another reader of the shuffle is not taken for it") {
    val (rows, shuffle) = shuffled
    await(shuffle, "reader", 3)
    rows.coalesce(2).count()
    assertEquals(heard.size, 0)
    rows.count()
    assertEquals(heard.size, 1)
  }

  test("of two that wait for one shuffle nobody is told") {
    val (rows, shuffle) = shuffled
    await(shuffle, "one", 3)
    await(shuffle, "one", 3)
    await(shuffle, "other", 3)
    rows.count()
    assertEquals(heard.size, 0)
  }

  test("a stage that failed is not told of") {
    val (rows, shuffle) = shuffled
    await(shuffle, "reader", 3)
    intercept[SparkException](
      rows.map { case (_, n) => if (n == 50) throw new IllegalStateException("n is 50") else n }.count())
    assertEquals(heard.size, 0)
  }
}
