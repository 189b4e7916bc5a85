package org.apache.spark.sql.regions.ui.store

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.util.zip.{GZIPInputStream, GZIPOutputStream}

import com.fasterxml.jackson.annotation.JsonIgnore
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.wire.Frames
import org.apache.spark.status.KVUtils.KVIndexParam
import org.apache.spark.util.kvstore.KVIndex

// What the tab keeps in the UI's store. The History Server may write these to disk as JSON. Large parts are
// compressed: a plan takes 30 kB as text, and a thousand of them are kept.

/**
 * One query.
 *
 * @param executionId Spark's number of its execution, -1 while unknown
 * @param partOf the query in whose execution this plan ran: itself, or that of which it is a subquery; -1 where it has not run, yet
 *   or at all
 * @param applied kinds of the actions that were applied, with how many of each
 * @param done those of them that stand at places that ran; sums of it are the sums of [[TotalsRecord]]
 * @param declined operators that were left alone, whether the plan ran or not
 * @param predicted seconds that were predicted to be saved where it ran
 * @param saved seconds that it saved, as measured against plain execution; NaN where that is not known
 * @param estimated seconds that its loads saved, where that was not measured; NaN where nothing is known
 * @param seconds of the execution, -1 until it ended
 * @param decisions list of what was decided and what turned out, packed
 * @param nodes of the plan, packed
 * @param ran measurements, packed
 */
final case class QueryRecord(
    @KVIndexParam query: Long,
    @KVIndexParam("execution") executionId: Long = -1,
    partOf: Long = -1,
    time: Long,
    planningMillis: Double = 0,
    operators: Int = 0,
    applied: Map[String, Int] = Map.empty,
    done: Map[String, Int] = Map.empty,
    declined: Int = 0,
    refusal: String = "",
    predicted: Double = 0,
    saved: Double = Double.NaN,
    estimated: Double = Double.NaN,
    outcome: String = "",
    seconds: Double = -1,
    taskSeconds: Double = 0,
    truncated: Boolean = false,
    decisions: Array[Byte] = null,
    nodes: Array[Byte] = null,
    ran: Array[Byte] = null) {

  /** A figure that is known when the query has ended. */
  private[ui] def ended(figure: QueryRecord => Double): Option[Double] = if (seconds < 0) None else Some(figure(this))
}

/**
 * One kept result, as the planner lists it (`facts`) and as this application met it.
 *
 * @param readers the last queries of this application that read it, the newest first
 * @param facts packed, null where it is not listed
 */
final case class EntryRecord(
    @KVIndexParam entry: String,
    state: String,
    time: Long,
    query: Long = -1,
    rows: Long = 0,
    bytes: Long = 0,
    files: Int = 0,
    seconds: Double = 0,
    code: String = "",
    detail: String = "",
    readers: Array[Long] = Array.empty,
    facts: Array[Byte] = null) {

  /** The first to go when there are too many. */
  @JsonIgnore @KVIndex("time")
  private def timeIndex: Long = time
}

/**
 * One exploration.
 *
 * @param bytes held for its branches
 * @param facts as they were told last, packed
 * @param branches the newest of each, in their order, packed
 */
final case class ExplorationRecord(
    @KVIndexParam exploration: Long,
    time: Long,
    truncated: Boolean = false,
    bytes: Long = 0,
    facts: Array[Byte] = null,
    branches: Array[Byte] = null)

/** A decision that did not bring what it promised. */
final case class RegressionRecord(
    @KVIndexParam id: String,
    query: Long,
    executionId: Long,
    time: Long,
    what: String = "",
    entry: String = "",
    operator: String = "",
    predicted: Double = Double.NaN,
    measured: Double = Double.NaN,
    code: String = "",
    detail: String = "") {

  @JsonIgnore @KVIndex("time")
  private def timeIndex: Long = time
}

/** The last state that was told, packed. */
final case class StateRecord(@KVIndexParam id: String, time: Long, body: Array[Byte])

/** Sums since the start, which outlive the queries that they are of. */
final case class TotalsRecord(
    @KVIndexParam id: String,
    queries: Int = 0,
    predicted: Double = 0,
    saved: Double = 0,
    choicesMeasured: Int = 0,
    estimated: Double = 0,
    loadsEstimated: Int = 0,
    actions: Map[String, Int] = Map.empty,
    declines: Map[String, Int] = Map.empty)

private[ui] object Packed {
  def apply(node: JsonNode): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    val gzip = new GZIPOutputStream(bytes)
    try gzip.write(Frames.json.writeValueAsBytes(node))
    finally gzip.close()
    bytes.toByteArray
  }

  def open(bytes: Array[Byte]): JsonNode =
    if (bytes == null) Frames.json.missingNode()
    else {
      val gzip = new GZIPInputStream(new ByteArrayInputStream(bytes))
      try Frames.json.readTree(gzip)
      finally gzip.close()
    }
}
