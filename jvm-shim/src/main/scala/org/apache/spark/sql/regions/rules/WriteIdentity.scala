package org.apache.spark.sql.regions.rules

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.regions.{Refusal, SignedNode}
import org.apache.spark.sql.regions.exec.RecordedWrite
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

/** Which rows a command writes to files, and how; docs/files.md. */
private[rules] object WriteIdentity {

  /**
   * @param exact signs anew where floating-point aggregates count as equal although they are not
   * @return what is known of the write; None for a plan that writes no files
   */
  def of(
      session: SparkSession,
      query: Long,
      signed: SignedQuery,
      exact: => SignedQuery): Option[Either[Refusal, RecordedWrite]] =
    signed.nodes.head.plan match {
      case command: InsertIntoHadoopFsRelationCommand =>
        Some(
          try Right(write(session, query, command, exact))
          catch { case refused: Refused => Left(refused.refusal) })
      case _: V1WriteCommand => Some(Left(Refusal("HIVE_SOURCE")))
      case _ => None
    }

  private def write(
      session: SparkSession,
      query: Long,
      command: InsertIntoHadoopFsRelationCommand,
      signed: SignedQuery): RecordedWrite = {
    val format = command.fileFormat.getClass.getName
    if (!SourceDigest.readsBack(format)) Refused("UNKNOWN_SOURCE", format)
    if (format.endsWith(".OrcFileFormat") && command.query.schema.existsRecursively(inexact))
      Refused("UNPROVEN_TYPE", "floating-point numbers in ORC")
    if (!session.sessionState.conf.plannedWriteEnabled)
      Refused("UNKNOWN_OPERATOR", "spark.sql.optimizer.plannedWrite.enabled is false")
    val root = signed.nodes.head
    val node = root.children.headOption.map(signed.nodes).getOrElse(root)
    val identity = this.identity(signed, node)
    val inputs = signed.inputs(node)
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
    new RecordedWrite(query, rows, folder, format, inputs)
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
