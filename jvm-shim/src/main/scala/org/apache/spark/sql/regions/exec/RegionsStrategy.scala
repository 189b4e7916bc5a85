package org.apache.spark.sql.regions.exec

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.planning.ScanOperation
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.columnar.{InMemoryRelation, InMemoryTableScanLike}
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_COL, ShuffleExchangeExec}
import org.apache.spark.sql.regions.control.badrows.HeldRows

/**
 * Plans [[Tee]], [[SharedSubplan]], [[MaterializedRead]], [[MaterializedRelation]], [[EngineRelation]], [[TieCheck]], [[HeldRows]], and
 * writes that are [[RecordedWrite recorded]]. It checks no entry: adaptive execution plans again and again, and every execution checks
 * anyway.
 */
case class RegionsStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case tee @ Tee(child, order) =>
      Stores.register(tee.order)
      TeeExec(planLater(child), order) :: Nil

    case SharedSubplan(child) if SharedSubplan.endsWithExchange(child) => planLater(child) :: Nil

    case shared: SharedSubplan =>
      val partitioning = shared.partitioning(session.sessionState.conf.numShufflePartitions)
      ShuffleExchangeExec(partitioning, planLater(shared.child), REPARTITION_BY_COL) :: Nil

    case command @ RecordedWrite(files, write) =>
      val plain = WriteFilesExec(
        planLater(files.child), files.fileFormat, files.partitionColumns, files.bucketSpec, files.options,
        files.staticPartitions)
      val recorded = RecordedWriteExec(plain, write)
      recorded.setLogicalLink(files)
      DataWritingCommandExec(command, recorded) :: Nil

    case Project(list, recycled: MaterializedRead) => ProjectExec(list, scan(recycled, list)) :: Nil

    case Project(list, filter @ Filter(condition, recycled: MaterializedRead)) =>
      val filtered = FilterExec(condition, scan(recycled, condition +: list))
      filtered.setLogicalLink(filter)
      ProjectExec(list, filtered) :: Nil

    case recycled: MaterializedRead => scan(recycled, recycled.output) :: Nil

    case ScanOperation(projects, above, conjuncts, relation: MaterializedRelation) =>
      val needed = AttributeSet((projects ++ above ++ conjuncts).flatMap(_.references))
      val (output, columns) = relation.output.zip(relation.columns).filter { case (a, _) => needed.contains(a) }.unzip
      val pushed = conjuncts.filter(PushedFilters.pushable)
      val scan = MaterializedScanExec(output, relation.entry, columns, pushed, relation.arranged)
      val filtered = (conjuncts.reduceOption(And).toSeq ++ above).foldLeft[SparkPlan](scan) { (child, condition) =>
        FilterExec(condition, child)
      }
      val same = projects.size == output.size && projects.zip(output).forall { case (p, a) => p == a }
      (if (same) filtered else ProjectExec(projects, filtered)) :: Nil

    case check: TieCheck => TieCheckExec(planLater(check.child), check.groups, check.keys, check) :: Nil

    case HeldRows(child) => planLater(child) :: Nil

    case engine: EngineRelation =>
      EngineScanExec(engine.columns, engine.values, engine.statement, engine.limit) :: Nil

    case _ => Nil
  }

  /** @param above what is computed of its rows */
  private def scan(recycled: MaterializedRead, above: Seq[Expression]): SparkPlan = {
    val pruned = recycled.pruned(AttributeSet(above.flatMap(_.references)))
    val scan = MaterializedReadExec(read(pruned, recycled), pruned)
    scan.setLogicalLink(recycled)
    scan
  }

  // Names of its own spare a projection, which would make rows of what is kept by columns.
  private def renamed(read: LogicalPlan): LogicalPlan = read match {
    case Project(list, relation: InMemoryRelation) =>
      val names = list.collect {
        case alias @ Alias(from: Attribute, _) => from.exprId -> alias.toAttribute
        case attribute: Attribute => attribute.exprId -> attribute
      }.toMap
      if (names.size < list.size) read
      else Project(list.map(_.toAttribute), relation.withOutput(relation.output.map(a => names.getOrElse(a.exprId, a))))
    case other => other
  }

  // Adaptive execution makes a stage of each scan of cached data, and looks for the scan's logical node in order to put
  // the stage into the logical plan. It would not find one inside a MaterializedRead, and plan the same stage again, without end.
  private def read(pruned: MaterializedRead, recycled: MaterializedRead): SparkPlan =
    if (!pruned.read.exists(_.isInstanceOf[InMemoryRelation])) planLater(pruned.read)
    else {
      val plan = session.sessionState.planner.plan(renamed(pruned.read)).next()
      plan.foreach {
        case scan: InMemoryTableScanLike => scan.setTagValue(SparkPlan.LOGICAL_PLAN_TAG, recycled)
        case _ =>
      }
      plan
    }
}

object RegionsStrategy {

  /** Typed as Spark's class, so that a caller can be linked where this class cannot. */
  def of(session: SparkSession): SparkStrategy = new RegionsStrategy(session)
}
