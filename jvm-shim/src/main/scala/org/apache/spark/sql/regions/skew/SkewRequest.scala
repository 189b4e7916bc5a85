package org.apache.spark.sql.regions.skew

import java.util.{HashMap => JMap, Map => JavaMap}

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.MEMORY_FRACTION
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{KeyFrequency, RegionsConf}

/** The `skew` message of docs/protocol.md. */
private[skew] object SkewRequest {

  /** Of partitions beyond, the blocks are taken for alike: a message is to be read within the deadline. */
  private val blocksTold = 100000

  /** As Spark's memory manager sets aside. */
  private val reservedBytes = 300L << 20

  def apply(
      group: ReduceGroup,
      key: StageKey,
      sizes: Seq[ShuffleSizes],
      query: Long,
      context: SparkContext,
      cores: Int,
      deadlineMillis: Long,
      conf: SQLConf): JavaMap[String, Any] = {
    val salts = group.inputs.flatMap(UserSalt.of)
    val inputs = if (group.splittable) sizes.map(input(_, sizes, cores)) else Seq(together(sizes))
    val request = apply(
      query,
      deadlineMillis,
      conf,
      "operator" -> group.operator,
      "cores" -> cores,
      "salted" -> salts.nonEmpty,
      "residual" -> group.join.exists(_.condition.isDefined),
      "hashable" -> group.join.exists(SplitJoin.hashable),
      "sorts" -> group.path.head.exists(_.isInstanceOf[SortExec]),
      "taskMemory" -> executorMemory(context) / tasksAtATime(context, cores),
      "executorMemory" -> executorMemory(context),
      "reshuffleBytes" -> (if (group.splittable) reshuffled(group, sizes) else 0L),
      "left" -> inputs.head,
      "right" -> inputs.lift(1).orNull
    )
    request.put("shape", key.shape)
    request.put("lineage", key.lineage.orNull)
    request
  }

  /**
   * The `stage` event of docs/protocol.md.
   *
   * @param read partitions of each task; none where it did not read whole ones
   */
  def ran(
      query: Long,
      key: StageKey,
      sizes: Seq[ShuffleSizes],
      read: Seq[Seq[Int]],
      loads: Seq[TaskLoad]): JavaMap[String, Any] = {
    val all = together(sizes)
    record(
      "type" -> "observe",
      "event" -> "stage",
      "query" -> query,
      "shape" -> key.shape,
      "lineage" -> key.lineage.orNull,
      "bytes" -> all.get("bytes"),
      "rows" -> all.get("rows"),
      "tasks" -> read.zip(loads).map { case (partitions, load) =>
        record(
          "partitions" -> partitions,
          "bytes" -> load.bytes,
          "rows" -> load.rows,
          "seconds" -> load.millis / 1000.0,
          "spilled" -> load.spilled
        )
      }
    )
  }

  /** The `keys` event of docs/protocol.md. */
  def counted(query: Long, key: StageKey, operator: String, keys: Seq[KeyFrequency]): JavaMap[String, Any] = record(
    "type" -> "observe",
    "event" -> "keys",
    "query" -> query,
    "shape" -> key.shape,
    "lineage" -> key.lineage.orNull,
    "operator" -> operator,
    "keys" -> keys.map(each => record("key" -> each.key, "share" -> each.share, "error" -> each.error))
  )

  def apply(query: Long, deadlineMillis: Long, conf: SQLConf, stage: (String, Any)*): JavaMap[String, Any] = record(
    "type" -> "skew",
    "query" -> query,
    "strategy" -> conf.getConf(RegionsConf.skewStrategy),
    "deadlineSeconds" -> deadlineMillis / 1000.0,
    "adaptive" -> adaptive(conf),
    "stage" -> record(stage: _*)
  )

  /** Blocks of those partitions that may be cut: an eighth of a core's fair share is the smallest task that is tried. */
  private def input(sizes: ShuffleSizes, all: Seq[ShuffleSizes], cores: Int): JavaMap[String, Any] = {
    def large(of: ShuffleSizes => Array[Long]): Set[Int] = {
      val (own, least) = (of(sizes), all.map(of(_).sum).sum / (8L * cores))
      own.indices.filter(own(_) > least).toSet
    }
    val cut = (large(_.bytes) ++ large(_.rowsByPartition)).toSeq.sortBy(-sizes.weights(_))
    val blocks = cut.take(blocksTold / math.max(sizes.maps, 1)).flatMap(at => sizes.blocks(at).map(at.toString -> _))
    record(
      "bytes" -> sizes.bytes,
      "rows" -> sizes.rowsByPartition,
      "maps" -> sizes.maps,
      "dataBytes" -> sizes.dataBytes,
      "blocks" -> blocks.toMap,
      "repeatable" -> sizes.repeatable
    )
  }

  private def together(sizes: Seq[ShuffleSizes]): JavaMap[String, Any] = {
    def sum(parts: Seq[Array[Long]]): Array[Long] = parts.transpose.map(_.sum).toArray
    record(
      "bytes" -> sum(sizes.map(_.bytes)),
      "rows" -> sum(sizes.map(_.rowsByPartition)),
      "maps" -> sizes.map(_.maps).max,
      "dataBytes" -> sizes.map(_.dataBytes).sum)
  }

  /** What an exchange above would move: all rows, or the states of groups. A light partition may have a group a row. */
  private def reshuffled(group: ReduceGroup, sizes: Seq[ShuffleSizes]): Long = {
    val together = sizes.map(_.bytes).transpose.map(_.sum)
    if (group.reliant.isEmpty) 0L
    else if (!group.reliesForStates) together.sum
    else {
      val usual = together.sorted.apply(together.length / 2)
      together.map(math.min(_, usual)).sum
    }
  }

  /** Bytes that a task can hold before it spills, while it is alone; of several, each has its part. */
  private def executorMemory(context: SparkContext): Long = {
    val heap = if (context.isLocal) Runtime.getRuntime.maxMemory else context.executorMemory.toLong << 20
    math.max(((heap - reservedBytes) * context.conf.get(MEMORY_FRACTION)).toLong, 0L)
  }

  /** Of one executor. */
  private def tasksAtATime(context: SparkContext, cores: Int): Int =
    math.max(cores / math.max(context.getExecutorMemoryStatus.size - 1, 1), 1)

  /** Where Spark does not coalesce, the sizes at which it does are 0. */
  private def adaptive(conf: SQLConf): JavaMap[String, Any] = {
    val coalesces = conf.coalesceShufflePartitionsEnabled
    record(
      "advisoryBytes" -> (if (coalesces) conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES) else 0L),
      "minBytes" -> (if (coalesces) conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE) else 0L),
      "parallelismFirst" -> conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST)
    )
  }

  def record(fields: (String, Any)*): JMap[String, Any] = {
    val map = new JMap[String, Any](fields.size * 2)
    fields.foreach { case (key, value) => map.put(key, value) }
    map
  }
}
