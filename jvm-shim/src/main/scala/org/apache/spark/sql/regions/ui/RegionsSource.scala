package org.apache.spark.sql.regions.ui

import java.util.concurrent.TimeUnit

import com.codahale.metrics.{Gauge, MetricRegistry, Timer}

import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.regions.Counters
import org.apache.spark.sql.regions.ui.events.{Savings, StateReport}

/** What Spark's metrics system reports of us, to whatever sinks it has; see docs/ui.md for the names. */
final class RegionsSource(counters: Counters, savings: Savings, state: StateReport, dropped: () => Long)
    extends Source {
  override val sourceName: String = "spark_regions"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  /** Of each query: what deciding on it added to its planning. */
  private val planning: Timer = metricRegistry.timer("planningTime")

  def planned(millis: Double): Unit = planning.update((millis * 1e6).toLong, TimeUnit.NANOSECONDS)

  gauge("hits")(savings.reads)
  Counters.names.foreach(name => gauge(name)(counters(name)))
  gauge("bytesHeld")(state.bytesHeld)
  gauge("entriesHeld")(state.entriesHeld)
  gauge("evictions")(state.evictions)
  gauge("plannerRestarts")(state.plannerRestarts.toLong)
  gauge("eventsDropped")(dropped())
  gauge("predictedSavingSeconds")(savings.predictedSeconds)
  gauge("measuredSavingSeconds")(savings.measuredSeconds)
  gauge("estimatedSavingSeconds")(savings.estimatedSeconds)

  private def gauge[T](name: String)(value: => T): Unit =
    metricRegistry.register[Gauge[T]](name, () => value)
}
