package org.apache.spark.sql.regions.control.badrows

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerJobEnd}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, EqualTo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan}
import org.apache.spark.sql.execution.datasources.{DataSource, LogicalRelation}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.control.ControlDriver
import org.apache.spark.sql.regions.{BoundedMap, Guard, RegionsConf, RegionsRuntime}
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.util.{CollectionAccumulator, SerializableConfiguration}

/** The rows of an application that failed: how many of each query, and where those are that are kept. */
final class BadRows(sc: SparkContext) extends Logging {
  private val operators = new AtomicLong()
  private val known = BoundedMap[Long, mutable.Map[Place, Found]](BadRows.mostQueries)
  private val claimed = BoundedMap[Long, mutable.Map[Place, Int]](BadRows.mostQueries)
  private val exchanges = BoundedMap[String, mutable.Map[SparkPlan, mutable.ArrayBuffer[Long]]](BadRows.mostQueries)
  private val declined = mutable.Set.empty[String]
  private val folders = mutable.Set.empty[String]

  /** Spark adds what a task has found if the task ends well, and before anybody is told that the job has. */
  private lazy val found: CollectionAccumulator[Found] = {
    val created = new CollectionAccumulator[Found]
    sc.register(created)
    sc.addSparkListener(
      new SparkListener {
        override def onJobEnd(end: SparkListenerJobEnd): Unit = Guard.run(sc.conf, "the quarantine")(publish())
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case end: SparkListenerSQLExecutionEnd => exchanges.remove(end.executionId.toString)
          case _ =>
        }
      })
    sc.env.rpcEnv.setupEndpoint(BadRows.endpoint, new Endpoint(sc.env.rpcEnv))
    used = true
    created
  }
  @volatile private var used = false
  private lazy val conf = sc.broadcast(new SerializableConfiguration(sc.hadoopConfiguration))

  /** A number for one more operator. */
  def operator(): Long = operators.incrementAndGet()

  /**
   * Numbers of operators below of an exchange, and of each that equals it in the same query.
   *
   * @param planned those of a plan that is made before its query runs
   */
  def below(
      exchange: SparkPlan,
      planned: mutable.Map[SparkPlan, mutable.ArrayBuffer[Long]]): mutable.ArrayBuffer[Long] = {
    val known = Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
      .fold(planned)(exchanges.computeIfAbsent(_, _ => mutable.Map.empty))
    known.synchronized(known.getOrElseUpdate(exchange.canonicalized, mutable.ArrayBuffer.empty))
  }

  def sink(
      operator: Long,
      name: String,
      policy: BadRowPolicy,
      input: Seq[Attribute],
      shown: Seq[Attribute],
      sql: SQLConf): BadRowSink = {
    val positions = shown.filter(a => Cast.canCast(a.dataType, StringType))
      .map(a => input.indexWhere(_.exprId == a.exprId)).filter(_ >= 0)
    val columns = positions.map(i => input(i).name -> input(i).dataType)
    new BadRowSink(operator, name, columns, positions, positions.map(input), sql.sessionLocalTimeZone, sc.applicationId,
      policy, conf, found)
  }

  /**
   * A folder that cannot be written is told of before a query runs, not with its first bad row; so is that nobody can
   * be asked.
   */
  def ready(policy: BadRowPolicy): Unit = {
    if (policy.asks) ControlDriver.unasked(sc).foreach(why => throw new SparkException(why))
    if (policy.keeps) writable(policy)
  }

  private def writable(policy: BadRowPolicy): Unit = folders.synchronized {
    if (!folders(policy.folder)) {
      val path = pending(policy.folder)
      val made =
        try path.getFileSystem(sc.hadoopConfiguration).mkdirs(path)
        catch { case NonFatal(error) => throw BadRowSink.unwritable(policy.folder, "that can be written", error) }
      if (!made) throw BadRowSink.unwritable(policy.folder, "that can be written", null)
      folders += policy.folder
    }
  }

  private def pending(folder: String) = new Path(s"$folder/${BadRowSink.pendingFolder}")

  /** Rows that failed in tasks which ended well, in all queries. */
  def count: Long = if (!used) 0
  else {
    publish()
    known.synchronized(known.values.asScala.flatMap(_.values).map(_.rows.toLong).sum)
  }

  /**
   * Moves the files of tasks that ended well to where they count. A partition that was computed again has its rows in one
   * file still, that of the latest attempt.
   */
  def publish(): Unit = if (used) synchronized {
    val fresh = found.synchronized {
      val all = found.value.asScala.toSeq
      found.reset()
      all
    }
    fresh.foreach { one =>
      val query = known.computeIfAbsent(one.at.execution, _ => mutable.Map.empty)
      val before = known.synchronized(query.put(one.at, one))
      before.filter(_.pending.nonEmpty).foreach(old => system(old.pending).delete(BadRows.kept(old.pending), false))
      if (one.pending.nonEmpty) {
        val to = BadRows.kept(one.pending)
        if (!system(one.pending).rename(new Path(one.pending), to)) {
          logWarning(s"spark_regions: ${one.rows} bad rows stay in ${one.pending}, which cannot be moved to $to")
        }
      }
    }
  }

  private def system(path: String) = new Path(path).getFileSystem(sc.hadoopConfiguration)

  /** Said once of each kind of operator. */
  def decline(operator: String, why: String): Unit = declined.synchronized {
    if (declined.add(s"$operator: $why")) {
      logWarning(s"spark_regions: ${RegionsConf.onBadRow.key} does not count for $operator: $why")
    }
  }

  /** Copies of tasks that ended well, too, but second, have left their files. */
  def close(): Unit = {
    publish()
    folders.synchronized(folders.toSeq).map(pending).foreach { folder =>
      val files = folder.getFileSystem(sc.hadoopConfiguration)
      Option(files.globStatus(new Path(folder, s"${sc.applicationId}-*"))).toSeq.flatten
        .foreach(left => files.delete(left.getPath, false))
    }
  }

  private final class Endpoint(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint {

    /**
     * Before a task attempt ends well it asks how many rows of its query are bad, with its own. A tuple, since the classes of a jar
     * that came later are not known to Spark's own threads.
     */
    override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
      case (execution: Long, operator: Long, partition: Int, rows: Int) =>
        val query = claimed.computeIfAbsent(execution, _ => mutable.Map.empty)
        query(Place(execution, operator, partition)) = rows
        context.reply(query.values.map(_.toLong).sum)
    }
  }
}

object BadRows {
  private[badrows] val endpoint = "spark-regions-bad-rows"
  private val mostQueries = 10000

  /** Not before it is asked for: the parser takes a second of a start. */
  private lazy val schema = StructType.fromDDL(
    "application STRING, query LONG, stage INT, partition INT, attempt LONG, operator STRING, function STRING, " +
      "error STRING, condition STRING, trace STRING, row MAP<STRING, STRING>, arguments MAP<STRING, STRING>, " +
      "file STRING, block LONG, milliseconds LONG")

  private def kept(pending: String): Path = {
    val path = new Path(pending)
    new Path(path.getParent.getParent, path.getName)
  }

  def policy(sc: SparkContext, conf: SQLConf): BadRowPolicy = BadRowPolicy(
    conf.getConf(RegionsConf.onBadRow), conf.getConf(RegionsConf.maxBadRows), conf.getConf(RegionsConf.splitBatches),
    folder(sc, conf))

  /** Whether a session's queries may give other rows than plain Spark, which then are nobody else's. */
  def handled(conf: SQLConf): Boolean = conf.getConf(RegionsConf.onBadRow) != "fail"

  private def folder(sc: SparkContext, conf: SQLConf): String = conf.getConf(RegionsConf.quarantinePath) match {
    case "" =>
      val namespace = Some(conf.getConf(RegionsConf.recycleNamespace)).filter(_.nonEmpty).getOrElse(sc.sparkUser)
      s"${RegionsRuntime.storeDir(sc)}/bad_rows/${URLEncoder.encode(namespace, UTF_8)}"
    case given => given.stripSuffix("/")
  }

  /** The rows of this application in a session's quarantine, as a plan. */
  def table(session: SparkSession): LogicalPlan = {
    RegionsRuntime.of(session).foreach(_.badRows.publish())
    val path = new Path(folder(session.sparkContext, session.sessionState.conf))
    if (!path.getFileSystem(session.sessionState.newHadoopConf()).exists(path))
      LocalRelation(DataTypeUtils.toAttributes(schema))
    else {
      // Made without the analyzer, which is at work already.
      val source = DataSource(session, "json", paths = Seq(path.toString), userSpecifiedSchema = Some(schema))
      val relation = LogicalRelation(source.resolveRelation(), isStreaming = false)
      Filter(EqualTo(relation.output.head, Literal(session.sparkContext.applicationId)), relation)
    }
  }
}
