package org.apache.spark.sql.regions.skew

import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, LongType}

class KeyCountsSuite extends munit.FunSuite {
  private val unsafe = UnsafeProjection.create(Array[DataType](LongType))
  private def key(value: Long): UnsafeRow = unsafe(InternalRow(value)).copy()

  /** Keys of several tasks, heavy and light, and what their merged counts say. */
  private def counted(seed: Int): (Map[Long, Long], KeyCounts) = {
    val chance = new Random(seed)
    val tasks = Seq.fill(chance.nextInt(6) + 1)(
      Seq.fill(chance.nextInt(4000))(
        if (chance.nextDouble() < 0.4) chance.nextInt(3).toLong
        else math.pow(chance.nextInt(3000), 1 + seed % 2).toLong))
    val merged = tasks.map { task =>
      val counter = new KeyCounter
      // One row for all, as an iterator of Spark's has it.
      task.foreach(value => counter.add(unsafe(InternalRow(value))))
      counter.result
    }.foldLeft(KeyCounts())(_.merge(_))
    (tasks.flatten.groupBy(identity).map { case (value, all) => value -> all.size.toLong }, merged)
  }

  test("counts are low by no more than the error, and no heavy key is missed") {
    (0 until 200).foreach { seed =>
      val (truth, found) = counted(seed)
      val total = truth.values.sum
      assert(found.counts.size <= KeyCounts.most)
      assert(found.error <= total / (KeyCounts.most + 1), s"seed $seed")
      truth.foreach { case (value, count) =>
        val low = found.counts.getOrElse(key(value), 0L)
        assert(low <= count && count <= low + found.error, s"seed $seed, key $value")
      }
    }
  }

  test("few keys are counted exactly") {
    val counter = new KeyCounter
    (0 until 640).foreach(n => counter.add(key(n % KeyCounts.most.toLong)))
    val once = counter.result
    assert(once.error == 0 && once.counts.values.toSet == Set(10L))
    assert(once.merge(once) == KeyCounts(once.counts.map { case (k, n) => k -> 2 * n }))
  }

  test("an accumulator starts empty and adds") {
    val one = new KeyAccumulator
    assert(one.isZero)
    one.add(KeyCounts(Map(key(1) -> 2L), error = 1))
    val copy = one.copyAndReset()
    assert(copy.isZero && !one.isZero)
    copy.merge(one)
    copy.merge(one)
    assert(copy.value == KeyCounts(Map(key(1) -> 4L), error = 2))
  }
}
