package org.apache.spark.sql.regions.exec

import scala.collection.mutable
import scala.util.control.ControlThrowable

import org.apache.hadoop.fs.FileStatus

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, RangePartitioning, SinglePartition}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, HashAggregateExec}
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeExec, ReusedExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python.EvalPythonExec
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions.SparkMinor
import org.apache.spark.sql.regions.rules.{Digest, KnownContents}
import org.apache.spark.sql.types._

/**
 * What decides where the rows of a physical plan are and in which order, as a text: sources with their splits, exchanges, joins,
 * sorts, aggregates. Columns, and filters that only take rows out of a sequence, are left out. Two plans of one text give their common
 * rows in the same partitions and order, where exchanges are not rearranged while they run.
 *
 * Unequal texts mean nothing; operators are listed that are known to be told completely.
 */
private[regions] object PlanShape {

  def of(plan: SparkPlan): Option[String] =
    try Some(new PlanShape().of(plan, filters = false))
    catch { case Unknown => None }

  /** What a source gives and in which splits; None for one that is not known. */
  def source(plan: SparkPlan): Option[String] = plan match {
    case scan: FileSourceScanExec => if (scan.partitionFilters.exists(hasPlan)) None else Some(files(scan))
    case range: RangeExec => Some(s"range ${range.start} ${range.end} ${range.step} ${range.numSlices}")
    case local: LocalTableScanExec =>
      val bytes = UnsafeProjection.create(local.output.map(_.dataType).toArray)
      val rows = local.rows.map(row => Digest.ofBytes(bytes(row).getBytes))
      Some(Digest.of("local", local.conf.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).fold("")(_.toString) +: rows))
    case _ => None
  }

  private def files(scan: FileSourceScanExec): String = {
    val session = scan.session
    val conf = session.sessionState.conf
    val listed = scan.relation.location.listFiles(scan.partitionFilters, Nil).flatMap(_.files).map(_.fileStatus)
    val split = splitBytes(session, listed)
    // A bucket is told by the name of its file.
    val told =
      if (scan.bucketedScan) listed.flatMap(file => Seq(file.getPath.toString, file.getLen.toString))
      else
        asRead(listed, split).flatMap(file => Seq(KnownContents.told(file), file.getLen.toString))
    val bucketed = if (scan.bucketedScan) s"${scan.optionalBucketSet} ${scan.optionalNumCoalescedBuckets}" else ""
    Digest.of(
      "files",
      Seq(
        split.toString,
        conf.filesOpenCostInBytes.toString,
        conf.filesMaxPartitionNum.toString,
        bucketed,
        SparkMinor.oneTask(scan).toString
      ) ++
        told
    )
  }

  /** The most that a split of a scan of just these files holds. */
  def splitBytes(session: SparkSession, listed: Seq[FileStatus]): Long = {
    val cost = session.sessionState.conf.filesOpenCostInBytes
    FilePartition.maxSplitBytes(session, listed.map(_.getLen + cost).sum)
  }

  /** Files in the order in which a scan reads them: the longest split first, equally long ones as listed. */
  def asRead(listed: Seq[FileStatus], splitBytes: Long): Seq[FileStatus] =
    if (listed.forall(_.getLen <= splitBytes)) listed.sortBy(-_.getLen) else listed

  private def hasPlan(expression: Expression): Boolean = expression.exists(_.isInstanceOf[PlanExpression[_]])

  private object Unknown extends ControlThrowable

  private val longestName = 500

  /** Of attributes that stand for a text. */
  private val told = ExprId(0)
}

private final class PlanShape {
  import PlanShape._

  /** What an attribute is; absent where it cannot be told. */
  private val names = mutable.HashMap.empty[ExprId, String]
  private var leaves = 0

  /** @param filters whether filters count: what an aggregate does not meet can change the order of the groups that it does */
  def of(plan: SparkPlan, filters: Boolean): String = plan match {
    case _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec | _: RowToColumnarExec | _: TeeExec |
        _: AQEShuffleReadExec | _: BroadcastExchangeExec =>
      of(plan.children.head, filters)
    case stage: QueryStageExec => of(stage.plan, filters)
    case ReusedExchangeExec(output, child) =>
      val text = of(child, filters)
      output.zip(child.output).foreach { case (to, from) => names.get(from.exprId).foreach(names(to.exprId) = _) }
      text
    case ProjectExec(list, child) => named(of(child, filters), list)
    case FilterExec(condition, child) =>
      val below = of(child, filters)
      if (filters) s"filter ${conjuncts(condition).sorted} ($below)" else below
    case python: EvalPythonExec => of(python.child, filters)
    case source if source.children.isEmpty => leaf(source)
    case aggregate: BaseAggregateExec => this.aggregate(aggregate)
    case window: WindowExec =>
      val below = of(window.child, filters)
      named(s"window ${texts(window.partitionSpec)} ${texts(window.orderSpec)} ($below)", window.windowExpression)
    case limit: WindowGroupLimitExec =>
      val below = of(limit.child, filters)
      s"first ${limit.limit} ${limit.mode} ${texts(limit.partitionSpec)} ${texts(limit.orderSpec)} ($below)"
    case sort: SortExec =>
      val below = of(sort.child, filters)
      s"sort ${sort.global} ${texts(sort.sortOrder)} ($below)"
    case shuffle: ShuffleExchangeExec =>
      val below = of(shuffle.child, filters)
      s"shuffle ${shuffle.shuffleOrigin} ${exchanged(shuffle.outputPartitioning)} ($below)"
    case CoalesceExec(number, child) => s"coalesce $number (${of(child, filters)})"
    case union: UnionExec =>
      val below = union.children.map(of(_, filters))
      union.output.zipWithIndex.foreach { case (attribute, i) =>
        val parts = union.children.map(child => names.get(child.output(i).exprId))
        if (parts.forall(_.isDefined)) names(attribute.exprId) = parts.flatten.mkString("union(", ",", ")")
      }
      s"union ${below.mkString("(", ", ", ")")}"
    case expand: ExpandExec =>
      val below = of(expand.child, filters)
      expand.output.zipWithIndex.foreach { case (attribute, i) =>
        optional(expand.projections.map(_(i))).foreach(each => names(attribute.exprId) = s"expand($each)")
      }
      s"expand ${expand.projections.size} ($below)"
    case generate: GenerateExec =>
      val below = of(generate.child, filters)
      val rows = text(generate.generator)
      generate.generatorOutput.zipWithIndex.foreach { case (a, i) => names(a.exprId) = s"generated($rows,$i)" }
      s"generate ${generate.outer} $rows ($below)"
    case join: BaseJoinExec => this.join(join, filters)
    case _ => throw Unknown
  }

  private def leaf(plan: SparkPlan): String = {
    leaves += 1
    plan.output.zipWithIndex.foreach { case (a, i) =>
      // Columns of a file by their names, since a reader skips those that nobody reads.
      names(a.exprId) = if (plan.isInstanceOf[FileSourceScanExec]) s"$leaves.${a.name}" else s"$leaves.$i"
    }
    source(plan).getOrElse(throw Unknown)
  }

  private def join(join: BaseJoinExec, filters: Boolean): String = {
    val sides = s"(${of(join.left, filters)}) (${of(join.right, filters)})"
    val kind = join match {
      // The kind of keys decides how rows of one key are chained.
      case j: BroadcastHashJoinExec => s"broadcast ${j.buildSide} ${types(j.leftKeys)} ${j.isNullAwareAntiJoin}"
      case j: ShuffledHashJoinExec if j.joinType != FullOuter => s"hashed ${j.buildSide} ${types(j.leftKeys)}"
      case j: SortMergeJoinExec => s"merge ${texts(j.leftKeys)} ${texts(j.rightKeys)}"
      case j: BroadcastNestedLoopJoinExec if j.joinType != FullOuter => s"loop ${j.buildSide}"
      case _: CartesianProductExec => "product"
      case _ => throw Unknown
    }
    val condition = if (filters) join.condition.map(conjuncts(_).sorted) else None
    s"$kind ${join.joinType} $condition $sides"
  }

  /**
   * Groups come in the order of a hash map's memory: that of their first rows, if there is one map. Generated code has a
   * second one of limited size in front, if the states are of simple types; which keys it takes depends on all that it meets.
   */
  private def aggregate(plan: BaseAggregateExec): String = {
    val below = of(plan.child, filters = true)
    val keys = texts(plan.groupingExpressions)
    plan.groupingExpressions.foreach(key => optional(Seq(key)).foreach(names(key.toAttribute.exprId) = _))
    plan.aggregateExpressions.zip(plan.aggregateAttributes).foreach { case (call, result) =>
      optional(Seq(call.aggregateFunction) ++ call.filter).foreach(each => names(result.exprId) = s"$each")
    }
    val states = plan.aggregateExpressions.flatMap(_.aggregateFunction.aggBufferAttributes.map(_.dataType))
    val maps = plan match {
      case _: HashAggregateExec if plan.groupingExpressions.nonEmpty => states.map(state).distinct.sorted
      case _ => Nil
    }
    val modes = plan.aggregateExpressions.map(_.mode.toString).distinct.sorted
    named(s"${plan.nodeName} $keys $modes $maps ($below)", plan.resultExpressions)
  }

  private def state(dataType: DataType): String = dataType match {
    case decimal: DecimalType => if (DecimalType.isByteArrayDecimalType(decimal)) "other" else "simple"
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | DateType |
        TimestampType | TimestampNTZType | _: StringType =>
      "simple"
    case _ => "other"
  }

  private def exchanged(partitioning: Partitioning): String = partitioning match {
    case HashPartitioning(keys, number) => s"hash ${texts(keys)} $number"
    case RangePartitioning(order, number) => s"range ${texts(order)} $number"
    case SinglePartition => "single"
    case _ => throw Unknown
  }

  private def named(text: String, list: Seq[NamedExpression]): String = {
    list.foreach {
      case alias: Alias => optional(Seq(alias.child)).foreach(names(alias.exprId) = _)
      case _ =>
    }
    text
  }

  private def conjuncts(condition: Expression): Seq[String] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case one => Seq(text(one))
  }

  private def types(keys: Seq[Expression]): String = keys.map(_.dataType.sql).mkString("[", ",", "]")

  private def texts(expressions: Seq[Expression]): String = expressions.map(text).mkString("[", ",", "]")

  private def optional(expressions: Seq[Expression]): Option[String] =
    try Some(texts(expressions))
    catch { case Unknown => None }

  private def text(expression: Expression): String = {
    if (hasPlan(expression) || expression.exists(_.isInstanceOf[PythonFuncExpression])) throw Unknown
    val text = expression.transform {
      case alias: Alias => alias.child
      // Of its type: some functions are made otherwise for another one.
      case a: Attribute =>
        AttributeReference(names.getOrElse(a.exprId, throw Unknown), a.dataType, a.nullable)(told)
    }
    val whole = text.toString
    if (whole.length <= longestName) whole else Digest.of("text", Seq(whole))
  }
}
