package org.apache.spark.sql.regions.rules

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.{Attribute, Left => _, Right => _}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LogicalPlan, Project, Sort}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.regions.{InputListing, Refusal, SignedNode}
import org.apache.spark.sql.regions.exec._
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

/** What an entry holds, where it is read or where it is `stored`. */
private[rules] final case class EntryRows(entry: String, output: Seq[Attribute], columns: Seq[Int], stored: Boolean)
    extends LeafNode

/** Which rows a command writes to files, and how; docs/files.md. */
private[rules] object WriteIdentity {

  /**
   * Rows that are not the same whenever they are computed are still known where they are read from an entry, which holds the same
   * rows as long as it is there, and where they are stored in one while they are written.
   *
   * @param rewritten the plan that runs, with what it reads
   * @param exactly signs a plan so that rows count as equal only where they are
   * @return what is known of the write; None for a plan that writes no files
   */
  def of(
      session: SparkSession,
      query: Long,
      signed: SignedQuery,
      rewritten: LogicalPlan,
      exactly: LogicalPlan => SignedQuery): Option[Either[Refusal, RecordedWrite]] =
    signed.nodes.head.plan match {
      case command: InsertIntoHadoopFsRelationCommand =>
        val inputs = signed.inputs(written(signed))
        def write(plan: LogicalPlan, entries: Option[Seq[String]]): Either[Refusal, RecordedWrite] =
          try Right(this.write(session, query, command, exactly(plan), inputs, entries))
          catch { case refused: Refused => Left(refused.refusal) }
        Some(write(command, None).left.flatMap { why =>
          val known = ofEntries(rewritten)
          val entries = known.collect { case rows: EntryRows => rows }
          if (entries.isEmpty) Left(why)
          else write(known, Some(entries.filter(_.stored).map(_.entry))).left.map(_ => why)
        })
      case _: V1WriteCommand => Some(Left(Refusal("HIVE_SOURCE")))
      case _ => None
    }

  private def written(signed: SignedQuery): SignedNode = {
    val root = signed.nodes.head
    root.children.headOption.map(signed.nodes).getOrElse(root)
  }

  /** A plan whose leaves are also entries. What an engine computes is that which it stands for. */
  private def ofEntries(rewritten: LogicalPlan): LogicalPlan = {
    val stores = rewritten.collectWithSubqueries { case Tee(_, order) => order.entry }

    /** @param inTask whether each task that writes what is above computes the rows of one partition, and all of them */
    def known(plan: LogicalPlan, inTask: Boolean): LogicalPlan = plan match {
      // Of copies of a tee, the one that runs first stores its rows.
      case Tee(child, order) if inTask && stores.count(_ == order.entry) == 1 =>
        EntryRows(order.entry, child.output, child.output.indices, stored = true)
      case Tee(child, _) => known(child, inTask)
      case SharedSubplan(child) => known(child, inTask = false)
      case read: MaterializedRead if read.read.isInstanceOf[EngineRelation] => known(read.original, inTask = false)
      case read: MaterializedRead => known(read.read, inTask = false)
      case MaterializedRelation(output, stored, columns, _) => EntryRows(stored.entry, output, columns, stored = false)
      case _: InsertIntoHadoopFsRelationCommand | _: WriteFiles | _: Project | _: Filter =>
        plan.mapChildren(known(_, inTask))
      case sort: Sort => plan.mapChildren(known(_, inTask && !sort.global))
      case _ => plan.mapChildren(known(_, inTask = false))
    }
    known(rewritten, inTask = true)
  }

  private def write(
      session: SparkSession,
      query: Long,
      command: InsertIntoHadoopFsRelationCommand,
      signed: SignedQuery,
      inputs: Seq[InputListing],
      entries: Option[Seq[String]]): RecordedWrite = {
    val format = command.fileFormat.getClass.getName
    if (!SourceDigest.readsBack(format)) Refused("UNKNOWN_SOURCE", format)
    if (format.endsWith(".OrcFileFormat") && command.query.schema.existsRecursively(inexact))
      Refused("UNPROVEN_TYPE", "floating-point numbers in ORC")
    if (!session.sessionState.conf.plannedWriteEnabled)
      Refused("UNKNOWN_OPERATOR", "spark.sql.optimizer.plannedWrite.enabled is false")
    val node = written(signed)
    val identity = this.identity(signed, node)
    inputs.iterator.flatMap(_.unsettled).nextOption().foreach(why => throw new Refused(why))
    if (pruned(node.plan)) Refused("RUNTIME_FILTER")
    val conf = session.sessionState.newHadoopConfWithOptions(command.options)
    val folder = command.outputPath.getFileSystem(conf).makeQualified(command.outputPath)
    // How values are written may depend on them, and what is read back on that.
    val ofFormats = conf.asScala.map(each => each.getKey -> each.getValue)
      .filter { case (key, _) => key.startsWith("parquet.") || key.startsWith("orc.") }.toSeq.sorted
    val rows = Digest.of(
      "written",
      Seq(ResultConfs.seed(session), format) ++ identity ++ command.outputColumnNames ++
        ("partitioned" +: command.partitionColumns.map(_.name)) ++
        flat(SourceDigest.telling(command.options)) ++ flat(ofFormats)
    )
    new RecordedWrite(query, rows, folder, format, inputs, entries)
  }

  /**
   * Which rows come back of ORC depends on which rows share a file: its statistics know no NaN, so that a filter leaves some out, and
   * zeros beside each other get the sign of the first.
   */
  private def inexact(t: DataType): Boolean = t == FloatType || t == DoubleType

  /** The rows, and the name, type and value of each column. */
  private def identity(signed: SignedQuery, node: SignedNode): Seq[String] = node.signature match {
    case Left(Refusal("CHILD_REFUSED", code)) => Refused(code)
    case Left(why) => throw new Refused(why)
    case Right(signature) =>
      signature.lineage +: node.plan.output.zip(signature.columns).flatMap { case (a, value) =>
        Seq(a.name, a.dataType.json, a.nullable.toString, a.metadata.json, value)
      }
  }

  private def pruned(plan: LogicalPlan): Boolean =
    plan.exists(_.expressions.exists(_.exists(OperatorForms.isRuntimeFilter)))

  private def flat(pairs: Seq[(String, String)]): Seq[String] = pairs.flatMap { case (key, value) => Seq(key, value) }
}
