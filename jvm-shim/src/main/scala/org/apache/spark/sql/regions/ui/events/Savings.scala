package org.apache.spark.sql.regions.ui.events

import java.util.concurrent.atomic.{DoubleAdder, LongAdder}

import scala.collection.mutable

import org.apache.spark.sql.regions.Decision

/** Seconds that were predicted to be saved by reading kept results, against those that were. Thread-safe. */
final class Savings(parallelism: () => Int, limit: Int = 1000) {
  private case class Load(predicted: Double, instead: Double)
  private val open = mutable.LinkedHashMap.empty[Long, Map[String, Load]]
  private val predictedSum = new DoubleAdder
  private val measuredSum = new DoubleAdder
  private val measuredCount = new LongAdder

  def predictedSeconds: Double = predictedSum.sum()
  def measuredSeconds: Double = measuredSum.sum()

  /** Reads that `measuredSeconds` is the sum of. */
  def measuredReads: Long = measuredCount.sum()

  def decided(decision: Decision): Unit = {
    val applied = decision.actions.filter(_.refusal.isEmpty)
    applied.filter(a => Savings.reads(a.kind)).foreach(a => predictedSum.add(math.max(0, a.savingSeconds)))
    val loads = applied.filter(_.kind == "load").map(a => a.entry -> Load(a.savingSeconds, a.insteadSeconds)).toMap
    if (loads.nonEmpty) synchronized {
      open(decision.query) = loads
      if (open.size > limit) open.remove(open.head._1)
    }
  }

  /** (predicted, measured) of a load that took so many task-seconds; None where unknown. Each load once. */
  def measured(query: Long)(entry: String, taskSeconds: Option[Double]): (Option[Double], Option[Double]) =
    synchronized(open.get(query).flatMap(_.get(entry))) match {
      case None => (None, None)
      case Some(load) =>
        val saved = taskSeconds.filter(_ => load.instead >= 0).map(load.instead - _ / math.max(1, parallelism()))
        saved.foreach { seconds =>
          measuredSum.add(seconds)
          measuredCount.increment()
        }
        (Some(load.predicted), saved)
    }

  def ended(query: Long): Unit = synchronized(open.remove(query))
}

object Savings {

  /** Actions that spare the query work; a store pays off later. */
  def reads(kind: String): Boolean = kind == "load" || kind == "recall" || kind == "share"
}
