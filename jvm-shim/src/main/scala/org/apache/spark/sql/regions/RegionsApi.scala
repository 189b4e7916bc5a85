package org.apache.spark.sql.regions

import java.util.{LinkedHashMap => JLinkedMap}
import java.util.concurrent.TimeoutException

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.ScalaUDF
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.regions.control.ControlDriver
import org.apache.spark.sql.regions.rules.{Batch, WhyNot}
import org.apache.spark.sql.regions.wire.Frames

/** What Python calls through py4j: strings in, JSON out. */
object RegionsApi extends Logging {
  private val listenersMillis = 1000L

  /** `{"active":"true","reason":"",…}`, the rows of `spark_regions_status()`. */
  def status(session: SparkSession): String = json(ordered(RegionsRuntime.status(session)))

  /** The last `limit` decisions, the newest last; with `execution`, and in each action `ran`, as [[ui.DecisionsTable]] has them. */
  def decisions(session: SparkSession, limit: Int): String = {
    awaitListeners(session)
    json(running(session).map(runtime => runtime.decisions.last(limit).map(followed(runtime, _))).getOrElse(Nil))
  }

  /** What ran is known when Spark's listeners were told; on a busy machine that is after the query's own end. */
  private def awaitListeners(session: SparkSession): Unit =
    try session.sparkContext.listenerBus.waitUntilEmpty(listenersMillis)
    catch { case _: TimeoutException => logInfo("spark-regions: what ran last is not told yet, listeners are behind") }

  private def followed(runtime: RegionsRuntime, decision: Decision): ObjectNode = {
    val savings = runtime.events.savings
    val tree = Frames.json.valueToTree[ObjectNode](savings.measured(decision))
    savings.execution(decision.query).fold(tree.putNull("execution"))(tree.put("execution", _))
    decision.actions.zipWithIndex.foreach { case (action, i) =>
      val told = tree.path("actions").get(i).asInstanceOf[ObjectNode].put("ran", savings.ran(decision.query, action))
      val found = savings.outcome(decision.query, action)
      found.measured.foreach(told.put("measuredSeconds", _))
      found.estimated.foreach(told.put("estimatedSeconds", _))
    }
    tree
  }

  /** `{"queries":3,"loads":1,…}`; empty where inactive. */
  def counters(session: SparkSession): String = json(ordered(running(session).map(_.counters.snapshot).getOrElse(Nil)))

  /** `{"predicted":1.5,"measured":1.2,"choices":3,"estimated":0.4,"reads":1}`: seconds saved, with how many were measured or estimated. */
  def savings(session: SparkSession): String = json(
    ordered(
      running(session).toSeq.map(_.events.savings).flatMap(s =>
        Seq(
          "predicted" -> s.predictedSeconds,
          "measured" -> s.measuredSeconds,
          "choices" -> s.measuredChoices,
          "estimated" -> s.estimatedSeconds,
          "reads" -> s.estimatedReads
        ))))

  /** What stands against storing and loading each node of `frame`; see [[rules.WhyNot]]. */
  def whyNot(frame: DataFrame): String = RegionsRuntime.of(frame.sparkSession) match {
    case Right(runtime) => json(WhyNot(runtime, frame))
    case Left(refusal) =>
      val root = Seq("id" -> 0, "operator" -> "", "code" -> refusal.code, "detail" -> refusal.detail)
      json(ordered(Seq("nodes" -> java.util.List.of(ordered(root)))))
  }

  /** The plan of `frame` as the planner is told it for another engine: `typed` of docs/protocol.md. */
  def typedPlan(frame: DataFrame): String = RegionsRuntime.of(frame.sparkSession) match {
    case Right(runtime) => WhyNot.typed(runtime, frame)
    case Left(refusal) => throw new IllegalStateException(s"${refusal.code}: ${refusal.detail}")
  }

  /**
   * Plans for queries on `frames`, which follow `atOnce` at a time in this order, or with 0 in any; without any, the batch is over.
   * `{"ranks":[[0],[1,2]],…}`, or `{"refusal":"CODE: …"}` where the queries will run without a plan.
   */
  def announce(session: SparkSession, frames: java.util.List[DataFrame], atOnce: Int): String =
    json(RegionsRuntime.of(session).flatMap(Batch.announce(_, session, frames.asScala.toSeq, atOnce)) match {
      case Right(plan) => Frames.tree(plan)
      case Left(refusal) => ordered(Seq("refusal" -> s"${refusal.code}: ${refusal.detail}"))
    })

  /**
   * Whether the rows of `frame` are the same each time, and more than read from where they are. Nothing is decided for it: an
   * optimizer run of a query's own would begin what no query ends.
   *
   * Transformers of Spark's own ML call their functions nondeterministic so that they are not called twice; the same input gives
   * the same value.
   */
  def worthKeeping(frame: DataFrame): Boolean = {
    val optimized = frame.sparkSession.sessionState.optimizer.execute(frame.queryExecution.analyzed.clone())
    val plan = optimized.transformAllExpressions {
      case udf: ScalaUDF if udf.function.getClass.getName.startsWith("org.apache.spark.ml.feature.") =>
        udf.copy(udfDeterministic = true)
    }
    plan.children.nonEmpty && plan.deterministic
  }

  /**
   * How an exploration stands ([[ui.events.RegionsEvents.explored]]); false where nobody listens.
   *
   * @param held what is persisted for branches, by their numbers
   */
  def explored(session: SparkSession, told: String, held: java.util.Map[Int, DataFrame]): Boolean =
    running(session).exists(_.events.explored(told, held.asScala.toMap))

  /** See [[control.ControlDriver.ask]]. */
  def control(session: SparkSession, text: String, seconds: Double): String = controlled(_.ask(text, seconds))

  /** See [[control.ControlDriver.replace]]. */
  def replace(session: SparkSession, text: String, code: Array[Byte]): String = controlled(_.replace(text, code))

  private def controlled(act: ControlDriver => String): String = ControlDriver.current match {
    case Some(driver) => act(driver)
    case None => json(ordered(Seq("error" -> ControlDriver.off)))
  }

  /** The last `limit` stages, with sparkMeasure's names. */
  def stages(session: SparkSession, limit: Int): String =
    json(running(session).map(_.profile.metrics.stages.last(limit)).getOrElse(Nil))

  /** The last `limit` tasks, with sparkMeasure's names. */
  def tasks(session: SparkSession, limit: Int): String =
    json(running(session).map(_.profile.metrics.tasks.last(limit)).getOrElse(Nil))

  private def running(session: SparkSession): Option[RegionsRuntime] = RegionsRuntime.of(session).toOption

  private def ordered(pairs: Seq[(String, Any)]): JLinkedMap[String, Any] = {
    val map = new JLinkedMap[String, Any]()
    pairs.foreach { case (key, value) => map.put(key, value) }
    map
  }

  private def json(value: Any): String = Frames.json.writeValueAsString(value)
}
