package org.apache.spark.sql.regions.exec

import java.util.concurrent.{ConcurrentHashMap, Executors, ThreadFactory, TimeUnit}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.regions.{BoundedMap, Refusal, StoreOrder}
import org.apache.spark.sql.types.StructType

/** The store runs of this driver, and the one thread that touches their files. */
object Stores extends Logging {
  private val runs = new ConcurrentHashMap[String, StoreRun]()
  private val lock = new Object
  private var pending = 0

  /** By entry, the core of what is being committed. */
  private val committing = mutable.HashMap.empty[String, String]

  private lazy val thread = Executors.newSingleThreadExecutor(
    new ThreadFactory {
      override def newThread(work: Runnable): Thread = {
        val thread = new Thread(work, "spark-regions-store")
        thread.setDaemon(true)
        thread.setPriority(Thread.MIN_PRIORITY)
        thread
      }
    })

  /**
   * The run of an order. Call it when the order is put into a plan, so that `finish` knows it even if it never
   * executes.
   */
  def register(order: StoreOrder): Unit = if (!finished(order)) runOf(order)

  private def runOf(order: StoreOrder): StoreRun = runs.computeIfAbsent(order.entry, _ => new StoreRun(order))

  private[exec] def activate(
      order: StoreOrder,
      schema: StructType,
      rdd: RDD[_],
      plan: SparkPlan): Option[(TeeSpec, StoreReports)] =
    if (finished(order)) None else runOf(order).activate(schema, rdd, plan)

  // A plan can be executed again long after its query ended and its run was forgotten.
  private val ends = BoundedMap[String, java.lang.Boolean](100000)

  private def finished(order: StoreOrder): Boolean = ends.containsKey(order.entry)

  /** The query ended, well or not: abandons its runs that have not got every partition and forgets all of them. */
  def finish(query: Long): Unit = finishIf(_.order.query == query, None)

  /** The same for entries of which it is known earlier that no plan writes them. */
  def finishAll(entries: Set[String]): Unit =
    if (entries.nonEmpty) finishIf(run => entries(run.order.entry), None)

  /** Abandons every run that is not complete, at the end of the application. */
  def abandonAll(reason: Refusal): Unit = finishIf(_ => true, Some(reason))

  private def finishIf(which: StoreRun => Boolean, reason: Option[Refusal]): Unit =
    runs.values.asScala.filter(which).toSeq.foreach { run =>
      ends.put(run.order.entry, true)
      reason.foreach(run.abandon)
      run.finish()
      runs.remove(run.order.entry, run)
    }

  /**
   * Waits until every run whose partitions are all in has been committed or given up, and files of abandoned runs are
   * gone.
   *
   * @return false if that took longer
   */
  def awaitCommits(millis: Long): Boolean = await(millis, pending == 0)

  /** The same, of those alone that a query with such cores could read. */
  def awaitCommits(millis: Long, cores: Set[String]): Boolean = await(millis, !committing.valuesIterator.exists(cores))

  private def await(millis: Long, done: => Boolean): Boolean = {
    val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis)
    lock.synchronized {
      var left = deadline - System.nanoTime()
      while (!done && left > 0) {
        TimeUnit.NANOSECONDS.timedWait(lock, left)
        left = deadline - System.nanoTime()
      }
      done
    }
  }

  private[exec] def commit(order: StoreOrder)(work: => Unit): Unit = {
    lock.synchronized(committing(order.entry) = order.core)
    later {
      try work
      finally lock.synchronized(committing -= order.entry)
    }
  }

  private[exec] def later(work: => Unit): Unit = {
    lock.synchronized(pending += 1)
    thread.execute { () =>
      try work
      catch { case Failures(error) => logWarning("Work on the store failed", error) }
      finally lock.synchronized {
          pending -= 1
          lock.notifyAll()
        }
    }
  }
}
