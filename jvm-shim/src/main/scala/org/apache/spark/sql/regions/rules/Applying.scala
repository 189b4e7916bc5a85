package org.apache.spark.sql.regions.rules

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.{LoadUse, StoreUse}

/** Turns the planner's answer into plan surgery; what cannot be applied becomes a decline. */
private[rules] final class Applying(
    session: SparkSession,
    runtime: RegionsRuntime,
    notes: DecisionNotes,
    signed: SignedQuery,
    shared: Seq[SharedPoint],
    repeated: Seq[RepeatedSubplan],
    answer: JsonNode) {

  private val byNode = elements(answer, "actions").groupBy(_.path("node").asInt(-1))
  private val loads = ArrayBuffer.empty[LoadUse]
  private val stores = ArrayBuffer.empty[StoreUse]

  def rewrite(): Applied = {
    elements(answer, "declines").foreach { d =>
      val node = d.path("node").asInt(0)
      val operator = signed.nodes.lift(node).map(_.plan.nodeName).getOrElse("")
      notes.decline(node, operator, Refusal(d.path("code").asText, d.path("detail").asText("")))
    }
    runtime.recycling.sweep(session, elements(answer, "sweep").map(_.asText))
    byNode.getOrElse(-1, Nil).filter(_.path("kind").asText == "unpersist").foreach { action =>
      runtime.recycling.persisted.drop(action.path("entry").asText)
    }
    val plan = if (byNode.keys.forall(_ < 0)) signed.nodes.head.plan else visit(signed.nodes.head)
    Applied(plan, loads.toSeq, stores.toSeq)
  }

  /** The node's plan with every action in it applied; the same object where there is none. */
  private def visit(node: SignedNode): LogicalPlan = {
    val actions = byNode.getOrElse(node.id, Nil)
    // Below a load nothing runs, so nothing there is worth rewriting.
    val visited = if (actions.exists(replaces)) node.plan else below(node)
    actions.foldLeft(visited)(applied(node, _, _))
  }

  private def replaces(action: JsonNode): Boolean = Set("load", "share").contains(action.path("kind").asText)

  private def below(node: SignedNode): LogicalPlan = {
    val (plans, subplans) = node.children.map(signed.nodes(_)).splitAt(node.plan.children.size)
    val children = plans.map(visit)
    val same = children.zip(node.plan.children).forall { case (after, before) => after eq before }
    val rebuilt = if (same) node.plan else node.plan.withNewChildren(children)
    val replaced = subplans.map(s => s.plan -> visit(s)).filter { case (before, after) => before ne after }
    if (replaced.isEmpty) rebuilt else Subplans.replace(rebuilt, replaced)
  }

  private def applied(node: SignedNode, plan: LogicalPlan, action: JsonNode): LogicalPlan = {
    val kind = action.path("kind").asText
    val entry = action.path("entry").asText("")
    val result = kind match {
      case "load" => load(node, action, entry)
      case "store" => store(node, plan, action, entry)
      case "share" => share(node, action)
      case "persist" => persist(node, plan, action, entry)
      case other => Left(Refusal("UNKNOWN_ACTION", other))
    }
    notes.action(node, action, result.left.toOption)
    result match {
      case Right(rewritten) => rewritten
      case Left(refusal) =>
        if (kind == "load") runtime.recycling.tell("invalid", entry, notes.query, refusal)
        if (kind == "store") runtime.recycling.tell("abandoned", entry, notes.query, refusal)
        plan
    }
  }

  private def load(node: SignedNode, action: JsonNode, entry: String): Either[Refusal, LogicalPlan] = {
    val digests = texts(action, "columns")
    for {
      stored <- Entries.open(session, action.path("location").asText, entry)
      _ <- Either.cond(stored.columns == digests, (), Refusal("ENTRY_DAMAGED", s"$entry holds other columns"))
      attributes = stored.schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())
      scan = RecycledRelation(attributes, stored, attributes.indices)
      read <- signed.over(node, scan, digests.zip(attributes), texts(action, "conjuncts").toSet)
    } yield {
      runtime.counters.add(Counters.loads)
      loads += LoadUse(entry, node.id, scan)
      recycled(node, entry, read, hadoopConf => Entries.check(stored, hadoopConf).left.toOption)
    }
  }

  private def recycled(node: SignedNode, entry: String, read: LogicalPlan, check: Recycled.Check): Recycled =
    Recycled(
      entry,
      node.plan.output,
      Plans.finished(session, read),
      node.plan,
      signed.inputs(node),
      check,
      refusal => runtime.recycling.fellBack(entry, notes.query, refusal)
    )

  private def store(
      node: SignedNode,
      plan: LogicalPlan,
      action: JsonNode,
      entry: String): Either[Refusal, LogicalPlan] = target(node, plan, action).flatMap { target =>
    val kept = texts(action, "columns").toSet
    val chosen = target.columns.filter { case (digest, _) => kept(digest) }
    val whole = chosen.map(_._2) == target.plan.output
    val narrow = if (whole) target.plan else Project(chosen.map(_._2), target.plan)
    val order = StoreOrder(
      entry,
      action.path("location").asText,
      target.signature.lineage,
      chosen.map(_._1),
      action.path("maxBytes").asLong(Long.MaxValue),
      Option(action.path("maxOverhead")).filter(_.isNumber).map(_.asDouble),
      target.wanted,
      signed.inputs(node),
      notes.query,
      outcome => runtime.recycling.stored(notes.query, outcome)
    )
    val tee = Tee(narrow, order)
    for {
      _ <- StorableTypes.refusal(narrow.schema).toLeft(())
      result <-
        if (whole && !target.shared) Right(tee)
        else signed.over(node, tee, chosen, target.signature.conjuncts.toSet)
    } yield {
      Stores.register(order)
      runtime.counters.add(Counters.stores)
      stores += StoreUse(entry, node.id)
      tee.setTagValue(Tags.query, notes.query)
      result
    }
  }

  /** A subplan with the rows of the node and the columns of its whole group; Spark reuses the exchange on top of it. */
  private def share(node: SignedNode, action: JsonNode): Either[Refusal, LogicalPlan] =
    for {
      group <- repeated.find(_.nodes == elements(action, "group").map(_.asInt(-1)))
        .toRight(Refusal("UNKNOWN_ACTION", "share"))
      read <- group.merged.over(signed, node)
    } yield {
      runtime.counters.add(Counters.shares)
      read
    }

  private def persist(
      node: SignedNode,
      plan: LogicalPlan,
      action: JsonNode,
      entry: String): Either[Refusal, LogicalPlan] =
    for {
      target <- target(node, plan, action)
      held <- runtime.recycling.persisted.open(
        session,
        entry,
        Project(target.columns.map(_._2), target.plan),
        target.columns.map(_._1),
        target.signature.conjuncts.toSet,
        action.path("level").asText("MEMORY_AND_DISK")
      )
      read <- signed.over(node, held.relation, held.columns.zip(held.relation.output), held.conjuncts)
    } yield recycled(node, entry, read, _ => None)

  /** What is to be kept: the node itself, or the wider DataFrame in its place. */
  private final case class Target(
      plan: LogicalPlan,
      columns: Seq[(String, Attribute)],
      signature: Signature,
      shared: Boolean,
      wanted: () => Boolean)

  private def target(node: SignedNode, plan: LogicalPlan, action: JsonNode): Either[Refusal, Target] =
    if (action.hasNonNull("ref")) {
      shared
        .find(_.ref == action.path("ref").asText)
        .map(p => Target(p.plan, p.columns, p.signature, shared = true, () => wanted(p.held)))
        .toRight(Refusal("UNKNOWN_ACTION", action.path("ref").asText))
    } else node.signature.map(Target(plan, signed.storeColumns(node), _, shared = false, () => true))

  /** Python lets go of its temporaries late. */
  private def wanted(held: Set[Long]): Boolean = held.isEmpty || HeldDataFrames.ids().exists(held)

  private def texts(action: JsonNode, field: String): Seq[String] = elements(action, field).map(_.asText)

  private def elements(node: JsonNode, field: String): Seq[JsonNode] = node.path(field).elements().asScala.toSeq
}
