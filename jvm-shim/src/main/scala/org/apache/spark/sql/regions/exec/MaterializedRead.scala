package org.apache.spark.sql.regions.exec

import org.apache.hadoop.conf.Configuration

import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Statistics}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.{QueryExecution, RowToColumnarExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.regions.{InputListing, Refusal}
import org.apache.spark.sql.regions.platforms.EngineRows
import org.apache.spark.sql.regions.rules.OptimizerRuns
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * A result that is read back, or had from another engine, and the plan that it stands for.
 *
 * A query can be planned long before it runs (explain, a DataFrame collected twice), so each execution checks again what it is
 * about to read; where the source files have changed since, or the stored files are gone, `original` runs instead.
 *
 * @param read yields `output` from what was stored
 * @param original yields `output` from the sources
 * @param inputs the source files that the stored rows depend on
 * @param check why what is stored cannot be used any more
 * @param onInvalid told that reason
 * @param computes whether the query that reads it also computes it first
 * @param asPlain whether the plan above is to be plain Spark's, which depends on the sizes that Spark expects: the rows come in
 *   plain Spark's order, or are nobody's but this query's
 * @param arranged what is claimed of the rows
 * @param children the sources of `original`. They are not read: whoever looks for a query's sources goes through its plan
 */
final case class MaterializedRead(
    entry: String,
    output: Seq[Attribute],
    read: LogicalPlan,
    @transient original: LogicalPlan,
    @transient inputs: Seq[InputListing],
    @transient check: MaterializedRead.Check,
    @transient onInvalid: Refusal => Unit,
    computes: Boolean,
    asPlain: Boolean,
    @transient arranged: Option[Arranged],
    children: Seq[LogicalPlan])
    extends LogicalPlan {

  private[exec] def refusal(conf: Configuration): Option[Refusal] =
    try inputs.find(!_.unchanged()).map(i => Refusal("INPUT_CHANGED", i.describe)).orElse(check(conf))
    catch { case Failures(error) => Some(Refusal("ENTRY_DAMAGED", Failures.text(error))) }

  /** Without columns that nobody reads: the node that it stands for may have had them, as a join has those of both sides. */
  private[exec] def pruned(needed: AttributeSet): MaterializedRead = {
    val claimed = arranged.fold(AttributeSet.empty)(_.references)
    val kept = output.filter(a => needed.contains(a) || claimed.contains(a))
    if (kept.isEmpty || kept.size == output.size || read.exists(_.isInstanceOf[EngineRelation])) this
    else {
      val less = read match {
        case Project(list, child) => Project(kept.flatMap(a => list.find(_.exprId == a.exprId)), child)
        case other => Project(kept, other)
      }
      copy(output = kept, read = less, original = Project(kept, original))
    }
  }

  private def expected: LogicalPlan = if (asPlain && original != null) original else read
  override def stats: Statistics = expected.stats
  override def maxRows: Option[Long] = expected.maxRows
  override def metadataOutput: Seq[Attribute] = Nil
  override def producedAttributes: AttributeSet = outputSet

  // Otherwise columns that nobody above reads are pruned from the sources.
  @transient override lazy val references: AttributeSet = AttributeSet(children.flatMap(_.output))

  override def innerChildren: Seq[LogicalPlan] = Seq(read)
  override protected def stringArgs: Iterator[Any] = Iterator(s"[entry $entry]", output)
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): MaterializedRead =
    copy(children = newChildren)
}

object MaterializedRead {
  type Check = Configuration => Option[Refusal]

  def apply(
      entry: String,
      output: Seq[Attribute],
      read: LogicalPlan,
      original: LogicalPlan,
      inputs: Seq[InputListing],
      check: Check,
      onInvalid: Refusal => Unit,
      computes: Boolean = false,
      asPlain: Boolean = false,
      arranged: Option[Arranged] = None): MaterializedRead =
    MaterializedRead(
      entry, output, read, original, inputs, check, onInvalid, computes, asPlain, arranged, original.collectLeaves())

  /** A plan of its own: the adaptive plan around a [[MaterializedRead]] could not place stages that its logical plan lacks. */
  private[regions] def physical(session: SparkSession, original: LogicalPlan): SparkPlan = OptimizerRuns.bypass {
    QueryExecution.prepareExecutedPlan(session, session.sessionState.optimizer.execute(original.clone()))
  }

  /** The same with an adaptive execution of its own, as the query would have had: it may be all of a query, and large. */
  private[exec] def adaptive(session: SparkSession, original: LogicalPlan): SparkPlan = OptimizerRuns.bypass {
    val settled = original.clone()
    settled.setAnalyzed()
    new QueryExecution(session, settled).executedPlan
  }
}

/** Runs `child`, or the original plan where the stored rows may not be used any more, or where an engine gave none. */
final case class MaterializedReadExec(child: SparkPlan, @transient node: MaterializedRead) extends UnaryExecNode
    with Logging {
  override def output: Seq[Attribute] = child.output
  private def arranged: Option[Arranged] = if (node == null) None else node.arranged
  override def outputPartitioning: Partitioning = arranged.fold(child.outputPartitioning)(_.partitioning)
  override def outputOrdering: Seq[SortOrder] = arranged.fold(child.outputOrdering)(_.ordering)
  override def supportsColumnar: Boolean = child.supportsColumnar
  override def vectorTypes: Option[Seq[String]] = child.vectorTypes
  override def nodeName: String = if (node == null) "MaterializedRead" else s"MaterializedRead ${node.entry}"
  override protected def stringArgs: Iterator[Any] = Iterator(child)
  override def doCanonicalize(): SparkPlan = MaterializedReadExec(child.canonicalized, null)

  /** Whoever computes what is kept also pays for keeping it: that is no work of the operators below. */
  override lazy val metrics: Map[String, SQLMetric] =
    if (node == null || !node.computes) Map.empty else RowBatches.times(child).map(RowBatches.keepTime -> _).toMap

  @transient private var rows: RecheckedRDD[InternalRow] = _
  @transient private var batches: RecheckedRDD[ColumnarBatch] = _
  @transient private var kept: RDD[_] = _

  /** What `kept` is made of: the engine's rows, or the plan that runs in place of `child`. */
  @transient private var source: AnyRef = _
  @transient private var plain: SparkPlan = _

  override protected def doExecute(): RDD[InternalRow] = {
    rows = new RecheckedRDD(sparkContext, () => current(child.execute(), _.execute()))
    rows
  }

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    batches =
      new RecheckedRDD(sparkContext, () => current(child.executeColumnar(), RowToColumnarExec(_).executeColumnar()))
    batches
  }

  // Spark calls this before each action on a plan: the only chance to notice what changed since the last one.
  override def resetMetrics(): Unit = {
    super.resetMetrics()
    if (rows != null) rows.recheck()
    if (batches != null) batches.recheck()
  }

  // What an engine gave is in the driver already: no job is needed.
  override def executeCollect(): Array[InternalRow] =
    inDriver[Array[InternalRow]](_.executeCollect(), rows => rows).getOrElse(super.executeCollect())

  override def executeTake(n: Int): Array[InternalRow] =
    inDriver[Array[InternalRow]](_.executeTake(n), _.take(n)).getOrElse(super.executeTake(n))

  override def executeTail(n: Int): Array[InternalRow] =
    inDriver[Array[InternalRow]](_.executeTail(n), _.takeRight(n)).getOrElse(super.executeTail(n))

  override def executeToIterator(): Iterator[InternalRow] =
    inDriver[Iterator[InternalRow]](_.executeToIterator(), _.iterator).getOrElse(super.executeToIterator())

  override private[spark] def executeCollectIterator(): (Long, Iterator[InternalRow]) =
    inDriver[(Long, Iterator[InternalRow])](
      _.executeCollectIterator(), rows => (rows.length.toLong, rows.iterator)).getOrElse(super.executeCollectIterator())

  private def inDriver[T](plain: SparkPlan => T, rows: Array[InternalRow] => T): Option[T] = child match {
    case scan: EngineScanExec =>
      Some(synchronized(fetched(scan)).fold(plain, found => rows(scan.unpacked(found))))
    case _ => None
  }

  /** What to run now. Once the original plan ran, it stays. */
  private def current[T](stored: => RDD[T], original: SparkPlan => RDD[T]): RDD[T] = synchronized {
    val (from, made): (AnyRef, () => RDD[_]) = child match {
      // Not asked of the plan, which would answer with the rows of its first execution.
      case scan: EngineScanExec =>
        fetched(scan).fold(plan => (plan, () => original(plan)), found => (found, () => scan.rdd(found)))
      case _ => checked().fold[(AnyRef, () => RDD[_])]((child, () => stored))(plan => (plan, () => original(plan)))
    }
    if (source ne from) {
      kept = made()
      source = from
    }
    kept.asInstanceOf[RDD[T]]
  }

  /** The original plan, where what is stored may not be used. */
  private def checked(): Option[SparkPlan] = {
    if (plain == null)
      node.refusal(session.sessionState.newHadoopConf()).foreach { refusal =>
        plain = replaced(refusal, MaterializedRead.physical(session, node.original))
      }
    Option(plain)
  }

  /** The engine's rows of now, or the original plan where there are none. */
  private def fetched(scan: EngineScanExec): Either[SparkPlan, EngineRows] =
    if (plain != null) Left(plain)
    else
      node.refusal(session.sessionState.newHadoopConf()).toLeft(()).flatMap(_ => asked(scan)).left.map { refusal =>
        plain = replaced(refusal, MaterializedRead.adaptive(session, node.original))
        plain
      }

  private def asked(scan: EngineScanExec): Either[Refusal, EngineRows] =
    try scan.fetch()
    catch { case Failures(error) => Left(Refusal("ENGINE_ERROR", Failures.text(error))) }

  private def replaced(refusal: Refusal, original: => SparkPlan): SparkPlan = {
    val what = if (child.isInstanceOf[EngineScanExec]) "The statement for" else "Entry"
    logWarning(s"$what ${node.entry} is not used (${refusal.code}: ${refusal.detail}); computing it again")
    try node.onInvalid(refusal)
    catch { case Failures(error) => logWarning("An invalid entry could not be told", error) }
    session.withActive {
      val found = original
      arranged.fold(found)(_.of(found))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
