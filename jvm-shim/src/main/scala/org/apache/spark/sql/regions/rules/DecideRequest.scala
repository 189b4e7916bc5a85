package org.apache.spark.sql.regions.rules

import java.util.{HashMap => JMap, List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec.{SharedSubplan, StorableTypes}

/** The `decide` message of docs/protocol.md. */
private[rules] object DecideRequest {

  /** DataFrames of one query that the planner can have signed; each costs an optimizer run. */
  val mostOffers = 8

  /** A plan of thousands of operators takes Spark itself seconds to optimize, and the planner a part of that to look at. */
  private val operatorsPerMilli = 2

  def deadlineMillis(session: SparkSession, signed: SignedPlan): Long =
    session.sessionState.conf.getConf(RegionsConf.plannerDeadline) + signed.nodes.length / operatorsPerMilli

  def apply(
      session: SparkSession,
      runtime: RegionsRuntime,
      query: Long,
      signed: SignedPlan,
      shared: Seq[SharedPoint],
      offered: Int,
      repeated: Seq[RepeatedSubplan],
      unordered: Seq[(Int, String)] = Nil): JMap[String, Any] = {
    val conf = session.sessionState.conf
    record(
      "type" -> "decide",
      "query" -> query,
      "application" -> session.sparkContext.applicationId,
      "session" -> session.sessionUUID,
      "mode" -> conf.getConf(RegionsConf.mode),
      "confs" -> record(
        "strategy" -> conf.getConf(RegionsConf.recycleStrategy),
        "maxBytes" -> conf.getConf(RegionsConf.recycleMaxBytes),
        "ttlSeconds" -> conf.getConf(RegionsConf.recycleTtl),
        "recycle" -> conf.getConf(RegionsConf.recycleEnabled),
        "sharing" -> conf.getConf(RegionsConf.sharingEnabled),
        "workflow" -> conf.getConf(RegionsConf.workflowEnabled),
        "persist" -> conf.getConf(RegionsConf.persistEnabled),
        "persistMaxBytes" -> runtime.recycling.persistMaxBytes(session),
        "window" -> conf.getConf(RegionsConf.recycleWindow),
        "firstUseOverhead" -> conf.getConf(RegionsConf.recycleFirstUseOverhead)
      ),
      "parallelism" -> session.sparkContext.defaultParallelism,
      "root" -> 0,
      "offered" -> offered,
      "unordered" -> unordered.map { case (node, name) => List[Any](node, name).asJava }.asJava,
      "nodes" -> signed.nodes.map(node).asJava,
      "expressions" -> signed.expressions.map { case (d, inputs) => d -> inputs.asJava }.asJava,
      "conjunctColumns" -> signed.conjunctColumns.map { case (d, columns) => d -> columns.asJava }.asJava,
      "equal" -> signed.equal.map { case (d, (one, other)) => d -> Seq(one, other).asJava }.asJava,
      "shared" -> shared.map(point).asJava,
      "repeated" -> repeated.map(group).asJava
    )
  }

  private def node(n: SignedNode): JMap[String, Any] = {
    val common = Seq[(String, Any)](
      "id" -> n.id,
      "operator" -> n.operator,
      "children" -> n.children.asJava,
      "rowBytes" -> width(n.plan.output)) ++ relation(n)
    // Neither stored nor loaded: an entry has the rows, but not the order or the partitions that somebody asked for.
    n.signature.filterOrElse(_ => n.notStorable.isEmpty, n.notStorable.get) match {
      case Right(s) =>
        val refusal = source(n).orElse(StorableTypes.refusal(n.plan.schema))
        record(
          common ++ signature(s) ++ Seq(
            "storable" -> refusal.isEmpty,
            "session" -> refusal.exists(_.code == "TYPE_NOT_STORABLE"),
            "refusal" -> refusal.map(why).orNull): _*)
      case Left(refusal) =>
        record(common ++ Seq("storable" -> false, "session" -> false, "refusal" -> why(refusal)): _*)
    }
  }

  /** Bytes of a relation as the source counts them, with all of its columns. */
  private def relation(n: SignedNode): Option[(String, Any)] = n.plan match {
    case relation: LogicalRelation => Some("sourceBytes" -> relation.stats.sizeInBytes.min(Long.MaxValue).toLong)
    case _ => None
  }

  /** A relation as it stands on disk, perhaps with fewer columns, brings nothing when stored once more. */
  private def source(n: SignedNode): Option[Refusal] =
    if (n.children.isEmpty || n.plan.collectLeaves().forall(_ eq n.plan)) Some(Refusal("SOURCE"))
    else
      n.plan match {
        case org.apache.spark.sql.catalyst.plans.logical.Project(list, r: LogicalRelation)
            if list.forall(_.isInstanceOf[Attribute]) && r.relation.toString.toLowerCase.contains("parquet") =>
          Some(Refusal("SOURCE"))
        case _ => None
      }

  private def point(p: SharedPoint): JMap[String, Any] = record(
    Seq[(String, Any)](
      "ref" -> p.ref,
      "node" -> p.node,
      "seen" -> p.seen,
      "held" -> p.held.nonEmpty,
      "rowBytes" -> width(p.columns.map(_._2)),
      "inputs" -> joined(p.signed).asJava) ++
      signature(p.signature.copy(columns = p.columns.map(_._1))): _*)

  /** Lineage and width of what the joins of a plan read: what they would have to shuffle. */
  private def joined(signed: SignedPlan): Seq[JList[Any]] = {
    val read = signed.nodes.filter(_.children.size > 1).flatMap(_.children).toSet
    signed.nodes.filter(n => read(n.id)).flatMap { n =>
      n.signature.toOption.map(s => List[Any](s.lineage, width(n.plan.output)).asJava)
    }
  }

  private def group(r: RepeatedSubplan): JMap[String, Any] = record(
    Seq[(String, Any)](
      "nodes" -> r.nodes.asJava,
      "copies" -> r.copies.asJava,
      "exact" -> r.merged.exact,
      "exchange" -> !SharedSubplan.endsWithExchange(r.merged.plan),
      "rowBytes" -> width(r.merged.plan.output)
    ) ++ signature(r.merged.signature): _*)

  private def signature(s: Signature): Seq[(String, Any)] = Seq(
    "lineage" -> s.lineage,
    "core" -> s.core,
    "conjuncts" -> s.conjuncts.asJava,
    "columns" -> s.columns.asJava)

  private def why(refusal: Refusal): JMap[String, Any] = record("code" -> refusal.code, "detail" -> refusal.detail)

  private def width(output: Seq[Attribute]): Int = output.map(_.dataType.defaultSize).sum

  private def record(fields: (String, Any)*): JMap[String, Any] = {
    val map = new JMap[String, Any](fields.size * 2)
    fields.foreach { case (key, value) => map.put(key, value) }
    map
  }
}
