package org.apache.spark.sql.regions.platforms

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit, TimeoutException}
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.duration._
import scala.util.Failure

import org.apache.spark.{Partition, SimpleFutureAction, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.BarrierJobAllocationFailed
import org.apache.spark.util.{ThreadUtils, Utils}

/**
 * A job of Spark's that is there as long as another engine works for a query: whoever cancels the query's jobs, by their group, by a
 * tag or all of them, then ends what the engine does. Nobody tells of a group that is cancelled while it has no job.
 *
 * Where tasks run in the driver's process its one task waits, and Spark's pages have it. Elsewhere a task would hold a core: there the
 * job itself waits, for more cores than there are. With dynamic allocation Spark has no such jobs, and a query ends with its thread, or
 * at its deadline.
 */
private[platforms] final class WaitingJob(sc: SparkContext, name: String) {
  private val number = WaitingJob.numbers.incrementAndGet()
  private var job: Option[SimpleFutureAction[Unit]] = None

  /** A cancel before that is lost. Spark warns of each job that waits for cores. */
  val afterNanos: Long = (if (sc.isLocal) 250.millis else 1.second).toNanos

  /** Starts it, if it is not there yet. */
  def begin(): Unit = if (job.isEmpty && (sc.isLocal || !Utils.isDynamicAllocationEnabled(sc.conf))) {
    if (sc.isLocal) WaitingJob.open.put(number, new CountDownLatch(1))
    val one: RDD[Long] = if (sc.isLocal) sc.parallelize(Seq(number), 1) else new Unplaced(sc)
    val waited = (numbers: Iterator[Long]) => numbers.foreach(WaitingJob.await)
    job = Some(sc.submitJob(one.setName(name), waited, Seq(0), (_: Int, _: Unit) => (), ()))
  }

  /** Why it was cancelled, if so; Spark itself ends a job that has waited for cores in vain. */
  def cancelled: Option[String] = job.flatMap(_.value).collect {
    case Failure(why) if !why.isInstanceOf[BarrierJobAllocationFailed] => why.toString
  }

  /** Spark's listeners hear of its end before that of the query, if they heard of it at all. */
  def end(): Unit = {
    Option(WaitingJob.open.remove(number)).foreach(_.countDown())
    job.foreach { action =>
      try if (sc.isLocal) ThreadUtils.awaitReady(action, WaitingJob.atMost) else action.cancel()
      catch { case _: TimeoutException => action.cancel() }
    }
  }
}

private object WaitingJob {
  private val numbers = new AtomicLong()
  private val open = new ConcurrentHashMap[Long, CountDownLatch]()

  private def await(number: Long): Unit = {
    val latch = open.get(number)
    // A task that is killed need not be interrupted.
    while (latch != null && !latch.await(pollMillis, TimeUnit.MILLISECONDS)) TaskContext.get().killTaskIfInterrupted()
  }

  private val pollMillis = 50L

  /** Its task may have found no core yet. */
  private val atMost = 1.second

  /** More than a cluster has cores. */
  private[platforms] val unplaced: Array[Partition] =
    Array.tabulate(1 << 17)(i => new Partition { override def index: Int = i })
}

/**
 * Of a barrier stage all tasks start at once, and its job waits where there are not cores enough, known to nobody but who cancels. Were
 * there ever enough, Spark would refuse it: one of its partitions alone is asked for.
 */
private final class Unplaced(sc: SparkContext) extends RDD[Long](sc, Nil) {
  override private[spark] def isBarrier(): Boolean = true
  override protected def getPartitions: Array[Partition] = WaitingJob.unplaced
  override def compute(split: Partition, context: TaskContext): Iterator[Long] = Iterator.empty
}
