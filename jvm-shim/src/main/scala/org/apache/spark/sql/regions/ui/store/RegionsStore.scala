package org.apache.spark.sql.regions.ui.store

import scala.reflect.ClassTag

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.status.KVUtils
import org.apache.spark.util.kvstore.KVStore

/** Reads what [[RegionsStatusListener]] kept. */
final class RegionsStore(store: KVStore) {
  import RegionsStore._

  def query(number: Long): Option[QueryRecord] = read[QueryRecord](number)

  /** The newest first. */
  def queries(limit: Int): Seq[QueryRecord] =
    KVUtils.viewToSeq(store.view(classOf[QueryRecord]).reverse().max(limit))

  /** The queries of each execution, the newest first; a query without one stands alone. */
  def executions: Seq[(Long, Seq[QueryRecord])] = {
    val all = queries(Int.MaxValue)
    def owner(q: QueryRecord): (Long, Long) = (q.executionId, if (q.executionId >= 0) -1L else q.query)
    val ofOne = all.groupBy(owner)
    all.map(owner).distinct.map(key => key._1 -> ofOne(key))
  }

  def queryCount: Long = store.count(classOf[QueryRecord])

  /** The queries of one SQL execution, in the order of their planning. */
  def ofExecution(execution: Long): Seq[QueryRecord] =
    KVUtils.viewToSeq(store.view(classOf[QueryRecord]).index("execution").first(execution).last(execution))
      .sortBy(_.query)

  def entry(name: String): Option[EntryRecord] = read[EntryRecord](name)

  def entries: Seq[EntryRecord] = KVUtils.viewToSeq(store.view(classOf[EntryRecord]))

  def exploration(number: Long): Option[ExplorationRecord] = read[ExplorationRecord](number)

  /** The newest first. */
  def explorations: Seq[ExplorationRecord] = KVUtils.viewToSeq(store.view(classOf[ExplorationRecord]).reverse())

  /** The newest first. */
  def lost: Seq[RegressionRecord] = KVUtils.viewToSeq(store.view(classOf[RegressionRecord]).index("time").reverse())

  def regression(id: String): Option[RegressionRecord] = read[RegressionRecord](id)

  def lossCount: Int = store.count(classOf[RegressionRecord]).toInt

  def state: JsonNode = Packed.open(read[StateRecord](only).map(_.body).orNull)

  def totals: TotalsRecord = read[TotalsRecord](only).getOrElse(TotalsRecord(only))

  /** Whether the application ever ran with the plugin. */
  def isEmpty: Boolean = read[StateRecord](only).isEmpty && queryCount == 0

  private def read[T: ClassTag](key: Any): Option[T] =
    try Some(store.read(implicitly[ClassTag[T]].runtimeClass.asInstanceOf[Class[T]], key))
    catch { case _: NoSuchElementException => None }
}

private[store] object RegionsStore {

  /** Of records of which there is one. */
  val only = "only"

  def key(record: Any): Any = record match {
    case query: QueryRecord => query.query
    case entry: EntryRecord => entry.entry
    case exploration: ExplorationRecord => exploration.exploration
    case loss: RegressionRecord => loss.id
    case other => throw new IllegalArgumentException(s"unexpected record ${other.getClass.getName}")
  }
}
