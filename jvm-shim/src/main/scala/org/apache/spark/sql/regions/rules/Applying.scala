package org.apache.spark.sql.regions.rules

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.regions.profile.{LoadUse, PersistUse, StoreUse}

/** Turns the planner's answer into plan surgery; what cannot be applied becomes a decline. */
private[rules] final class Applying(
    session: SparkSession,
    runtime: RegionsRuntime,
    notes: DecisionNotes,
    signed: SignedQuery,
    shared: Seq[SharedPoint],
    repeated: Seq[RepeatedSubplan],
    order: RowOrder,
    opened: OpenedEntries,
    answer: JsonNode) {

  private val counters = runtime.counters
  private val byNode = elements(answer, "actions").groupBy(_.path("node").asInt(-1))
  private val loads = ArrayBuffer.empty[LoadUse]
  private val stores = ArrayBuffer.empty[StoreUse]
  private val persists = ArrayBuffer.empty[PersistUse]

  /** Whether something is read in another order than plain Spark's, which nobody sees. */
  private var reordered = false

  def rewrite(): Applied = {
    elements(answer, "declines").foreach { d =>
      val node = d.path("node").asInt(0)
      val operator = signed.nodes.lift(node).map(_.operator).getOrElse("")
      notes.decline(node, operator, Refusal(d.path("code").asText, d.path("detail").asText("")))
    }
    val plan = if (byNode.keys.forall(_ < 0)) signed.nodes.head.plan else visit(signed.nodes.head)
    runtime.recycling.uses(notes.query, persists.toSeq)
    Applied(plan, loads.toSeq, stores.toSeq)
  }

  /** The node's plan with every action in it applied; the same object where there is none. */
  private def visit(node: SignedNode): LogicalPlan = {
    val actions = byNode.getOrElse(node.id, Nil)
    // Below a load nothing runs, so nothing there is worth rewriting.
    val visited = if (actions.exists(replaces)) node.plan else below(node)
    actions.foldLeft(visited)(applied(node, _, _))
  }

  private def replaces(action: JsonNode): Boolean = ActionKind.spares(action.path("kind").asText)

  private def reads(action: JsonNode): Boolean = ActionKind.reads(action.path("kind").asText)

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
      case "recall" => recall(node, action, entry)
      case other => Left(Refusal("UNKNOWN_ACTION", other))
    }
    notes.action(node, action, result.left.toOption)
    result match {
      case Right(rewritten) => rewritten
      case Left(refusal) =>
        // It may well serve another query.
        val usable = refusal.code == Applying.rowOrder
        if (kind == "load" && !usable) runtime.recycling.tell("invalid", entry, notes.query, refusal)
        if (kind == "store") runtime.recycling.tell("abandoned", entry, notes.query, refusal)
        if (kind == "persist" || kind == "recall" && !usable)
          runtime.recycling.tell("dropped", entry, notes.query, refusal)
        plan
    }
  }

  private def load(node: SignedNode, action: JsonNode, entry: String): Either[Refusal, LogicalPlan] =
    loaded(signed, node, node, action, entry).map { case (read, scan) =>
      counters.add(Counters.loads)
      loads += LoadUse(entry, node.id, scan)
      read
    }

  /** @param at the node of the query whose rows are computed from `node`, which may be one of another plan */
  private def loaded(
      within: SignedQuery,
      node: SignedNode,
      at: SignedNode,
      action: JsonNode,
      entry: String): Either[Refusal, (Recycled, RecycledRelation)] = {
    val digests = texts(action, "columns")
    for {
      stored <- opened(action.path("location").asText, entry)
      _ <- Either.cond(stored.columns == digests, (), Refusal("ENTRY_DAMAGED", s"$entry holds other columns"))
      attributes = stored.schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())
      arranged <- arranged(within, node, at, stored.layout)
      scan = RecycledRelation(attributes, stored, attributes.indices, arranged.isDefined)
      read <- over(within, node, scan, digests.zip(attributes), texts(action, "conjuncts").toSet)
      check = (hadoopConf: Configuration) => Entries.check(stored, hadoopConf).left.toOption
    } yield (recycled(within, node, entry, read, check, arranged.isDefined, arranged), scan)
  }

  /** What to claim of rows that come in plain Spark's order; None where they come in another one, and nobody sees that. */
  private def arranged(
      within: SignedQuery,
      node: SignedNode,
      at: SignedNode,
      stored: Option[StoredLayout]): Either[Refusal, Option[Arranged]] = {
    val own = if (within eq signed) order else new RowOrder(session, within)
    stored.flatMap(own.arranged(node, _)) match {
      case None if !order.free(at) && !own.free(node) => Left(Refusal(Applying.rowOrder, node.operator))
      case found =>
        if (found.isEmpty) reordered = true
        Right(found)
    }
  }

  private def over(
      within: SignedQuery,
      node: SignedNode,
      source: LogicalPlan,
      columns: Seq[(String, Attribute)],
      conjuncts: Set[String]): Either[Refusal, LogicalPlan] =
    for {
      own <- node.signature
      _ <- Either.cond(conjuncts.forall(own.conjuncts.contains), (), Refusal("CONJUNCTS_DIFFER"))
      read <- within.over(node, source, columns, conjuncts)
    } yield read

  private def recycled(
      within: SignedQuery,
      node: SignedNode,
      entry: String,
      read: LogicalPlan,
      check: Recycled.Check,
      asPlain: Boolean,
      arranged: Option[Arranged] = None,
      computes: Boolean = false): Recycled =
    Recycled(
      entry,
      node.plan.output,
      Plans.finished(session, read),
      node.plan,
      within.inputs(node),
      check,
      refusal => runtime.recycling.fellBack(entry, notes.query, refusal),
      computes,
      asPlain,
      arranged
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
      outcome => runtime.recycling.stored(notes.query, outcome),
      layout(node, target)
    )
    val tee = Tee(narrow, order)
    for {
      _ <- StorableTypes.refusal(narrow.schema).toLeft(())
      _ <- inOrder(node, target)
      result <-
        if (whole && !target.shared) Right(tee)
        else signed.over(node, tee, chosen, target.signature.conjuncts.toSet)
    } yield {
      Stores.register(order)
      counters.add(Counters.stores)
      stores += StoreUse(entry, node.id)
      tee.setTagValue(Tags.query, notes.query)
      result
    }
  }

  private def layout(node: SignedNode, target: Target): () => Option[Layout] =
    if (reordered || order.any) () => None
    else if (target.shared) RowOrder.alone(session, target.point)
    else order.later(node)

  /** A wider DataFrame in the place of a node can give the node's rows in another order. */
  private def inOrder(node: SignedNode, target: Target): Either[Refusal, Unit] =
    Either.cond(
      !target.shared || order.fits(node, target.point),
      (),
      Refusal(Applying.rowOrder, node.operator))

  /** A subplan with the rows of the node and the columns of its whole group; Spark reuses the exchange on top of it. */
  private def share(node: SignedNode, action: JsonNode): Either[Refusal, LogicalPlan] =
    for {
      group <- repeated.find(_.nodes == elements(action, "group").map(_.asInt(-1)))
        .toRight(Refusal("UNKNOWN_ACTION", "share"))
      read <- group.merged.over(signed, node)
    } yield {
      reordered = true
      counters.add(Counters.shares)
      read
    }

  private def persist(
      node: SignedNode,
      plan: LogicalPlan,
      action: JsonNode,
      entry: String): Either[Refusal, LogicalPlan] =
    for {
      target <- target(node, plan, action)
      _ <- inOrder(node, target)
      read <- persist(node, action, entry, target)
    } yield read

  private def persist(
      node: SignedNode,
      action: JsonNode,
      entry: String,
      target: Target): Either[Refusal, LogicalPlan] = {
    val kept = texts(action, "columns").toSet
    val columns = target.columns.filter { case (digest, _) => kept(digest) }
    runtime.recycling.persisted.open(
      session,
      entry,
      Project(columns.map(_._2), target.plan),
      columns.map(_._1),
      target.signature.conjuncts.toSet,
      action.path("level").asText("MEMORY_AND_DISK"),
      layout(node, target)().map(StoredLayout(_, -1, planned = false, single = false, Nil))
    )
    counters.add(Counters.persists)
    recall(node, action, entry, computes = true)
  }

  private def recall(node: SignedNode, action: JsonNode, entry: String): Either[Refusal, LogicalPlan] = {
    counters.add(Counters.recalls)
    recall(node, action, entry, computes = false)
  }

  /** A read of what this application keeps. */
  private def recall(
      node: SignedNode,
      action: JsonNode,
      entry: String,
      computes: Boolean): Either[Refusal, LogicalPlan] =
    recalled(signed, node, node, entry, computes).map { read =>
      persists += PersistUse(entry, action.path("release").asBoolean(false))
      read
    }

  private def recalled(
      within: SignedQuery,
      node: SignedNode,
      at: SignedNode,
      entry: String,
      computes: Boolean): Either[Refusal, LogicalPlan] = {
    val persisted = runtime.recycling.persisted
    for {
      held <- persisted.get(entry).toRight(Refusal("ENTRY_MISSING", entry))
      arranged <- arranged(within, node, at, held.layout)
      read <- over(within, node, held.relation, held.columns.zip(held.relation.output), held.conjuncts)
      check = (_: Configuration) => persisted.missing(entry)
      // Spark's own relation knows its partitions.
    } yield recycled(within, node, entry, read, check, arranged.isDefined, None, computes)
  }

  /** What is to be kept: the node itself, or the wider DataFrame in its place. */
  private final case class Target(
      plan: LogicalPlan,
      point: LogicalPlan,
      columns: Seq[(String, Attribute)],
      signature: Signature,
      shared: Boolean,
      wanted: () => Boolean)

  private def target(node: SignedNode, plan: LogicalPlan, action: JsonNode): Either[Refusal, Target] =
    if (action.hasNonNull("ref")) {
      shared
        .find(_.ref == action.path("ref").asText)
        .map(standIn(_, node, texts(action, "columns").toSet))
        .toRight(Refusal("UNKNOWN_ACTION", action.path("ref").asText))
    } else node.signature.map(Target(plan, node.plan, signed.storeColumns(node), _, shared = false, () => true))

  /** A DataFrame in the place of the node; it reads what the node would have read. */
  private def standIn(whole: SharedPoint, node: SignedNode, kept: Set[String]): Target = {
    def inside(n: SignedNode): Seq[Int] = n.children.flatMap(c => c +: inside(signed.nodes(c)))
    val sources = inside(node).flatMap(id => byNode.getOrElse(id, Nil)).filter(reads).distinctBy(_.path("entry").asText)
    // What is read holds the columns that the queries need, and not all that the DataFrame has.
    val point = if (sources.isEmpty) whole else whole.narrowed(session, runtime, kept).getOrElse(whole)
    def visit(n: SignedNode): LogicalPlan =
      sources.iterator.flatMap(source => read(point.signed, n, node, source)).nextOption().getOrElse {
        n.plan.withNewChildren(n.children.take(n.plan.children.size).map(child => visit(point.signed.nodes(child))))
      }
    val plan = if (sources.isEmpty) point.plan else visit(point.signed.nodes.head)
    Target(plan, point.plan, point.columns, point.signature, shared = true, () => wanted(whole.held))
  }

  /** What `action` reads, in the place of a node of another plan on the same core; None where it does not serve that node. */
  private def read(within: SignedQuery, node: SignedNode, at: SignedNode, action: JsonNode): Option[LogicalPlan] = for {
    own <- node.signature.toOption
    asked <- signed.nodes(action.path("node").asInt).signature.toOption
    if own.core == asked.core && node.children.nonEmpty
    entry = action.path("entry").asText
    read <-
      (if (action.path("kind").asText == "load") loaded(within, node, at, action, entry).map { case (read, scan) =>
         // This copy is what runs, and what is to be measured.
         loads += LoadUse(entry, action.path("node").asInt, scan)
         read
       }
       else recalled(within, node, at, entry, computes = false)).toOption
  } yield read

  /** Python lets go of its temporaries late. */
  private def wanted(held: Set[Long]): Boolean = held.isEmpty || HeldDataFrames.ids().exists(held)

  private def texts(action: JsonNode, field: String): Seq[String] = elements(action, field).map(_.asText)

  private def elements(node: JsonNode, field: String): Seq[JsonNode] = node.path(field).elements().asScala.toSeq
}

private[rules] object Applying {

  /** What an answer asks for that is no part of the query's plan. */
  def besides(session: SparkSession, runtime: RegionsRuntime, answer: JsonNode): Unit = {
    runtime.recycling.sweep(session, answer.path("sweep").elements().asScala.map(_.asText).toSeq)
    answer.path("actions").elements().asScala.filter(_.path("kind").asText == "unpersist").foreach { action =>
      runtime.recycling.persisted.drop(action.path("entry").asText)
    }
  }

  val rowOrder = "ROW_ORDER"
}
