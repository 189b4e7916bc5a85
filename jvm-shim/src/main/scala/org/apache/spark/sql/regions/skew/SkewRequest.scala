package org.apache.spark.sql.regions.skew

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.MEMORY_FRACTION
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.{KeyFrequency, RegionsConf, wire}

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
      conf: SQLConf): wire.DecideSkew = {
    val salts = group.inputs.flatMap(UserSalt.of)
    val inputs = if (group.splittable) sizes.map(input(_, sizes, cores)) else Seq(together(sizes))
    val stage = wire.ReduceStage(
      group.operator,
      cores,
      inputs.head,
      inputs.lift(1),
      salted = salts.nonEmpty,
      residual = group.join.exists(_.condition.isDefined),
      hashable = group.join.exists(SplitJoin.hashable),
      sorts = group.path.head.exists(_.isInstanceOf[SortExec]),
      taskMemory = executorMemory(context) / tasksAtATime(context, cores),
      executorMemory = executorMemory(context),
      reshuffleBytes = if (group.splittable) reshuffled(group, sizes) else 0L
    )
    apply(query, deadlineMillis, conf, stage).copy(shape = key.shape, lineage = key.lineage)
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
      loads: Seq[TaskLoad]): wire.RanStage = {
    val all = together(sizes)
    val tasks = read.zip(loads).map { case (partitions, load) =>
      wire.RanTask(load.bytes, load.rows, load.millis / 1000.0, load.spilled, partitions)
    }
    wire.RanStage(key.shape, all.bytes, all.rows, tasks, key.lineage, query)
  }

  /** The `keys` event of docs/protocol.md. */
  def counted(query: Long, key: StageKey, operator: String, keys: Seq[KeyFrequency]): wire.CountedKeys =
    wire.CountedKeys(
      key.shape,
      operator,
      keys.map(each => wire.HeavyKey(each.key, each.share, each.error)),
      key.lineage,
      query)

  def apply(query: Long, deadlineMillis: Long, conf: SQLConf, stage: wire.ReduceStage): wire.DecideSkew =
    wire.DecideSkew(stage, adaptive(conf), query, conf.getConf(RegionsConf.skewStrategy), deadlineMillis / 1000.0)

  /** Blocks of those partitions that may be cut: an eighth of a core's fair share is the smallest task that is tried. */
  private def input(sizes: ShuffleSizes, all: Seq[ShuffleSizes], cores: Int): wire.ShuffleRead = {
    def large(of: ShuffleSizes => Array[Long]): Set[Int] = {
      val (own, least) = (of(sizes), all.map(of(_).sum).sum / (8L * cores))
      own.indices.filter(own(_) > least).toSet
    }
    val cut = (large(_.bytes) ++ large(_.rowsByPartition)).toSeq.sortBy(-sizes.weights(_))
    val blocks = cut.take(blocksTold / math.max(sizes.maps, 1))
      .flatMap(at => sizes.blocks(at).map(blocks => at.toString -> blocks.toSeq))
    wire.ShuffleRead(
      sizes.bytes.toSeq,
      sizes.rowsByPartition.toSeq,
      sizes.maps,
      sizes.dataBytes,
      blocks.toMap,
      sizes.repeatable)
  }

  private def together(sizes: Seq[ShuffleSizes]): wire.ShuffleRead = {
    def sum(parts: Seq[Array[Long]]): Seq[Long] = parts.transpose.map(_.sum)
    wire.ShuffleRead(
      sum(sizes.map(_.bytes)),
      sum(sizes.map(_.rowsByPartition)),
      sizes.map(_.maps).max,
      sizes.map(_.dataBytes).sum)
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
  private def adaptive(conf: SQLConf): wire.AdaptiveSizes = {
    val coalesces = conf.coalesceShufflePartitionsEnabled
    wire.AdaptiveSizes(
      if (coalesces) conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES) else 0L,
      if (coalesces) conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE) else 0L,
      conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST)
    )
  }
}
