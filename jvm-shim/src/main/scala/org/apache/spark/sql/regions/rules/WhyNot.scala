package org.apache.spark.sql.regions.rules

import java.util.{HashMap => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.platforms.TypedPlan

/** What stands against storing and loading each node of a query: its own refusals, and what the planner would decline. */
object WhyNot {

  /** `{"nodes":[{"id","operator","children","code","detail"}]}` in pre-order; no code where nothing stands against it. */
  def apply(runtime: RegionsRuntime, frame: DataFrame): JMap[String, Any] = {
    val (session, signed) = this.signed(runtime, frame)
    val declined = declines(session, runtime, signed)
    val nodes = signed.nodes.map { node =>
      val answer = new JMap[String, Any]()
      answer.put("id", node.id)
      answer.put("operator", node.operator)
      answer.put("children", node.children.asJava)
      val why = node.signature.left.toOption.orElse(node.notStorable).orElse(declined.get(node.id))
        .orElse(Option.when(node.known.nonEmpty)(Refusal("SOURCE", node.known)))
      why.foreach { refusal =>
        answer.put("code", refusal.code)
        answer.put("detail", refusal.detail)
      }
      answer
    }
    val result = new JMap[String, Any]()
    result.put("nodes", nodes.asJava)
    result
  }

  /** The typed plan of `frame`'s query as JSON, `null` where it is too large. */
  def typed(runtime: RegionsRuntime, frame: DataFrame): String = {
    val (session, signed) = this.signed(runtime, frame)
    TypedPlan(session, signed).fold("null")(_.json)
  }

  private def signed(runtime: RegionsRuntime, frame: DataFrame): (SparkSession, SignedQuery) = {
    val session = frame.sparkSession.asInstanceOf[SparkSession]
    val analyzed = session.sharedState.cacheManager.useCachedData(frame.queryExecution.normalized)
    val plan = OptimizerRuns.captureOptimized(session, analyzed).getOrElse(frame.queryExecution.optimizedPlan)
    session -> runtime.recycling.sign(session, plan)
  }

  /** Asked in observe mode, which reserves nothing. */
  private def declines(session: SparkSession, runtime: RegionsRuntime, signed: SignedQuery): Map[Int, Refusal] = {
    val typed = TypedPlan.of(session, signed, new RowOrder(session, signed, engine = true).unread)
    val request =
      DecideRequest(session, runtime, runtime.nextQuery(), signed, Nil, Policy.mostOffers, Nil, typed = typed)
        .copy(mode = "observe")
    runtime.planner.request(request, DecideRequest.deadlineMillis(session, signed, typed.isDefined)) match {
      case Left(refusal) => Map(0 -> refusal)
      case Right(answer) =>
        answer.declines.reverse
          .map(d => d.node -> Refusal(d.code, d.detail))
          // What only the mode of this question keeps from being done, nothing stands against.
          .filter(_._2.code != "OBSERVE_ONLY")
          .toMap
    }
  }
}
