package org.apache.spark.sql.regions.ui.events

import com.fasterxml.jackson.annotation.JsonIgnoreProperties
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.scheduler.SparkListenerEvent

// What lands in the event log. Parts are JSON trees instead of classes: a log of another version of the shim must
// replay, and Spark ends the replay of a whole log at the first event that it cannot bind to its class.

/**
 * What was decided on a query before it ran, or (`topic` skew, or an empty session) what turned out while it ran.
 *
 * @param executionId Spark's number of the SQL execution, -1 while unknown: planning can precede its start
 * @param time milliseconds since the epoch
 * @param decision as `explain` shows it with `spark.regions.explain.format=json`
 * @param nodes `[{id, operator, children, label, lineage}]` of the signed plan, the root first
 * @param truncated whether something was cut to keep the event small
 * @param sums [[Sums]], null where the plan has to run first
 */
@JsonIgnoreProperties(ignoreUnknown = true)
final case class SparkListenerRegionsDecided(
    query: Long,
    executionId: Long,
    time: Long,
    decision: JsonNode,
    nodes: JsonNode,
    truncated: Boolean,
    sums: JsonNode = null)
    extends SparkListenerEvent

/**
 * What a signed query did.
 *
 * @param outcome "ok" or "failed"
 * @param seconds of the execution
 * @param taskSeconds of all its tasks
 * @param nodes `[{id, rows, bytes, seconds}]`, seconds being task-seconds of the operator alone; null where unknown
 * @param loads `[{query, node, entry, seconds, rows, bytes, predicted, estimated}]`: each place that read, with the task-seconds of
 *   the read, and the seconds of saving that were predicted, and estimated afterwards, where known
 * @param queries numbers of all plans that ran in the execution: the query itself, then its subqueries
 * @param sums `[`[[Sums]]`]` of those that ran for the first time
 * @param saving [[MeasuredSaving]], null where there is no plain execution to compare with, or nothing spared the query work
 * @param statements `[`[[RanStatement]]`]` of the same
 */
@JsonIgnoreProperties(ignoreUnknown = true)
final case class SparkListenerRegionsRan(
    query: Long,
    executionId: Long,
    time: Long,
    outcome: String,
    seconds: Double,
    taskSeconds: Double,
    nodes: JsonNode,
    loads: JsonNode,
    queries: JsonNode,
    truncated: Boolean,
    sums: JsonNode = null,
    saving: JsonNode = null,
    statements: JsonNode = null)
    extends SparkListenerEvent

/**
 * What became of a kept result.
 *
 * @param state "committed", "abandoned", "invalid", "persisted" or "dropped"
 * @param seconds spent on writing it, over all tasks
 * @param code reason, empty where there is none to give
 */
@JsonIgnoreProperties(ignoreUnknown = true)
final case class SparkListenerRegionsEntry(
    entry: String,
    state: String,
    query: Long,
    time: Long,
    rows: Long,
    bytes: Long,
    files: Int,
    seconds: Double,
    code: String,
    detail: String)
    extends SparkListenerEvent

/**
 * How an exploration stands: what is told replaces what was told of the same branches before.
 *
 * @param exploration number of it in its Python process
 * @param facts `{function, select, shape, order, began, seconds, status, error, branches, states, best, parents}`: how many branches in each
 *   state, the best score so far, and the branches of other explorations, `[[exploration, branch]]`, that it goes on from
 * @param branches `[{branch, parameters, score, seconds, state, why, bytes}]`, those that have changed
 */
@JsonIgnoreProperties(ignoreUnknown = true)
final case class SparkListenerRegionsExploration(
    exploration: Long,
    time: Long,
    facts: JsonNode,
    branches: JsonNode,
    truncated: Boolean)
    extends SparkListenerEvent

/**
 * How things stand.
 *
 * @param confs every `spark.regions.*` key with its value, as an object
 * @param planner `{healthy, state, restarts, version, …}`
 * @param counters name to count
 * @param entries `[{entry, location, lineage, columns, rows, bytes, application, created, used, uses, benefit, …}]`, the last used first
 * @param graph `{nodes: [{lineage, operator, uses, seconds, rows, bytes}], edges: [[from, to]]}`, the most used first
 */
@JsonIgnoreProperties(ignoreUnknown = true)
final case class SparkListenerRegionsState(
    time: Long,
    mode: String,
    strategy: String,
    confs: JsonNode,
    planner: JsonNode,
    counters: JsonNode,
    entries: JsonNode,
    graph: JsonNode,
    truncated: Boolean)
    extends SparkListenerEvent
