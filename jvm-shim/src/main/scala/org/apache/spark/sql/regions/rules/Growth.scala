package org.apache.spark.sql.regions.rules

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.{Cross, Inner, JoinType, LeftAnti, LeftOuter, LeftSemi, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation, PartitionDirectory}
import org.apache.spark.sql.regions.{BoundedMap, Planner, Refusal, Signature, SignedNode, wire}
import org.apache.spark.sql.types.StructType

/** A file of a relation. `key` tells it from others, and from itself at another time or in another partition. */
private[rules] final case class SourceFile(key: String, path: Path, bytes: Long)

/**
 * A node that may be stored of fewer files than it has now: an aggregate, or one whose rows come from a relation's one by one; see
 * docs/growing.md.
 *
 * @param identity of its plan with the files of all relations taken out
 * @param keys the digest of each key, or column of such rows, to the same where files are taken out
 * @param functions likewise
 * @param columns keys and functions where files are taken out, to the node's columns
 * @param sources relations and their files, by what they are without these; those that stand in several places have none
 * @param whole what a relation is with its files
 */
private[regions] final class Growing(
    val node: SignedNode,
    val identity: String,
    val keys: Map[String, String],
    val functions: Map[String, String],
    columns: Map[String, String],
    sources: Map[String, (Option[LogicalRelation], Seq[SourceFile])],
    whole: LogicalRelation => Option[String]) {

  lazy val told: wire.Growth = wire.Growth(
    identity,
    columns,
    sources.map { case (place, (_, files)) => place -> files.map(_.key).sorted },
    sources.collect { case (place, (Some(relation), _)) => place -> whole(relation) }
      .collect { case (place, Some(source)) => place -> source }
  )

  private def lacking(grown: Grown): Boolean =
    node.grouping.exists(!_.calls.forall(_.merge.exists(_._2.forall(grown.functions.contains))))

  /** The plan whose rows are the old files' and the new ones'. */
  private def rows: LogicalPlan = if (node.grouping.isDefined) node.plan.children.head else node.plan

  /** Whether it is stored of these very files. */
  def same(stored: wire.Growth): Boolean = told.files == stored.files

  /** What a stored result lacks, if that is files of one relation alone, or why it cannot be brought up to date. */
  def since(entry: String, stored: wire.Growth): Either[Refusal, Grown] = {
    def refused(detail: String) = Left(Refusal("NOT_GROWN", s"$detail: $entry"))
    val before = stored.files.map { case (place, keys) => place -> keys.toSet }
    val now = sources.map { case (place, (_, files)) => place -> files.map(_.key).toSet }
    val changed = now.keys.filter(place => before.get(place) != now.get(place)).toSeq
    if (before.keySet != now.keySet) refused("other relations")
    else if (!keys.values.forall(stored.columns.contains)) refused("it lacks a key")
    else
      changed match {
        case Seq(place) if !before(place).subsetOf(now(place)) => refused("files were replaced or dropped")
        case Seq(place) =>
          val (relation, files) = sources(place)
          val (kept, added) = files.partition(file => before(place)(file.key))
          val way = relation.flatMap(r => Growing.way(rows, r).map(r -> _))
          way.fold[Either[Refusal, Grown]](refused("more than filters, projections and joins over the new files")) {
            case (r, nodes) =>
              val grown = Grown(this, entry, stored.columns, r, kept, added, nodes)
              if (lacking(grown)) refused("it lacks a function") else Right(grown)
          }
        case several => refused(s"files of ${several.size} relations are other ones")
      }
  }
}

private[regions] object Growing {
  val mostFiles = 2000

  /**
   * @param whole what a relation is with its files
   * @param unlisted signs a plan with the files of its relations taken out, and tells what its relations are without them
   */
  def of(
      node: SignedNode,
      files: HadoopFsRelation => Option[Seq[SourceFile]],
      whole: HadoopFsRelation => Option[String],
      unlisted: LogicalPlan => Option[(Form, HadoopFsRelation => Option[String])]): Option[Growing] = for {
    signature <- node.signature.toOption
    if node.notStorable.isEmpty && mayGrow(node) && !rounds(node)
    relations = node.plan.collectWithSubqueries { case r: LogicalRelation => r }
    known = relations.map(fileRelation(_).flatMap(files))
    if relations.nonEmpty && known.forall(_.isDefined) && known.map(_.get.size).sum <= mostFiles
    (form, place) <- unlisted(node.plan)
    names <- names(node, signature, form)
    places = relations.map(r => place(r.relation.asInstanceOf[HadoopFsRelation]))
    if places.forall(_.isDefined)
  } yield {
    val stored = signature.columns.toSet
    val sources = places.map(_.get).zip(relations.zip(known.map(_.get))).groupMap(_._1)(_._2).map {
      case (place, Seq((relation, listed))) => place -> (Some(relation) -> listed)
      case (place, several) => place -> (None -> several.flatMap(_._2))
    }
    new Growing(
      node,
      Digest.of("grows", form.lineage +: Nil),
      names.keys.toMap,
      names.functions.toMap,
      names.columns.filter { case (_, column) => stored(column) }.toMap,
      sources,
      relation => fileRelation(relation).flatMap(whole)
    )
  }

  /** As in [[Growing]]. */
  private final case class Names(
      keys: Seq[(String, String)],
      functions: Seq[(String, String)],
      columns: Seq[(String, String)])

  /** @param form of the node, with files taken out */
  private def names(node: SignedNode, signature: Signature, form: Form): Option[Names] = node.grouping match {
    case Some(grouping) => form.grouping.collect {
        case bare if bare.calls.size == grouping.calls.size && bare.keys.size == grouping.keys.size =>
          val calls = grouping.calls.zip(bare.calls)
          val keys = grouping.keys.zip(bare.keys)
          val merged = calls.flatMap { case (call, without) =>
            call.merge.toSeq.zip(without.merge.toSeq).flatMap { case ((_, own), (_, other)) => own.zip(other) }
          }
          Names(
            keys.map { case (key, without) => key.digest -> without.digest },
            calls.map { case (call, without) => call.function -> without.function } ++ merged,
            keys.map { case (key, without) => without.digest -> key.column } ++
              calls.map { case (call, without) => without.function -> call.column }
          )
      }
    case None =>
      val columns = signature.columns.zip(node.plan.output.flatMap(a => form.columns.get(a.exprId)))
      Option.when(columns.size == signature.columns.size)(Names(columns, Nil, columns.map(_.swap)))
  }

  /** Whether there may be rows of old files and of new ones, as far as the node itself tells. */
  def mayGrow(node: SignedNode): Boolean =
    node.signature.isRight && node.grouping.fold(byRows(node.plan))(_.calls.forall(_.merge.isRight))

  /** What rounds beside rows would be computed for the new ones again, and in other last digits than the stored rows have. */
  private def rounds(node: SignedNode): Boolean =
    node.grouping.isEmpty && node.plan.collectWithSubqueries { case p if AggregateDigest.rounds(p) => p }.nonEmpty

  private def byRows(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter => true
    case join: Join => onLeft(join.joinType) || onRight(join.joinType)
    case _ => false
  }

  /**
   * The operators above a relation, each of which gives for more rows of it the rows that it gave before, and those that it gives
   * for the new ones: filters, projections, inner joins, and outer ones where the relation's side keeps all of its rows.
   */
  private def way(plan: LogicalPlan, relation: LogicalRelation): Option[Seq[LogicalPlan]] = plan match {
    case found if found eq relation => Some(Seq(found))
    case _: Project | _: Filter => way(plan.children.head, relation).map(plan +: _)
    case Join(left, right, kind, _, _) =>
      val below = (if (onLeft(kind)) way(left, relation) else None)
        .orElse(if (onRight(kind)) way(right, relation) else None)
      below.map(plan +: _)
    case _ => None
  }

  private def fileRelation(relation: LogicalRelation): Option[HadoopFsRelation] =
    Some(relation.relation).collect { case files: HadoopFsRelation => files }

  private def onLeft(kind: JoinType): Boolean = Seq(Inner, Cross, LeftOuter, LeftSemi, LeftAnti).contains(kind)
  private def onRight(kind: JoinType): Boolean = Seq(Inner, Cross, RightOuter).contains(kind)
}

/**
 * A stored result and the files that it lacks.
 *
 * @param columns the stored ones, by keys and functions where files are taken out
 * @param way operators from the rows, of an aggregate its input, down to the relation
 */
private[regions] final case class Grown(
    growing: Growing,
    entry: String,
    columns: Map[String, String],
    relation: LogicalRelation,
    kept: Seq[SourceFile],
    added: Seq[SourceFile],
    way: Seq[LogicalPlan]) {

  /** Columns with the values of functions, by function. */
  lazy val functions: Map[String, String] =
    growing.functions.flatMap { case (own, without) => columns.get(without).map(own -> _) }

  /** The stored column of a key. */
  def key(digest: String): Option[String] = growing.keys.get(digest).flatMap(columns.get)

  /** Of the plan over the relation, what it is over some of its files. */
  def over(session: SparkSession, plan: LogicalPlan, files: Seq[SourceFile]): LogicalPlan = plan.transform {
    case found if found eq relation =>
      val whole = relation.relation.asInstanceOf[HadoopFsRelation]
      relation.copy(relation = whole.copy(location = new SomeFiles(whole.location, files))(session))
  }

  def told(nodes: Seq[SignedNode]): wire.GrownEntry = wire.GrownEntry(
    entry,
    added.map(_.bytes).sum,
    added.map(_.bytes).sum + kept.map(_.bytes).sum,
    nodes.filter(n => way.exists(_ eq n.plan)).map(_.id))
}

/** Which stored results a query can bring up to date. */
private[rules] object Growths {

  /** Of aggregates, and of other nodes. */
  private val most = 8

  /** Asks for those that are stored of fewer files; gives why others cannot be brought up to date. */
  def find(
      planner: Planner,
      sources: StoredSources,
      signed: SignedQuery,
      deadlineMillis: Long): Seq[(SignedNode, Refusal)] = {
    val (aggregates, others) = signed.nodes.filter(Growing.mayGrow).partition(_.grouping.isDefined)
    val nodes = aggregates.take(most) ++ others.take(most)
    val growing = if (nodes.isEmpty || !sources.differ(signed.sources)) Nil else nodes.flatMap(signed.growing)
    val stored =
      if (growing.isEmpty) Map.empty[String, wire.Growth]
      else
        planner.request(wire.FindGrown(growing.map(_.identity).distinct), deadlineMillis).fold(_ => Map.empty, _.found)
    val found = for {
      each <- growing
      (entry, growth) <- stored.toSeq if growth.identity == each.identity && !each.same(growth)
    } yield each.node -> each.since(entry, growth)
    signed.grown = found.collect { case (node, Right(grown)) => (node.id, grown.entry) -> grown }.toMap
    found.collect { case (node, Left(refusal)) => node -> refusal }
  }
}

/**
 * What relations were with the files that results were stored of, in the catalog and by this application: only where one differs
 * may a stored result lack files.
 */
private[regions] final class StoredSources(planner: Planner, deadlineMillis: () => Long) {
  import StoredSources._

  private val known = BoundedMap[String, Known](mostKnown, byUse = true)

  /** @param now relations without their files, to what they are with them */
  def differ(now: Map[String, String]): Boolean = {
    val time = System.nanoTime()
    val unknown =
      now.keys.filterNot(each => Option(known.get(each)).exists(_.asked.exists(time - _ < freshNanos))).toSeq
    unknown.grouped(mostAsked).foreach { some =>
      planner.request(wire.FindGrown(relations = some), deadlineMillis()).foreach { answer =>
        some.foreach(each => add(each, answer.sources.getOrElse(each, Nil), Some(time)))
      }
    }
    now.exists { case (relation, source) => Option(known.get(relation)).exists(_.sources.exists(_ != source)) }
  }

  def stored(growth: wire.Growth): Unit = growth.sources.foreach { case (relation, source) =>
    add(relation, Seq(source), None)
  }

  private def add(relation: String, sources: Seq[String], asked: Option[Long]): Unit = known.synchronized {
    val before = Option(known.get(relation)).getOrElse(Known(Set.empty, None))
    known.put(relation, Known(before.sources ++ sources, asked.orElse(before.asked)))
  }
}

private object StoredSources {
  private val mostKnown = 10000
  private val mostAsked = 1000

  /** After so long another application may have stored more. */
  private val freshNanos = 60L * 1000 * 1000 * 1000

  private case class Known(sources: Set[String], asked: Option[Long])
}

/** Some of a relation's files. */
private[rules] final class SomeFiles(whole: FileIndex, files: Seq[SourceFile]) extends FileIndex {
  private val paths = files.map(_.path).toSet

  override def rootPaths: Seq[Path] = whole.rootPaths
  override def listFiles(partitions: Seq[Expression], data: Seq[Expression]): Seq[PartitionDirectory] =
    whole.listFiles(partitions, data).map(d => d.copy(files = d.files.filter(file => paths(file.getPath))))
      .filter(_.files.nonEmpty)
  override def inputFiles: Array[String] = whole.inputFiles.filter(name => paths(new Path(new java.net.URI(name))))
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = files.map(_.bytes).sum
  override def partitionSchema: StructType = whole.partitionSchema
}
