package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, AttributeSet, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.regions.{Refusal, SignedNode}

/** The rows of a node computed from a source that has them already, or more rows and other columns. */
private[rules] final class Over(definitions: Definitions, conjuncts: String => Option[Conjunct]) {

  /** @param filters of the node */
  def apply(
      node: SignedNode,
      filters: Filters,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): Either[Refusal, LogicalPlan] =
    node.signature.flatMap { signature =>
      apply(node.plan.output.zip(signature.columns), filters, source, stored, storedConjuncts)
    }

  /** @param columns what to compute, with the digests */
  def apply(
      columns: Seq[(Attribute, String)],
      filters: Filters,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): Either[Refusal, LogicalPlan] =
    try Right(rebuild(columns, filters, source, stored, storedConjuncts))
    catch { case refused: Refused => Left(refused.refusal) }

  private def rebuild(
      columns: Seq[(Attribute, String)],
      filters: Filters,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): LogicalPlan = {
    val wanted = filters.inOrder
    val foreign = storedConjuncts -- wanted
    if (foreign.nonEmpty) Refused("NOT_COVERED", s"stored rows lack those that ${foreign.min} filters out")
    val built = mutable.HashMap[String, Expression]() ++ stored
    val same = standIns(built.keySet.toSet, storedConjuncts)
    val sizes = mutable.HashMap[String, Long]()
    val fails = definitions.mayFail(built.keySet.toSet)
    def build(digest: String): Expression = built.get(digest).orElse(same.get(digest).map(build)) match {
      case Some(expression) => expression
      case None =>
        // Plain Spark raises an error that rows which are not stored are the reason of.
        if (filters.early(digest) && fails(digest)) Refused(Over.mayFail, digest)
        val definition = definitions.get(digest).getOrElse(Refused("NOT_COVERED", digest))
        val inputs = definition.inputs.map(build)
        val size = 1 + definition.inputs.map(sizes.getOrElse(_, 1L)).sum
        if (size > Over.maxExpressions) Refused("PLAN_TOO_LARGE", s"more than $size expressions for one column")
        sizes(digest) = size
        val expression = definition.rebuild(inputs)
        built(digest) = expression
        expression
    }
    filters.failing(storedConjuncts, fails).foreach(digest => Refused(Over.mayFail, s"filter $digest"))
    val conditions = wanted.filterNot(storedConjuncts).map { digest =>
      if (!conjuncts(digest).exists(_.residual)) Refused("NOT_COVERED", s"filter $digest")
      build(digest)
    }
    val filtered = conditions.reduceOption(And).fold(source)(Filter(_, source))
    Project(columns.map { case (attribute, digest) => named(attribute, build(digest), source.outputSet) }, filtered)
  }

  /** Values that are not stored, and others that equal them in every stored row: the other key of a join. */
  private def standIns(stored: Set[String], storedConjuncts: Set[String]): Map[String, String] = {
    val pairs = storedConjuncts.toSeq.sorted.flatMap(conjuncts(_)).flatMap(_.equal)
    def next(known: Map[String, String]): Map[String, String] = {
      val covered = definitions.covers(stored ++ known.keySet)
      val more = pairs.flatMap { case (one, other) => Seq(one -> other, other -> one) }
        .filter { case (absent, present) => !covered(absent) && covered(present) }
      if (more.isEmpty) known else next(known ++ more)
    }
    next(Map.empty)
  }

  private def named(attribute: Attribute, value: Expression, given: AttributeSet): NamedExpression = {
    if (ValueDigest.typeKey(value.dataType) != ValueDigest.typeKey(attribute.dataType)) {
      Refused("TYPE_MISMATCH", s"${attribute.name}: ${value.dataType.sql}, expected ${attribute.dataType.sql}")
    }
    value match {
      case same: Attribute if same.exprId == attribute.exprId =>
        same.withName(attribute.name).withMetadata(attribute.metadata).withQualifier(attribute.qualifier)
      // One id with two meanings would be merged by the next optimizer rule that collapses projections.
      case _ if given.contains(attribute) => Refused("ATTRIBUTE_CLASH", attribute.toString)
      case _ => Alias(value, attribute.name)(attribute.exprId, attribute.qualifier, Some(attribute.metadata))
    }
  }
}

private[rules] object Over {
  val mayFail = "MAY_FAIL"

  // A value used twice is written out twice, and so on at each step: such columns belong into the store.
  val maxExpressions = 5000
}
