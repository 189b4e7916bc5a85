package org.apache.spark.sql.regions.rules.actions

import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeReference,
  AttributeSet,
  Expression,
  NamedExpression,
  PythonFuncExpression,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, DeclarativeAggregate}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.regions.{Counters, Refusal, RegionsConf, SignedNode, wire}
import org.apache.spark.sql.regions.exec.{EngineRelation, EngineStatement, MaterializedRead}
import org.apache.spark.sql.regions.platforms.{Asked, EngineInput, TypedPlan}
import org.apache.spark.sql.regions.rules.{OrderCheck, SharedPoint, SignedQuery}
import org.apache.spark.sql.types._

/** A statement of another engine in the place of the node and of all that is below it. */
private[rules] object RouteApplier extends ActionApplier[wire.Route] {
  override val replaces = true

  override def subject(action: wire.Route): Option[String] = Some(action.platform)

  override def misplaced(check: OrderCheck, node: SignedNode, action: wire.Route): Option[String] = {
    // Of the same sort of other rows, too: where rows were ties, it is likely that some are again.
    val tied = check.order.sorted(node).exists(check.runtime.recycling.ties.contains)
    Option.when(tied || !check.order.unread(node))(Applying.rowOrder)
  }

  def apply(query: Applying, node: SignedNode, plan: LogicalPlan, action: wire.Route): Either[Refusal, LogicalPlan] =
    (if (action.ordered && query.order.asked(node)) Right(query.unordered(node)) else query.reorder(node))
      .flatMap(_ => computed(query, query.signed, query.inputs, node, action))

  /** A node of a DataFrame which is computed in the place of a part of the query, and that node's place in it. */
  def inside(query: Applying, frame: SharedPoint, action: wire.Route): Either[Refusal, (Int, LogicalPlan)] =
    for {
      own <- frame.places(query.signed).toMap.get(action.node).toRight(Refusal("NOT_COVERED", action.node.toString))
      plan <- computed(
        query, frame.signed, frame.typed().fold(Map.empty[Int, EngineInput])(_.inputs), frame.signed.nodes(own), action)
    } yield own -> plan

  /** @param within the plan of the node, the query's or a DataFrame's, and what an engine can read of it */
  private def computed(
      query: Applying,
      within: SignedQuery,
      readable: Map[Int, EngineInput],
      node: SignedNode,
      action: wire.Route): Either[Refusal, LogicalPlan] =
    for {
      statement <- statement(query, readable, action)
      columns <- columns(action)
      values <- values(node, action, columns)
      inputs = within.inputsBelow(node)
      _ <- Either.cond(inputs.nonEmpty, (), Refusal("NOT_COVERED", "no files"))
    } yield {
      query.runtime.counters.add(Counters.routes)
      val engines = query.runtime.engines
      val flag = Option.when(action.tied)(StructField("tied", BooleanType))
      val schema = StructType(columns.map(column => StructField(column.name, column.dataType)) ++ flag)
      val asked =
        Asked(query.notes.query, action.node, action.platform, statement, schema, action.tied, action.limit)
      val settled = inputs.forall(_.unsettled.isEmpty)
      val relation = EngineRelation(
        columns,
        values,
        new EngineStatement(action.platform, settled, () => engines.rows(asked)),
        action.rows.toLong,
        action.bytes.toLong,
        action.limit)
      lazy val sorted = query.order.sorted(query.signed.nodes(action.node))
      // Whether it can be used turns out when it is asked.
      val check: MaterializedRead.Check = _ => None
      def failed(refusal: Refusal): Unit = {
        val recycling = query.runtime.recycling
        recycling.ranInSpark(query.notes.query, action.platform, refusal)
        if (refusal.code == "TIED") sorted.foreach(recycling.tied(query.notes.query, _))
      }
      // With other sizes Spark might build a join from its other side, and compute there what raises, or no longer.
      MaterializedRead(
        action.platform, node.plan.output, relation, node.plan, inputs, check, failed(_), asPlain = true)
    }

  /** The request, with the files that the driver knows. */
  private def statement(
      query: Applying,
      inputs: Map[Int, EngineInput],
      action: wire.Route): Either[Refusal, wire.RunStatement] = {
    val conf = query.session.sessionState.conf
    val found = action.tables.map(table => table -> inputs.get(table.node))
    // A table of the statement can stand for more relations of the same files.
    val rebase = inputs.values.map(_.rebase).toSeq.distinct
    val bytes = found.flatMap(_._2).map(_.bytes).sum
    for {
      tables <- all(
        found.map {
          case (table, Some(input)) => input.table(table.columns, table.partition).map(table.name -> _)
          case (table, None) => Left(Refusal("NOT_COVERED", table.name))
        })
      _ <- Either.cond(
        bytes <= conf.getConf(RegionsConf.platformsMaxInputBytes), (), Refusal("INPUT_TOO_LARGE", bytes.toString))
      // One setting for all files of a statement.
      _ <- Either.cond(rebase.size <= 1, (), Refusal("REBASE_MODES", rebase.mkString(", ")))
    } yield wire.RunStatement(
      s"${query.notes.query}.${action.node}",
      action.sql,
      tables.toMap,
      action.columns.map(_.dataType) ++ Option.when(action.tied)(BooleanType.sql),
      math.min(action.limitBytes, conf.getConf(RegionsConf.platformsMaxResultBytes)),
      math.min(action.deadlineSeconds, conf.getConf(RegionsConf.platformsTimeout) / 1000.0),
      action.zone,
      rebase.headOption.getOrElse("CORRECTED"),
      action.disabled
    )
  }

  /** What the statement gives, in attributes of its own. */
  private def columns(action: wire.Route): Either[Refusal, Seq[Attribute]] =
    all(
      action.columns.zipWithIndex.map { case (column, i) =>
        typed(column.dataType).map(AttributeReference(s"c$i", _)()).toRight(
          Refusal("TYPE_NOT_STORABLE", column.dataType))
      })

  /** Of those that Spark's ArrowColumnVector reads in one form. Spark's parser takes a second when it is first asked. */
  private def typed(name: String): Option[DataType] = name match {
    case decimal(precision, scale) => Some(DecimalType(precision.toInt, scale.toInt))
    case other => named.get(other)
  }

  private val decimal = raw"DECIMAL\((\d+),(\d+)\)".r
  private val named = Seq(BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DateType,
    TimestampType, TimestampNTZType, BinaryType, StringType).map(each => each.sql -> each).toMap[String, DataType]

  /** The node's output over the statement's columns. */
  private def values(
      node: SignedNode,
      action: wire.Route,
      columns: Seq[Attribute]): Either[Refusal, Seq[NamedExpression]] = {
    val named = action.columns.map(_.attribute).zip(columns).toMap
    val found = TypedPlan.asRun(node.plan) match {
      case aggregate: Aggregate if action.finish.nonEmpty => finished(aggregate, action, columns)
      case _ if action.finish.nonEmpty => Left(Refusal("NOT_COVERED", node.operator))
      case other => all(
          other.output.map { attribute =>
            named.get(attribute.exprId.id.toString).toRight(Refusal("NOT_COVERED", attribute.name))
              .map(Alias(_, attribute.name)(attribute.exprId, attribute.qualifier, Some(attribute.metadata)))
          })
    }
    found.flatMap { values =>
      val misfit = values.zip(node.plan.output).find { case (value, a) => value.dataType != a.dataType }
      val ours = values.size == node.plan.output.size && misfit.isEmpty
      Either.cond(ours, values, Refusal("TYPE_MISMATCH", misfit.fold("")(_._2.name)))
    }
  }

  /** An aggregate's result over its keys, and over the values of its functions or what these are made of. */
  private def finished(
      aggregate: Aggregate,
      action: wire.Route,
      columns: Seq[Attribute]): Either[Refusal, Seq[NamedExpression]] = {
    val calls = aggregate.aggregateExpressions.flatMap(_.collect { case call: AggregateExpression => call })
    val keys = aggregate.groupingExpressions
    for {
      parts <- all(action.finish.map(part => value(part, calls.lift(part.function), columns).map(part.function -> _)))
      known = parts.toMap
      _ <- Either.cond(
        calls.indices.forall(known.contains) && columns.size >= keys.size, (), Refusal("NOT_COVERED", "functions"))
      values = aggregate.aggregateExpressions.map(over(_, calls, known, keys.zip(columns)))
      _ <- Either.cond(
        values.forall(own => own.deterministic && !own.exists(apart) && own.references.subsetOf(AttributeSet(columns))),
        (),
        Refusal("NOT_COVERED", "an expression of the result")
      )
    } yield values
  }

  /** What is evaluated elsewhere than in a projection. */
  private def apart(expression: Expression): Boolean = expression match {
    case _: PythonFuncExpression | _: SubqueryExpression | _: AggregateExpression => true
    case _ => false
  }

  /** A function's value: as it came, or as the function itself makes it of its buffer. */
  private def value(
      part: wire.FinishedFunction,
      call: Option[AggregateExpression],
      columns: Seq[Attribute]): Either[Refusal, Expression] = {
    val given = part.columns.flatMap(columns.lift(_))
    def types(wanted: Seq[Expression]): Boolean = wanted.map(_.dataType) == given.map(_.dataType)
    call.map(_.aggregateFunction) match {
      case Some(function) if !part.buffers && types(Seq(function)) => Right(given.head)
      case Some(function: DeclarativeAggregate) if part.buffers && types(function.aggBufferAttributes) =>
        val buffer = function.aggBufferAttributes.map(_.exprId).zip(given).toMap
        Right(function.evaluateExpression.transform { case a: AttributeReference => buffer.getOrElse(a.exprId, a) })
      case _ => Left(Refusal("NOT_COVERED", s"function ${part.function}"))
    }
  }

  private def over(
      result: NamedExpression,
      calls: Seq[AggregateExpression],
      known: Map[Int, Expression],
      keys: Seq[(Expression, Attribute)]): NamedExpression = {
    def made(expression: Expression): Expression = expression match {
      case call: AggregateExpression => known(calls.indexWhere(each => (each eq call) || each.semanticEquals(call)))
      case other =>
        keys.collectFirst { case (key, column) if key.semanticEquals(other) => column }
          .getOrElse(other.mapChildren(made))
    }
    made(result) match {
      case alias: Alias => alias
      case value => Alias(value, result.name)(result.exprId, result.qualifier, Some(result.metadata))
    }
  }

  private def all[T](each: Seq[Either[Refusal, T]]): Either[Refusal, Seq[T]] =
    each.collectFirst { case Left(refusal) => Left(refusal) }.getOrElse(Right(each.collect { case Right(one) => one }))
}
