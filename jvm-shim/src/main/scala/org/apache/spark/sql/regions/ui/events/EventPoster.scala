package org.apache.spark.sql.regions.ui.events

import java.util.concurrent.{ArrayBlockingQueue, TimeUnit}
import java.util.concurrent.atomic.LongAdder

import org.apache.spark.SparkConf
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.regions.Guard

/**
 * Makes events and posts them in order, on a thread of its own, so that no query waits for it.
 *
 * @param post to Spark's listener bus
 * @param idle called between events, a few times a second
 * @param limit events that wait at most; what comes then is dropped
 */
final class EventPoster(conf: SparkConf, post: SparkListenerEvent => Unit, idle: () => Unit, limit: Int = 2000)
    extends Logging {
  private val pauseMillis = 250L
  private val waiting = new ArrayBlockingQueue[() => SparkListenerEvent](limit)
  private val lost = new LongAdder
  @volatile private var closed = false

  private val thread = new Thread(() => run(), "spark-regions-events")
  thread.setDaemon(true)
  thread.start()

  def dropped: Long = lost.sum()

  def offer(event: () => SparkListenerEvent): Unit = if (closed || !waiting.offer(event)) lost.increment()

  /** Posts what waits, if that takes no longer than `millis`. */
  def close(millis: Long): Unit = {
    closed = true
    waiting.offer(() => null)
    thread.join(millis)
    if (thread.isAlive) thread.interrupt()
    if (dropped > 0) logWarning(s"$dropped events of the Regions tab were dropped")
  }

  private def run(): Unit =
    try {
      var next = waiting.poll(pauseMillis, TimeUnit.MILLISECONDS)
      while (next != null || !closed) {
        if (next != null) guarded(Option(next()).foreach(post))
        if (!closed) guarded(idle())
        next = waiting.poll(if (closed) 0 else pauseMillis, TimeUnit.MILLISECONDS)
      }
    } catch { case _: InterruptedException => }

  /** Not even `strict` lets a fault in here end the thread. */
  private def guarded(body: => Unit): Unit =
    try body
    catch { case error: Throwable if Guard.isOurs(error) => Guard.warnOnce("the events of the Regions tab", error) }
}
