package org.apache.spark.sql.regions.skew

import java.util.{HashMap => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.util.AccumulatorV2

/**
 * Counts of the most frequent keys (Misra and Gries 1982; merged as by Agarwal et al. 2012): of each key,
 * count <= times it was added <= count + error.
 */
final case class KeyCounts(counts: Map[UnsafeRow, Long] = Map.empty, error: Long = 0) {

  def merge(other: KeyCounts): KeyCounts = {
    val sums = other.counts.foldLeft(counts) { case (all, (key, count)) =>
      all.updated(key, all.getOrElse(key, 0L) + count)
    }
    val over = if (sums.size > KeyCounts.most) sums.values.toSeq.sorted.reverse(KeyCounts.most) else 0L
    KeyCounts(sums.collect { case (key, count) if count > over => key -> (count - over) }, error + other.error + over)
  }
}

object KeyCounts {

  /** Counters: a key with a sixty-fourth of the rows is not missed. */
  val most = 64
}

/** Of one task; for one thread. */
private[skew] final class KeyCounter {
  private val counts = new JMap[UnsafeRow, Array[Long]]
  private var error = 0L

  /** @param key is copied where it is kept */
  def add(key: UnsafeRow): Unit = {
    val known = counts.get(key)
    if (known != null) known(0) += 1
    else if (counts.size < KeyCounts.most) counts.put(key.copy(), Array(1L))
    else {
      error += 1
      counts.values.removeIf { count =>
        count(0) -= 1
        count(0) == 0
      }
    }
  }

  def result: KeyCounts = KeyCounts(counts.asScala.map { case (key, count) => key -> count(0) }.toMap, error)
}

/** Every task adds its counts once, when it ends: what a heartbeat sends meanwhile never changes under it. */
final class KeyAccumulator(private var all: KeyCounts = KeyCounts()) extends AccumulatorV2[KeyCounts, KeyCounts] {
  override def isZero: Boolean = all.counts.isEmpty && all.error == 0
  override def copy(): KeyAccumulator = new KeyAccumulator(all)
  override def reset(): Unit = all = KeyCounts()
  override def add(counts: KeyCounts): Unit = all = all.merge(counts)
  override def merge(other: AccumulatorV2[KeyCounts, KeyCounts]): Unit = add(other.value)
  override def value: KeyCounts = all
}

/** Counts the keys of every n-th row that a task reads. */
private[skew] final class KeySampler(keys: Seq[Expression], found: KeyAccumulator) extends Serializable {

  /** What a task's rows go through. */
  def ofTask(context: TaskContext): Iterator[InternalRow] => Iterator[InternalRow] = {
    val counter = new KeyCounter
    val key = UnsafeProjection.create(keys)
    var left = context.partitionId() % KeySampler.every
    context.addTaskCompletionListener[Unit](_ => found.add(counter.result))
    _.map { row =>
      if (left == 0) {
        counter.add(key(row))
        left = KeySampler.every
      }
      left -= 1
      row
    }
  }
}

private[skew] object KeySampler {
  val every = 16
}
