package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{InsertIntoHadoopFsRelationCommand, LogicalRelation, WriteFiles}
import org.apache.spark.sql.regions._
import org.apache.spark.sql.regions.control.badrows.BadRows
import org.apache.spark.sql.regions.exec.{MaterializedRead, SharedSubplan, StorableTypes}
import org.apache.spark.sql.regions.platforms.TypedPlan

/** The `decide` message of docs/protocol.md. */
private[rules] object DecideRequest {

  /** @param typed whether another engine may take parts, so that statements are made, and missing the answer costs most */
  def deadlineMillis(session: SparkSession, signed: SignedPlan, typed: Boolean = false): Long = {
    val operators = signed.nodes.length
    session.sessionState.conf.getConf(RegionsConf.plannerDeadline) + operators / Policy.operatorsPerMilli +
      (if (typed) operators * Policy.engineOperatorMillis else 0)
  }

  /** @param counted whether all its sources tell how many rows they have */
  def apply(
      session: SparkSession,
      runtime: RegionsRuntime,
      query: Long,
      signed: SignedPlan,
      shared: Seq[SharedPoint],
      offered: Int,
      repeated: Seq[RepeatedSubplan],
      subquery: Boolean = false,
      grown: Map[Int, Seq[wire.GrownEntry]] = Map.empty,
      typed: Option[TypedPlan] = None,
      shape: Option[wire.QueryShape] = None,
      counted: Boolean = false): wire.Decide = {
    val conf = session.sessionState.conf
    val sources = shared.filter(_.weaker).flatMap(p => signed.below(signed.nodes(p.node)).map(_.id)).toSet
    // Rows may have been left out: what is computed here is read by this query alone.
    val whole = !BadRows.handled(conf)
    wire.Decide(
      query,
      wire.SignedQuery(
        signed.nodes.map(n =>
          node(n, whole).copy(
            grown = grown.getOrElse(n.id, Nil),
            sourceRows = if (counted || sources(n.id)) relationRows(session, n) else None)),
        root = 0,
        signed.expressions,
        signed.conjunctColumns,
        signed.equal,
        shared.map(frame(_, signed, typed.isDefined)),
        repeated.map(group),
        signed.predicates
      ),
      wire.Confs(
        strategy = conf.getConf(RegionsConf.recycleStrategy),
        maxBytes = conf.getConf(RegionsConf.recycleMaxBytes),
        ttlSeconds = conf.getConf(RegionsConf.recycleTtl).toDouble,
        recycle = conf.getConf(RegionsConf.recycleEnabled),
        persist = whole && conf.getConf(RegionsConf.persistEnabled),
        persistMaxBytes = runtime.recycling.persistMaxBytes(session),
        window = conf.getConf(RegionsConf.recycleWindow),
        firstUseOverhead = conf.getConf(RegionsConf.recycleFirstUseOverhead),
        sharing = whole && conf.getConf(RegionsConf.sharingEnabled),
        workflow = conf.getConf(RegionsConf.workflowEnabled),
        verify = if (whole) conf.getConf(RegionsConf.verifyFraction) else 0,
        platforms = conf.getConf(RegionsConf.platforms),
        platformsMaxInputBytes = conf.getConf(RegionsConf.platformsMaxInputBytes),
        platformsMaxResultBytes = conf.getConf(RegionsConf.platformsMaxResultBytes),
        platformsFloatSums = conf.getConf(RegionsConf.platformsFloatSums)
      ),
      session.sparkContext.applicationId,
      session.sessionUUID,
      conf.getConf(RegionsConf.mode),
      session.sparkContext.defaultParallelism,
      offered,
      subquery = subquery,
      top = top(signed),
      typed = typed.map(_.json),
      engineUp = runtime.engines.isUp,
      shape = shape
    )
  }

  /** A query that writes is known by the rows and by how they are written. */
  private def top(signed: SignedPlan): Option[wire.QueryTop] = {
    def below(node: SignedNode): SignedNode = signed.nodes(node.children.head)
    val root = signed.nodes.head
    val (node, how) = root.plan match {
      case insert: InsertIntoHadoopFsRelationCommand =>
        val options = insert.options.removed("path").toSeq.sorted.map { case (key, value) => s"$key=$value" }
        val partitions = insert.partitionColumns.map(_.name)
        val written = below(root)
        (if (written.plan.isInstanceOf[WriteFiles]) below(written) else written) ->
          (insert.fileFormat.getClass.getName +: s"${insert.bucketSpec}" +: partitions ++: options)
      case _ => root -> Nil
    }
    node.signature.toOption.map(s =>
      wire.QueryTop(Digest.of("plain", (s.lineage +: s.columns) ++ how), s.core, s.lineage))
  }

  /** @param engine whether another one may compute parts of it */
  def frame(p: SharedPoint, signed: SignedPlan, engine: Boolean): wire.SharedFrame = wire.SharedFrame(
    p.ref,
    p.node,
    p.signature.lineage,
    p.signature.core,
    p.signature.conjuncts,
    p.columns.map(_._1),
    p.seen,
    p.held.nonEmpty,
    width(p.columns.map(_._2)),
    joined(p.signed),
    p.weaker,
    if (engine) p.typed().map(_.json) else None,
    if (engine) p.places(signed) else Nil,
    p.morePython
  )

  private def node(n: SignedNode, whole: Boolean): wire.PlanNode = {
    val common = wire.PlanNode(
      n.id,
      n.operator,
      n.children,
      rowBytes = width(n.plan.output),
      sourceBytes = relationBytes(n))
    // Neither stored nor loaded: an entry has the rows, but not the order or the partitions that somebody asked for.
    n.signature.filterOrElse(_ => n.notStorable.isEmpty || n.onePlaceOfSeveral, n.notStorable.get) match {
      case Right(s) =>
        val own = n.notStorable.orElse(source(n)).orElse(StorableTypes.refusal(n.plan.schema))
          .orElse(Option.unless(whole)(Refusal("BAD_ROWS")))
        // A node that may be stored, too, and is served by its very rows only.
        val refusal = if (n.asItIs) Some(Refusal("REPEATED_FLOAT_AGGREGATE")) else own
        common.copy(
          lineage = Some(s.lineage),
          core = Some(s.core),
          conjuncts = s.conjuncts,
          columns = s.columns,
          storable = own.isEmpty,
          session = refusal.exists(_.code == "TYPE_NOT_STORABLE"),
          refusal = refusal.map(why),
          grouping = n.grouping.map(grouping)
        )
      case Left(refusal) => common.copy(refusal = Some(why(refusal)))
    }
  }

  private def grouping(g: Grouping): wire.Grouping = {
    val lacking = g.calls.find(call => call.merge.isLeft && call.values.isEmpty)
    wire.Grouping(
      g.base,
      g.conjuncts,
      g.keys.map(_.digest).distinct,
      g.calls.map(call => call.function -> call.column).toMap,
      g.calls.flatMap(call => call.merge.toOption.map(call.function -> _._2)).toMap,
      g.calls.flatMap(call => call.values.map(call.function -> _)).toMap,
      lacking.flatMap(_.merge.left.toOption).map(why)
    )
  }

  /** Bytes of a leaf as its source counts them, with all of its columns. */
  private def relationBytes(n: SignedNode): Option[Long] = n.plan match {
    case relation: LogicalRelation => Some(relation.stats.sizeInBytes.min(Long.MaxValue).toLong)
    // Of a subquery that was decided on by itself, and is a join's side now.
    case read: MaterializedRead => Some(read.read.stats.sizeInBytes.min(Long.MaxValue).toLong)
    case _ => None
  }

  private def relationRows(session: SparkSession, n: SignedNode): Option[Long] = n.plan match {
    case relation: LogicalRelation => FileRows(session, relation)
    case _ => None
  }

  /** A relation as it stands on disk, perhaps with fewer columns, brings nothing when stored once more. */
  private def source(n: SignedNode): Option[Refusal] =
    if (n.children.isEmpty || n.plan.collectLeaves().forall(_ eq n.plan)) Some(Refusal("SOURCE", n.known))
    else
      n.plan match {
        case org.apache.spark.sql.catalyst.plans.logical.Project(list, r: LogicalRelation)
            if list.forall(_.isInstanceOf[Attribute]) && r.relation.toString.toLowerCase.contains("parquet") =>
          Some(Refusal("SOURCE"))
        case _ => None
      }

  /** Lineage and width of what the joins of a plan read: what they would have to shuffle. */
  private def joined(signed: SignedPlan): Seq[(String, Double)] = {
    val read = signed.nodes.filter(_.children.size > 1).flatMap(_.children).toSet
    signed.nodes.filter(n => read(n.id)).flatMap(n => n.signature.toOption.map(_.lineage -> width(n.plan.output)))
  }

  private def group(r: RepeatedSubplan): wire.RepeatedNodes = {
    val signature = r.merged.signature
    wire.RepeatedNodes(
      r.nodes,
      r.copies,
      signature.lineage,
      signature.core,
      signature.conjuncts,
      signature.columns,
      r.merged.exact,
      !SharedSubplan.endsWithExchange(r.merged.plan),
      width(r.merged.plan.output)
    )
  }

  private def why(refusal: Refusal): wire.Why = wire.Why(refusal.code, refusal.detail)

  private def width(output: Seq[Attribute]): Double = output.map(_.dataType.defaultSize).sum.toDouble
}
