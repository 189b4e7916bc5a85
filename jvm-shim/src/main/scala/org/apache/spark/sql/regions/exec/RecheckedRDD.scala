package org.apache.spark.sql.regions.exec

import scala.reflect.ClassTag

import org.apache.spark.{Dependency, NarrowDependency, Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD

/**
 * Stands before an RDD that another one can replace between two actions. Spark keeps the RDDs of an executed plan, so a
 * second action on the same DataFrame never asks the plan again; and parents keep our partitions, so their number is
 * fixed by the first action and the replacement's partitions are shared out over it in order.
 *
 * @param produce the RDD to use now; the same object as long as nothing changed
 */
private[exec] final class RecheckedRDD[T: ClassTag](sc: SparkContext, @transient private val produce: () => RDD[T])
    extends RDD[T](sc, Nil) {
  private var current: RDD[T] = produce()

  // At least one, since a replacement can have rows where there were none.
  @transient private val slots: Array[Slot] =
    Array.tabulate(math.max(1, current.partitions.length))(index => new Slot(index))
  shareOut()

  /** Asks again which RDD to use. On the driver, between actions. */
  def recheck(): Unit = {
    val next = produce()
    if (next ne current) {
      current = next
      shareOut()
      clearDependencies()
    }
  }

  private def shareOut(): Unit = {
    val all = current.partitions
    val n = slots.length.toLong
    slots.foreach { slot =>
      slot.group = all.slice((slot.index * all.length / n).toInt, ((slot.index + 1) * all.length / n).toInt)
    }
  }

  override protected def getPartitions: Array[Partition] = slots.toArray[Partition]

  override protected def getDependencies: Seq[Dependency[_]] = {
    val groups = slots.map(_.group.map(_.index).toSeq)
    Seq(
      new NarrowDependency[T](current) {
        override def getParents(partitionId: Int): Seq[Int] = groups(partitionId)
      })
  }

  override def compute(split: Partition, context: TaskContext): Iterator[T] =
    split.asInstanceOf[Slot].group match {
      case Array(only) => current.iterator(only, context)
      case many => many.iterator.flatMap(current.iterator(_, context))
    }
}

private final class Slot(override val index: Int) extends Partition {
  @volatile var group: Array[Partition] = Array.empty
}
