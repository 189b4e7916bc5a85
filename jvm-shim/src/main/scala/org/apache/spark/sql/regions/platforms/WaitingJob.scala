package org.apache.spark.sql.regions.platforms

import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit, TimeoutException}
import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.duration._
import scala.util.Failure

import org.apache.spark.{SimpleFutureAction, SparkContext, TaskContext}
import org.apache.spark.util.ThreadUtils

/**
 * A job of Spark's that is there as long as another engine works for a query: whoever cancels the query's jobs, by their group, by a
 * tag or on Spark's pages, then ends what the engine does. Nobody tells of a group that is cancelled while it has no job.
 *
 * Its one task waits. Only where tasks run in the driver's process; elsewhere a query ends with its thread, or at its deadline.
 */
private[platforms] final class WaitingJob(sc: SparkContext, name: String) {
  private val number = WaitingJob.numbers.incrementAndGet()
  private var job: Option[SimpleFutureAction[Unit]] = None

  /** Starts it, if it is not there yet. */
  def begin(): Unit = if (job.isEmpty && sc.isLocal) {
    WaitingJob.open.put(number, new CountDownLatch(1))
    val waited = (numbers: Iterator[Long]) => numbers.foreach(WaitingJob.await)
    val one = sc.parallelize(Seq(number), 1).setName(name)
    job = Some(sc.submitJob(one, waited, Seq(0), (_: Int, _: Unit) => (), ()))
  }

  /** Why it was cancelled, if so. */
  def cancelled: Option[String] = job.flatMap(_.value).collect { case Failure(why) => why.toString }

  /** Spark's listeners hear of its end before that of the query. */
  def end(): Unit = {
    Option(WaitingJob.open.remove(number)).foreach(_.countDown())
    job.foreach { action =>
      try ThreadUtils.awaitReady(action, WaitingJob.atMost)
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
}
