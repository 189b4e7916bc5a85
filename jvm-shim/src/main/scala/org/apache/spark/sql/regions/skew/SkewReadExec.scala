package org.apache.spark.sql.regions.skew

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression}
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, UnknownPartitioning}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.regions.{Guard, KeyFrequency}

/**
 * What a task reads of one shuffle partition: all of it, the blocks of some map tasks, or of all blocks every n-th row.
 *
 * @param maps half-open
 * @param roundRobin (i, n): the rows at positions i, i + n, … of each block
 */
final case class SliceRead(partition: Int, maps: Option[(Int, Int)] = None, roundRobin: Option[(Int, Int)] = None) {
  def isWhole: Boolean = maps.isEmpty && roundRobin.isEmpty
}

/** What is known of the heaviest keys of a shuffle. */
sealed trait HeavyKeys

/** From an earlier run on the same rows. */
final case class KnownKeys(shares: Seq[KeyFrequency]) extends HeavyKeys

/**
 * @param rows of the whole shuffle
 * @param counts of sampled rows of some partitions, complete when the stage is
 */
final case class SampledKeys(keys: Seq[Expression], rows: Long, counts: KeyAccumulator) extends HeavyKeys

/** A read that is about to run. */
final case class SkewRun(rdd: Int, keys: Option[HeavyKeys])

/** Reads a written shuffle by `tasks`, in the order of their start; Spark's own read knows ranges of neighbours only. */
final case class SkewReadExec(child: SparkPlan, tasks: Seq[Seq[SliceRead]]) extends UnaryExecNode {
  require(tasks.nonEmpty && tasks.forall(_.nonEmpty), "every task reads something")

  override def output: Seq[Attribute] = child.output
  override def supportsColumnar: Boolean = false

  override lazy val outputPartitioning: Partitioning = child.outputPartitioning match {
    case hash: HashPartitioning if once && tasks.forall(_.forall(_.isWhole)) =>
      PackedPartitioning(hash, tasks.map(_.map(_.partition)))
    case _ => UnknownPartitioning(tasks.length)
  }

  /** Beside slices of another input, a whole partition is read by several tasks. */
  private def once: Boolean = {
    val partitions = tasks.flatten.map(_.partition)
    partitions.distinct.length == partitions.length
  }

  @transient override lazy val metrics: Map[String, SQLMetric] = Map(
    "numPartitions" -> SQLMetrics.createMetric(sparkContext, "number of partitions"),
    "numSkewedPartitions" -> SQLMetrics.createMetric(sparkContext, "number of skewed partitions"),
    "numSkewedSplits" -> SQLMetrics.createMetric(sparkContext, "number of skewed partition splits")
  )

  private def slices: Seq[SliceRead] = tasks.flatten.filterNot(_.isWhole)

  override protected def doExecute(): RDD[InternalRow] = child match {
    case stage: ShuffleQueryStageExec =>
      report()
      val heavy = getTagValue(SkewReadExec.sampled).getOrElse(Set.empty[Int])
      val specs = Array.newBuilder[ShufflePartitionSpec]
      var count = 0
      val blocks = tasks.map(
        _.flatMap { slice =>
          ShuffleSizes.specs(slice, stage.shuffle.numMappers).map { spec =>
            specs += spec
            count += 1
            Block(count - 1, slice.roundRobin, heavy(slice.partition))
          }
        }.toArray)
      val read = stage.shuffle.getShuffleRDD(specs.result()).asInstanceOf[RDD[InternalRow]]
      val keys = if (heavy.isEmpty) None else sample
      val rdd = new SlicesRDD(read, blocks.toArray, keys.map(_._1))
      getTagValue(SkewReadExec.onRun).foreach { told =>
        val known = getTagValue(SkewReadExec.known).map(KnownKeys(_))
        Guard.run(sparkContext.conf, "a note on a stage")(told(SkewRun(rdd.id, known.orElse(keys.map(_._2)))))
      }
      rdd
    case other => throw new IllegalStateException(s"a skew read of ${other.nodeName}, expected a query stage")
  }

  /** Counts keys as the shuffle had them. */
  private def sample: Option[(KeySampler, SampledKeys)] =
    (child, child.outputPartitioning) match {
      case (stage: ShuffleQueryStageExec, HashPartitioning(keys, _)) =>
        new ShuffleSizes(stage).rows.map { rows =>
          val counts = new KeyAccumulator
          sparkContext.register(counts)
          val bound = BindReferences.bindReferences(keys, output)
          (new KeySampler(bound, counts), SampledKeys(keys, rows, counts))
        }
      case _ => None
    }

  private def report(): Unit = {
    val counts = Seq(
      "numPartitions" -> tasks.length,
      "numSkewedPartitions" -> slices.map(_.partition).distinct.length,
      "numSkewedSplits" -> slices.length)
    val updates = counts.map { case (name, count) =>
      metrics(name).set(count)
      metrics(name).id -> count.toLong
    }
    val execution = sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricsUpdatedByValue(sparkContext, execution, updates)
  }

  override def stringArgs: Iterator[Any] = {
    val split = slices
    val text = if (split.isEmpty) "" else s", ${split.map(_.partition).distinct.length} split into ${split.length}"
    Iterator(s"${tasks.flatten.map(_.partition).distinct.length} partitions in ${tasks.length} tasks$text")
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SkewReadExec = copy(child = newChild)
}

object SkewReadExec {

  /** Told what runs. Adaptive execution may still drop a changed stage; what was decided counts once it runs. */
  val onRun: TreeNodeTag[SkewRun => Unit] = TreeNodeTag[SkewRun => Unit]("spark_regions.skew.onRun")

  /** The heaviest keys, where they need not be counted. */
  val known: TreeNodeTag[Seq[KeyFrequency]] = TreeNodeTag[Seq[KeyFrequency]]("spark_regions.skew.known")

  /** Partitions whose keys are to be counted. */
  val sampled: TreeNodeTag[Set[Int]] = TreeNodeTag[Set[Int]]("spark_regions.skew.sampled")
}
