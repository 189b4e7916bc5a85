package org.apache.spark.sql.regions.rules

import scala.collection.immutable.VectorMap

import org.apache.spark.sql.catalyst.expressions.{Grouping => _, Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{LogicalRelation, WriteFiles}
import org.apache.spark.sql.regions.{Refusal, SparkMinor}

/** The normal form of an operator over those of its children. */
private[rules] final class OperatorForms(context: ExpressionContext, sources: SourceDigest, order: DeterminedOrder) {
  import OperatorForms._

  private val definitions = context.definitions
  private val joins = new JoinForms(context)
  private val unions = new UnionForms(definitions)

  def apply(plan: LogicalPlan, children: Seq[Form]): Form = (plan, children) match {
    case (relation: LogicalRelation, _) => sources.relation(relation)
    case (local: LocalRelation, _) => sources.local(local)
    case (range: Range, _) =>
      sources.leaf(s"range ${range.start} ${range.end} ${range.step}", range.output.map(_.exprId))
    case (_: OneRowRelation, _) => sources.leaf("row", Nil)
    case (EntryRows(entry, output, columns, _), _) =>
      sources.leaf(s"entry $entry ${columns.mkString(",")}", output.map(_.exprId))
    case (cached: InMemoryRelation, _) => sources.cached(cached, context.floatAggregates)
    case (project: Project, Seq(child)) => this.project(project, child)
    case (filter: Filter, Seq(child)) => this.filter(filter, child)
    case (join: Join, Seq(left, right)) => joins(join, left, right)
    case (aggregate: Aggregate, Seq(child)) =>
      this.aggregate(aggregate.groupingExpressions, aggregate.aggregateExpressions, aggregate, child)
    case (distinct: Distinct, Seq(child)) => aggregate(distinct.output, distinct.output, distinct, child)
    case (distinct: Deduplicate, Seq(child)) if distinct.child.outputSet.subsetOf(AttributeSet(distinct.keys)) =>
      aggregate(distinct.output, distinct.output, distinct, child)
    case (_: Deduplicate, _) => Refused("ORDER_DEPENDENT", "dropDuplicates")
    case (window: Window, Seq(child)) => this.window(window, child)
    case (union: Union, forms) => unions(union, forms)
    case (expand: Expand, Seq(child)) => this.expand(expand, child)
    case (generate: Generate, Seq(child)) => this.generate(generate, child)
    case (sort: Sort, Seq(child)) =>
      val digest = digester(child)
      val keys = sort.order.map(key => Digest("key", digest(key.child), s"${key.direction} ${key.nullOrdering}"))
      child.copy(order = Some(Digest.of("order", sort.global.toString +: keys)))
    case (Limits(count, Sorted(sort)), Seq(child)) if RowOrder.total(sort) => limit(count, plan, child)
    case (_: GlobalLimit, _) => Refused("LIMIT_WITHOUT_TOTAL_ORDER", plan.nodeName)
    case (Repartition(_, false, _), Seq(child)) => child
    case (_: Repartition | _: RepartitionByExpression | _: RebalancePartitions, Seq(child)) =>
      child.copy(order = None)
    case (_: SubqueryAlias | _: View | _: ResolvedHint | _: Subquery | _: ReturnAnswer, Seq(child)) => child
    case (python: BatchEvalPython, Seq(child)) => evaluated(python.udfs, python.resultAttrs, child)
    case (python: ArrowEvalPython, Seq(child)) => evaluated(python.udfs, python.resultAttrs, child)
    case (sample: Sample, Seq(child)) => this.sample(sample, child)
    case (map: MapInPandas, Seq(_)) => mapped(map, map.functionExpr, map.isBarrier || map.profile.isDefined, children)
    case (map: MapInArrow, Seq(_)) => mapped(map, map.functionExpr, map.isBarrier || map.profile.isDefined, children)
    case (groups: FlatMapGroupsInPandas, Seq(_)) => grouped(groups, groups.functionExpr, children)
    case (groups: FlatMapGroupsInArrow, Seq(_)) => grouped(groups, groups.functionExpr, children)
    case (groups: FlatMapCoGroupsInPandas, _) => grouped(groups, groups.functionExpr, children)
    case (groups: FlatMapCoGroupsInArrow, _) => grouped(groups, groups.functionExpr, children)
    case _ => Refused("UNKNOWN_OPERATOR", plan.getClass.getName)
  }

  private def digester(form: Form): ExpressionDigest = new ExpressionDigest(context, form.columns.get)

  private def project(project: Project, child: Form): Form = {
    checkParsed(project, child)
    val digest = digester(child)
    val columns = project.projectList.map(named => named.exprId -> digest(named))
    child.copy(columns = columns.toMap, parsed = false)
  }

  /** How many rows a text file has depends on whether any column is parsed. */
  private def checkParsed(plan: LogicalPlan, child: Form): Unit =
    if (child.parsed && plan.references.isEmpty) Refused("TOLERANT_READER", "a count of unparsed lines")

  private def filter(filter: Filter, child: Form): Form = {
    val (runtime, plain) = ExpressionDigest.flatten[And](filter.condition).partition(isRuntimeFilter)
    val conjuncts = new Conjuncts(context, digester(child))
    // Those with subqueries become joins, above the others.
    val form = child.filtered(plain.map(conjuncts(_)).sortBy(!_.residual))
    form.copy(
      pruned = form.pruned || runtime.nonEmpty,
      parsed = form.parsed && filter.references.isEmpty)
  }

  private def evaluated(udfs: Seq[PythonUDF], results: Seq[Attribute], child: Form): Form = {
    val digest = digester(child)
    child.copy(columns = child.columns ++ results.map(_.exprId).zip(udfs.map(digest(_))))
  }

  private def aggregate(
      grouping: Seq[Expression],
      outputs: Seq[NamedExpression],
      plan: LogicalPlan,
      child: Form): Form = {
    checkParsed(plan, child)
    val digest = digester(child)
    val floats = context.floatAggregates
    val functions = aggregates(digest, plan.children.head, grouping)
    val keys = grouping.map(digest(_))
    grouping.find(key => ValueDigest.hasEqualButDifferent(key.dataType)).foreach(k => Refused("ORDER_DEPENDENT", k.sql))
    val exact = grouping.zip(keys).collect { case (key, d) if ValueDigest.groupsExactly(key.dataType) => d }.toSet
    val ofKeys = isOf(exact)
    val (lifted, kept) = child.normal.partition { case (_, conjunct) => grouping.nonEmpty && ofKeys(conjunct) }
    val atom =
      Digest.of("aggregate", Seq(child.core, Digest.of("rows", kept.keys.toSeq.sorted)) ++ keys.distinct.sorted)
    val values = grouping.zip(keys).map { case (key, d) =>
      key.canonicalized -> (if (exact(d)) d else Digest("group", atom, d))
    }.toMap
    def column(function: String): String = Digest("aggregated", atom, function)
    val result = new ExpressionDigest(
      context,
      child.columns.get,
      {
        case call: AggregateExpression => column(functions(call))
        case key if values.nonEmpty => values.getOrElse(key.canonicalized, null)
        case _ => null
      }
    )
    val grouped = grouping.zip(keys).map { case (key, d) => GroupedKey(key, d, values(key.canonicalized)) }
    Form(
      Vector(atom),
      child.bases + atom,
      lifted,
      outputs.map(named => named.exprId -> result(named)).toMap,
      inputs = child.inputs,
      early = child.before(kept.contains, definitions),
      pruned = child.pruned,
      grouping = Some(
        Grouping(outputs, child, kept.keys.toSeq.sorted, grouped, column, digest(_), functions(_), floats)),
      rounding = if (outputs.exists(AggregateDigest.rounds(_))) Set(rounding(child, kept, keys)) else Set.empty
    )
  }

  private def aggregates(digest: ExpressionDigest, rows: LogicalPlan, keys: Seq[Expression] = Nil): AggregateDigest = {
    lazy val where = order(rows, shuffled = true)
    new AggregateDigest(context.floatAggregates, digest, rows, () => where, keys)
  }

  /** The same also where a filter on keys is no filter on groups: its rows are those of other groups. */
  private def rounding(child: Form, kept: Map[String, Conjunct], keys: Seq[String]): String = {
    val ofKeys = isOf(keys.toSet)
    val rows = kept.collect { case (digest, conjunct) if !ofKeys(conjunct) => digest }
    Digest.of("rounding", Seq(child.core, Digest.of("rows", rows.toSeq.sorted)) ++ keys.distinct.sorted)
  }

  /** Whether the filter is a function of the values `given`, and so holds for all rows of a group or none. */
  private def isOf(given: Set[String]): Conjunct => Boolean = {
    val covered = definitions.covers(given)
    conjunct => conjunct.reads.forall(covered)
  }

  private def window(window: Window, child: Form): Form = {
    val digest = digester(child)
    val functions = aggregates(digest, window.child)
    val keys = window.partitionSpec.filter(key => ValueDigest.groupsExactly(key.dataType)).map(digest(_)).toSet
    val ofKeys = isOf(keys)
    val kept = child.normal.collect { case (d, conjunct) if keys.isEmpty || !ofKeys(conjunct) => d }
    val rows = Digest.of("rows", child.core +: kept.toSeq.sorted)
    val result = new ExpressionDigest(context, child.columns.get,
      {
        case call: WindowExpression => Digest("windowed", rows, functions.window(call))
        case _ => null
      })
    val columns = window.windowExpressions.map(named => named.exprId -> result(named))
    val rounding = window.windowExpressions.zip(columns).collect {
      case (named, (_, digest)) if AggregateDigest.rounds(named) => digest
    }
    child.copy(columns = child.columns ++ columns, rounding = rounding.toSet)
  }

  private def expand(expand: Expand, child: Form): Form = {
    val digest = digester(child)
    val atom = Digest("expand", child.lineage, expand.projections.size.toString)
    val columns = expand.output.zipWithIndex.map { case (attribute, i) =>
      attribute.exprId -> Digest.of("expanded", atom +: expand.projections.map(row => digest(row(i))))
    }
    opaque(atom, columns.toMap, Seq(child))
  }

  /** Filters on the child's columns commute with it. */
  private def generate(generate: Generate, child: Form): Form = {
    generate.generator match {
      case _: PythonFuncExpression => Refused("OPAQUE_PYTHON", generate.generator.prettyName)
      case _: UserDefinedGenerator => Refused("UNDIGESTIBLE_FUNCTION", generate.generator.prettyName)
      case _ =>
    }
    val atom = Digest("generate", child.core, digester(child)(generate.generator), generate.outer.toString)
    val generated = generate.generatorOutput.zipWithIndex.map { case (attribute, i) =>
      attribute.exprId -> Digest("generated", atom, i.toString)
    }
    child.copy(
      atoms = Vector(atom),
      bases = child.bases + atom,
      columns = child.columns ++ generated,
      early = child.computed(definitions))
  }

  /** The first rows of an order in which no two different rows are equal. */
  private def limit(count: Int, limit: LogicalPlan, child: Form): Form = {
    val atom = Digest.of("limit", Seq(child.lineage, count.toString) ++ child.order)
    val columns = limit.output.map(a => a.exprId -> Digest("limited", atom, child.columns(a.exprId)))
    opaque(atom, columns.toMap, Seq(child)).copy(order = child.order)
  }

  private def sample(sample: Sample, child: Form): Form = {
    checkParsed(sample, child)
    val parameters = sample.productIterator.filterNot(_.isInstanceOf[LogicalPlan]).map(_.toString).toSeq
    if (parameters.contains("None")) Refused("SAMPLE", "no seed")
    val where = order(sample.child, shuffled = false).getOrElse(Refused("SAMPLE", "of rows in an order of their own"))
    val atom = Digest.of("sample", Seq(child.lineage, where) ++ parameters)
    opaque(
      atom,
      sample.output.map(a => a.exprId -> Digest("sampled", atom, child.columns(a.exprId))).toMap,
      Seq(child))
  }

  /** A Python function of whole partitions. */
  private def mapped(map: UnaryNode, function: Expression, together: Boolean, children: Seq[Form]): Form =
    if (together) Refused("OPAQUE_PYTHON", s"${map.nodeName} with a barrier or a profile of resources")
    else given(map, function, order(map.child, shuffled = false), Nil, children)

  /** A Python function of the rows of a key. */
  private def grouped(plan: LogicalPlan, function: Expression, children: Seq[Form]): Form = {
    val sizes = plan.productIterator.collect { case keys: Int => keys.toString }.toSeq
    val keys = plan.productIterator.collect { case keys: Seq[_] => keys }.nextOption().getOrElse(Nil)
    val digests = keys.collect { case key: Attribute => children.head.columns.getOrElse(key.exprId, key.name) }
    val orders = plan.children.map(order(_, shuffled = true))
    val where = Option.when(orders.forall(_.isDefined))(Digest.of("orders", orders.flatten))
    given(plan, function, where, sizes ++ digests, children)
  }

  /** What it is given: rows in their order, columns with their names. */
  private def given(
      plan: LogicalPlan,
      function: Expression,
      where: Option[String],
      parameters: Seq[String],
      children: Seq[Form]): Form = {
    plan.children.zip(children).foreach { case (below, form) => checkParsed(plan, form) }
    val columns = plan.children.zip(children).flatMap { case (below, form) =>
      below.output.flatMap(a => Seq(a.name, a.dataType.json, a.nullable.toString, form.columns(a.exprId)))
    }
    val digest = new ExpressionDigest(context, id => children.flatMap(_.columns.get(id)).headOption)
    val atom = Digest.of(
      "python",
      Seq(plan.nodeName, digest.ofRows(function), where.getOrElse(Refused("ORDER_DEPENDENT", plan.nodeName))) ++
        children.map(_.lineage) ++ columns ++ parameters ++
        plan.output.flatMap(a => Seq(a.name, a.dataType.json, a.nullable.toString))
    )
    opaque(atom, plan.output.zipWithIndex.map { case (a, i) => a.exprId -> Digest("made", atom, i.toString) }.toMap,
      children)
  }
}

private[regions] object OperatorForms {
  def opaque(atom: String, columns: Map[ExprId, String], below: Seq[Form]): Form =
    Form(
      Vector(atom),
      Set(atom),
      VectorMap.empty,
      columns,
      inputs = below.flatMap(_.inputs).toSet,
      pruned = below.exists(_.pruned))

  /** Filters that Spark adds to a plan for speed: they remove only rows that a join above removes as well. */
  def isRuntimeFilter(condition: Expression): Boolean = condition match {
    case _: DynamicPruning | _: BloomFilterMightContain => true
    case _ => false
  }

  /** Operators that have no identifier whatever is below them. */
  def barrier(plan: LogicalPlan): Option[Refusal] = {
    val name = plan.getClass.getName
    def refuse(code: String): Option[Refusal] = Some(Refusal(code, plan.nodeName))
    plan match {
      case _: Command | _: WriteFiles | _: InsertIntoDir | _: InsertIntoStatement => refuse("COMMAND")
      case _: CollectMetrics => refuse("OBSERVE")
      case _: LocalLimit | _: Offset | _: Tail => refuse("LIMIT_WITHOUT_TOTAL_ORDER")
      case _ if SparkMinor.limitAll(plan) => refuse("LIMIT_WITHOUT_TOTAL_ORDER")
      case _: LogicalRDD => refuse("RDD_SOURCE")
      case _: CTERelationRef | _: CTERelationDef | _: WithCTE => refuse("CTE_REFERENCE")
      case _: EventTimeWatermark | _: DeduplicateWithinWatermark => refuse("STREAMING_SOURCE")
      case _: ObjectProducer | _: ObjectConsumer | _: TypedFilter if name.contains("ExternalRDD") =>
        refuse("RDD_SOURCE")
      case _: ObjectProducer | _: ObjectConsumer | _: TypedFilter => refuse("OBJECT_OPERATOR")
      case _ if name.startsWith("org.apache.spark.sql.execution.datasources.v2.") => refuse("V2_SOURCE")
      case _ if name.endsWith(".HiveTableRelation") => refuse("HIVE_SOURCE")
      case _ if opaquePython(plan.getClass.getSimpleName) && !DeterminedOrder.sees(plan) => refuse("OPAQUE_PYTHON")
      case _ => None
    }
  }

  private def opaquePython(name: String): Boolean =
    (name.contains("Pandas") || name.contains("InArrow") || name.contains("PySpark") || name.endsWith("PythonUDTF")) ||
      name == "AttachDistributedSequence"

  /** Rows that the program has Spark keep, or what is quickly made of each of them: another copy would bring nothing. */
  @annotation.tailrec
  private def readFromCache(plan: LogicalPlan): Boolean = plan match {
    case _: InMemoryRelation => true
    case _: Project | _: Filter if !plan.expressions.exists(_.exists(_.isInstanceOf[UserDefinedExpression])) =>
      readFromCache(plan.children.head)
    case _ => false
  }

  def notStorable(plan: LogicalPlan, form: Form): Option[Refusal] = plan match {
    case _: Repartition | _: RepartitionByExpression | _: RebalancePartitions => Some(Refusal("REPARTITION"))
    case _ if readFromCache(plan) => Some(Refusal("USER_CACHED"))
    // Few rows, in one partition that is read as it is.
    case _ if form.order.isDefined && !plan.isInstanceOf[GlobalLimit] => Some(Refusal("ORDERED"))
    case _ if form.pruned => Some(Refusal("RUNTIME_FILTER"))
    case _ => None
  }
}
