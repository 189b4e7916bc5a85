package org.apache.spark.sql.regions.skew

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.regions.{Guard, Policy, RegionsConf}
import org.apache.spark.util.AccumulatorV2
import org.apache.spark.util.random.XORShiftRandom

/**
 * Has the rows counted, by a sample, that go to each partition of a shuffle which is about to be written. Spark itself
 * knows bytes only, and a heavy key is what compresses best: of narrow rows, the partition with most of them can be one
 * of the smallest.
 */
final class RowCountsRule(session: SparkSession) extends ColumnarRule {

  override val postColumnarTransitions: Rule[SparkPlan] = plan =>
    if (!RowCountsRule.counts(session)) plan
    else Guard(session.sparkContext.conf, "a count of rows", plan) {
      plan match {
        case exchange: ShuffleExchangeExec => RowCountsRule.partitioning(session, exchange).fold(plan) { hash =>
            val counted = RowCountsExec(exchange.child, hash)
            exchange.child.logicalLink.foreach(counted.setTagValue(SparkPlan.LOGICAL_PLAN_INHERITED_TAG, _))
            exchange.withNewChildren(Seq(counted))
          }
        case _ => plan
      }
    }
}

private object RowCountsRule {

  def counts(session: SparkSession): Boolean = {
    val conf = session.sessionState.conf
    conf.adaptiveExecutionEnabled && conf.getConf(RegionsConf.skewEnabled)
  }

  /** Of a shuffle whose partitions a skew decision could be about. What is small, nobody would ask about. */
  def partitioning(session: SparkSession, exchange: ShuffleExchangeExec): Option[HashPartitioning] = {
    val always = session.sessionState.conf.getConf(RegionsConf.skewStrategy) == "always"
    val least = if (always) 1L else Policy.skewBytesWorthAsking.toLong
    Some(exchange.outputPartitioning).collect {
      case hash: HashPartitioning
          if ReduceGroup.origins.contains(exchange.shuffleOrigin) && !exchange.child.supportsColumnar &&
            hash.numPartitions > 1 && hash.numPartitions <= SkewDecision.mostWatched &&
            hash.expressions.forall(ReduceGroup.repeats) &&
            exchange.child.logicalLink.forall(_.stats.sizeInBytes >= least) => hash
    }
  }
}

/** Passes on the rows of a map task, and counts by partition about every n-th of them. */
final case class RowCountsExec(child: SparkPlan, partitioning: HashPartitioning) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def supportsColumnar: Boolean = false
  override def nodeName: String = "RowCounts"
  override def stringArgs: Iterator[Any] = Iterator(s"of ${partitioning.numPartitions} partitions")
  override protected def doCanonicalize(): SparkPlan = child.canonicalized

  @transient private lazy val counts: CountAccumulator = {
    val found = new CountAccumulator
    sparkContext.register(found)
    found
  }

  /** Sampled rows of each partition; None before any map task has ended. */
  def sampled: Option[Array[Long]] = Some(counts.value).filter(_.nonEmpty)

  override protected def doExecute(): RDD[InternalRow] = {
    val id = BindReferences.bindReference(partitioning.partitionIdExpression: Expression, child.output)
    val sampler = new RowSampler(id, partitioning.numPartitions, counts)
    child.execute().mapPartitionsInternal(sampler.ofTask(_, TaskContext.get()))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): RowCountsExec = copy(child = newChild)
}

/** Sums by position; every task adds its counts once, when it ends. */
final class CountAccumulator(private var sums: Array[Long] = Array.empty)
    extends AccumulatorV2[Array[Long], Array[Long]] {
  override def isZero: Boolean = sums.isEmpty
  override def copy(): CountAccumulator = new CountAccumulator(sums)
  override def reset(): Unit = sums = Array.empty
  override def merge(other: AccumulatorV2[Array[Long], Array[Long]]): Unit = add(other.value)

  /** Of the same length each time. The value of before stays as it is: somebody may be reading it. */
  override def add(counts: Array[Long]): Unit =
    sums = if (sums.isEmpty) counts else if (counts.isEmpty) sums else sums.zip(counts).map { case (a, b) => a + b }

  override def value: Array[Long] = sums
}

private[skew] final class RowSampler(partition: Expression, partitions: Int, found: CountAccumulator)
    extends Serializable {

  def ofTask(rows: Iterator[InternalRow], context: TaskContext): Iterator[InternalRow] = {
    val counts = new Array[Long](partitions)
    val of = UnsafeProjection.create(Seq(partition))
    // Steps of one length would see rows that repeat at this length always alike.
    val chance = new XORShiftRandom(context.partitionId())
    def step(): Int = 1 + chance.nextInt(2 * RowSampler.every - 1)
    var left = step()
    context.addTaskCompletionListener[Unit](_ => found.add(counts))
    new Iterator[InternalRow] {
      override def hasNext: Boolean = rows.hasNext
      override def next(): InternalRow = {
        val row = rows.next()
        left -= 1
        if (left == 0) {
          counts(of(row).getInt(0)) += 1
          left = step()
        }
        row
      }
    }
  }
}

private[skew] object RowSampler {

  /** On average. */
  val every = 8
}
