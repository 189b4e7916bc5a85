package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, ExprId, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.regions.{Refusal, Signature, SignedNode}

/** The rows of a node computed from a source that has them already, or more rows and other columns. */
private[rules] final class Over(definitions: Definitions, conjuncts: String => Option[Conjunct]) {

  def apply(
      node: SignedNode,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): Either[Refusal, LogicalPlan] =
    node.signature.flatMap { signature =>
      try Right(rebuild(node.plan.output, signature, source, stored, storedConjuncts))
      catch { case refused: Refused => Left(refused.refusal) }
    }

  private def rebuild(
      output: Seq[Attribute],
      signature: Signature,
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      storedConjuncts: Set[String]): LogicalPlan = {
    val foreign = storedConjuncts -- signature.conjuncts
    if (foreign.nonEmpty) Refused("NOT_COVERED", s"stored rows lack those that ${foreign.min} filters out")
    val (base, attributes) = withoutClashes(source, stored, output)
    val built = mutable.HashMap[String, Expression]() ++ attributes
    def build(digest: String): Expression = built.getOrElseUpdate(digest, {
      val definition = definitions.get(digest).getOrElse(Refused("NOT_COVERED", digest))
      definition.rebuild(definition.inputs.map(build))
    })
    val residual = signature.conjuncts.filterNot(storedConjuncts).map { digest =>
      if (!conjuncts(digest).exists(_.residual)) Refused("NOT_COVERED", s"filter $digest")
      build(digest)
    }
    val filtered = residual.reduceOption(And).fold(base)(Filter(_, base))
    Project(output.zip(signature.columns).map { case (attribute, digest) => named(attribute, build(digest)) }, filtered)
  }

  /** Gives fresh ids to attributes of the source whose id the output uses for something else. */
  private def withoutClashes(
      source: LogicalPlan,
      stored: Seq[(String, Attribute)],
      output: Seq[Attribute]): (LogicalPlan, Seq[(String, Attribute)]) = {
    val ids = output.iterator.map(_.exprId).toSet[ExprId]
    if (!source.output.exists(attribute => ids.contains(attribute.exprId))) {
      (source, stored)
    } else {
      val fresh = source.output.map(attribute => attribute.exprId -> Alias(attribute, attribute.name)()).toMap
      val project = Project(source.output.map(attribute => fresh(attribute.exprId)), source)
      (project, stored.map { case (digest, attribute) => digest -> fresh(attribute.exprId).toAttribute })
    }
  }

  private def named(attribute: Attribute, value: Expression): NamedExpression = {
    if (ValueDigest.typeKey(value.dataType) != ValueDigest.typeKey(attribute.dataType)) {
      Refused("TYPE_MISMATCH", s"${attribute.name}: ${value.dataType.sql}, expected ${attribute.dataType.sql}")
    }
    Alias(value, attribute.name)(attribute.exprId, attribute.qualifier, Some(attribute.metadata))
  }
}
