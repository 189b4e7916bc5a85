package org.apache.spark.sql.regions.platforms

import org.apache.spark.sql.regions.{BoundedMap, Refusal, wire}
import org.apache.spark.sql.types.StructType

/**
 * What a statement is asked for.
 *
 * @param query number of the plan that `node` is of
 * @param schema of its result
 * @param tied whether its last column tells of each row if Spark may have the next one in its place
 * @param limit how many of its rows count; there may be one more, to be compared with
 */
private[regions] final case class Asked(
    query: Long,
    node: Int,
    platform: String,
    statement: wire.RunStatement,
    schema: StructType,
    tied: Boolean,
    limit: Option[Long])

/** The engine of an application, and what it was asked for, until the planner is told. */
private[regions] final class Engines(client: EngineClient) {
  private val asked = BoundedMap[Long, Seq[wire.RanRoute]](1000)

  /** Why there will be none any more, if so. */
  def refusal: Option[Refusal] = client.refusal

  def isUp: Boolean = client.isUp
  def prepare(): Unit = client.prepare()

  def rows(of: Asked): Either[Refusal, EngineRows] = {
    val began = System.nanoTime()
    val found = client.run(of.statement, of.schema).filterOrElse(
      !Engines.tied(_, of), Refusal("TIED", of.limit.fold("")(_.toString)))
    val ran = wire.RanRoute(of.query, of.node, of.platform, (System.nanoTime() - began) / 1e9)
    val told = found match {
      case Right(rows) =>
        ran.copy(startSeconds = rows.startSeconds, rows = Engines.counted(rows, of), bytes = rows.bytes)
      case Left(why) => ran.copy(refusal = Some(wire.Why(why.code, why.detail)))
    }
    asked.merge(of.query, Seq(told), (before, more) => before ++ more)
    found
  }

  /** What was asked for parts of a query, which is told once. */
  def taken(queries: Seq[Long]): Seq[wire.RanRoute] =
    queries.distinct.flatMap(query => Option(asked.remove(query)).getOrElse(Nil))

  def close(): Unit = client.close()
}

private object Engines {
  private def counted(rows: EngineRows, of: Asked): Long = math.min(rows.rows, of.limit.getOrElse(Long.MaxValue))

  /** Whether Spark may have another row at the end, or rows with equal keys the other way round. */
  private def tied(rows: EngineRows, of: Asked): Boolean = of.tied && {
    val flag = rows.schema.size - 1
    EngineRows.decode(rows.batches.iterator, rows.schema).take(counted(rows, of).toInt).exists(_.getBoolean(flag))
  }
}
