package org.apache.spark.sql.regions.skew

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioningLike
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.types._

/**
 * Keys to which the user has added a salt: who did that has dealt with the skew.
 *
 * A salt is a random number (`rand`, `monotonically_increasing_id`, …), the remainder of a hash, or, on the side that is
 * multiplied, an integer exploded from a constant list. It is added to something: a key that is nothing but such a value
 * is a key, and a random number that only tells which of two values to take is none of them.
 */
private[skew] object UserSalt {

  /** The salt of the shuffle's keys, as the user wrote it. */
  def of(input: ReduceInput): Option[String] = input.stage.shuffle.outputPartitioning match {
    case hash: HashPartitioningLike =>
      val defined = definitions(input.stage.plan)
      val found = hash.expressions.map(parts(_, defined)).foldLeft(Parts())(_ and _)
      found.salt.filter(_ => found.salted)
    case _ => None
  }

  /**
   * What a key is made of.
   *
   * @param salted whether there is anything besides the salt
   */
  private final case class Parts(salt: Option[String] = None, salted: Boolean = false) {
    def and(other: Parts): Parts = Parts(salt.orElse(other.salt), salted || other.salted)
  }

  private def parts(key: Expression, defined: Map[ExprId, Expression]): Parts = {
    val seen = mutable.Map.empty[ExprId, Parts]
    def all(expressions: Seq[Expression]): Parts = expressions.map(from).foldLeft(Parts())(_ and _)
    def from(expression: Expression): Parts = expression match {
      case column: Attribute => seen.getOrElse(
          column.exprId, {
            seen(column.exprId) = Parts()
            val found = defined.get(column.exprId).fold(Parts(salted = true))(from)
            seen(column.exprId) = found
            found
          })
      case generator: Generator if isList(generator) => Parts(Some(generator.prettyName))
      case random: Nondeterministic => Parts(Some(random.prettyName))
      case remainder @ (_: Pmod | _: Remainder | _: BitwiseAnd) if hashed(remainder, defined) =>
        Parts(Some(s"${remainder.prettyName} of a hash"))
      case If(_, one, other) => all(Seq(one, other))
      case CaseWhen(branches, otherwise) => all(branches.map(_._2) ++ otherwise)
      case other => all(other.children)
    }
    from(key)
  }

  private def hashed(remainder: Expression, defined: Map[ExprId, Expression]): Boolean =
    remainder.children(1).foldable && {
      val seen = mutable.Set.empty[ExprId]
      def within(expression: Expression): Boolean = expression match {
        case _: HashExpression[_] | _: Crc32 | _: Md5 | _: Sha1 | _: Sha2 => true
        case column: Attribute => defined.get(column.exprId).exists(next => seen.add(column.exprId) && within(next))
        case other => other.children.exists(within)
      }
      within(remainder.children.head)
    }

  private def isList(generator: Generator): Boolean = generator match {
    case Explode(list) =>
      list.foldable && (list.dataType match {
        case ArrayType(_: IntegralType, _) => true
        case _ => false
      })
    case _ => false
  }

  /** What each column of the plan is made of. */
  private def definitions(plan: SparkPlan): Map[ExprId, Expression] = {
    val found = mutable.Map.empty[ExprId, Expression]
    def named(expressions: Seq[NamedExpression]): Unit = expressions.foreach {
      case alias: Alias => found.getOrElseUpdate(alias.exprId, alias.child)
      case _ =>
    }
    def visit(node: SparkPlan): Unit = {
      node match {
        case project: ProjectExec => named(project.projectList)
        case aggregate: BaseAggregateExec =>
          named(aggregate.groupingExpressions)
          named(aggregate.resultExpressions)
        case generate: GenerateExec => generate.generatorOutput.foreach(column =>
            found.getOrElseUpdate(column.exprId, generate.generator))
        case reused: ReusedExchangeExec =>
          reused.output.zip(reused.child.output).foreach { case (own, other) =>
            if (own.exprId != other.exprId) found.getOrElseUpdate(own.exprId, other)
          }
          visit(reused.child)
        case stage: QueryStageExec => visit(stage.plan)
        case _ =>
      }
      node.children.foreach(visit)
    }
    visit(plan)
    found.toMap
  }
}
