package org.apache.spark.sql.regions.rules

import java.util.IdentityHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.regions._

/** Names what each node of an optimized plan computes; see docs/protocol.md. */
object Signer extends Logging {
  val maxNodes = 5000
  val maxExpressions = 50000
  val maxDepth = 1000

  /**
   * @param plan an optimized plan, as the rules injected by `injectPreCBORule` see it
   * @param udfs asked once, for all Python functions of the plan
   * @param floatAggregates whether sums that differ in their last digits from run to run count as equal
   * @param part whether the plan is that of a subquery, signed by itself
   * @param written files that are known by what was written
   */
  def sign(
      plan: LogicalPlan,
      session: classic.SparkSession,
      udfs: UdfDigests,
      floatAggregates: Boolean,
      part: Boolean = false,
      written: KnownFiles = KnownFiles.None): SignedQuery =
    SQLConf.withExistingConf(session.sessionState.conf) {
      val definitions = new Definitions
      survey(plan) match {
        case Left(refusal) =>
          val node = SignedNode(0, plan, Nil, Left(refusal), None)
          new SignedQuery(
            Vector(node), Vector(Set.empty), Vector(new Filters(Nil, Set.empty, Set.empty)), definitions, Map.empty,
            None,
            Places.none,
            () => Map.empty, _ => None)
        case Right(functions) =>
          val python = if (functions.isEmpty) Map.empty[String, Either[Refusal, String]] else udfs.digest(functions)
          val context = new ExpressionContext(definitions, python, floatAggregates)
          new Signing(session, context, written, plan).query(plan, part)
      }
    }

  /** Counts without recursion, since a plan may be too deep for it, and collects the Python functions. */
  private def survey(root: LogicalPlan): Either[Refusal, Seq[PythonFunction]] = {
    val functions = mutable.LinkedHashMap[String, PythonFunction]()
    val byIdentity = new IdentityHashMap[PythonFunction, java.lang.Boolean]()
    val plans = mutable.Stack((root, 1))
    val expressions = mutable.Stack[Expression]()
    var nodes = 0
    var count = 0
    while (plans.nonEmpty) {
      val (plan, depth) = plans.pop()
      nodes += 1
      if (nodes > maxNodes) return Left(Refusal("PLAN_TOO_LARGE", s"more than $maxNodes operators"))
      if (depth > maxDepth)
        return Left(Refusal("PLAN_TOO_LARGE", s"more than $maxDepth operators on top of each other"))
      if (isStream(plan)) return Left(Refusal("STREAMING_SOURCE", plan.nodeName))
      plan.children.foreach(child => plans.push((child, depth + 1)))
      expressions.pushAll(plan.expressions)
      while (expressions.nonEmpty) {
        val expression = expressions.pop()
        count += 1
        if (count > maxExpressions) return Left(Refusal("PLAN_TOO_LARGE", s"more than $maxExpressions expressions"))
        expressions.pushAll(expression.children)
        expression match {
          case subquery: SubqueryExpression => plans.push((subquery.plan, depth + 1))
          case udf: PythonFuncExpression if byIdentity.put(udf.func, true) == null =>
            functions(UdfDigests.key(udf.func)) = udf.func
          case _ =>
        }
      }
    }
    Right(functions.values.toSeq)
  }

  private def isStream(plan: LogicalPlan): Boolean = plan.children.isEmpty && plan.isStreaming

  private[rules] def warn(plan: LogicalPlan, e: Throwable): Unit =
    logWarning(s"spark-regions: SIGNER_FAILED at ${plan.nodeName}; it keeps its plain plan", e)
}

/** One walk over one plan. */
private[rules] final class Signing(
    session: classic.SparkSession,
    context: ExpressionContext,
    written: KnownFiles,
    whole: LogicalPlan,
    unlisted: Boolean = false) {
  private val sources = new SourceDigest(session, ResultConfs.seed(session), written, unlisted)
  private val operators = new OperatorForms(context, sources, new DeterminedOrder(session, whole))
  private val nodes = mutable.ArrayBuffer[SignedNode]()
  private val listings = mutable.ArrayBuffer[Set[InputListing]]()
  private val rounding = mutable.ArrayBuffer[Set[String]]()
  private val filters = mutable.ArrayBuffer[Filters]()
  private val conjuncts = mutable.HashMap[String, Conjunct]()

  /** What local limits take the rows of each partition of, which alone says nothing of these rows. */
  private val limited = mutable.HashMap[Int, Either[Refusal, Form]]()

  def query(plan: LogicalPlan, part: Boolean): SignedQuery = {
    if (session.sessionState.conf.getConf(RegionsConf.sourcesWritten)) sources.prepare(
      plan.collectWithSubqueries {
        case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => files
      })
    val (_, form) = sign(plan, subqueryRoot = true)
    val inputs = nodes.map(node => node.children.take(node.plan.children.size)).toSeq
    val places = Places(nodes.map(_.children).toSeq, inputs, rounding.toSeq, part)
    val known = nodes.toVector.map { node =>
      if (node.signature.isLeft || node.notStorable.isDefined) node
      else node.copy(notStorable = places.refusal(node.id), asItIs = places.asItIs(node.id))
    }
    new SignedQuery(
      known,
      listings.toVector,
      filters.toVector,
      context.definitions,
      conjuncts.toMap,
      form.toOption,
      places,
      () => sources.all,
      Growing.of(_, sources.filesOf, sources.atomOf, withoutFiles)
    )
  }

  /** A plan's form with the files of all relations taken out, and what these are then. */
  private def withoutFiles(plan: LogicalPlan): Option[(Form, HadoopFsRelation => Option[String])] =
    SQLConf.withExistingConf(session.sessionState.conf) {
      val own = new ExpressionContext(new Definitions, context.python, context.floatAggregates)
      val other = new Signing(session, own, written, plan, unlisted = true)
      other.sign(plan)._2.toOption.map(_ -> (other.sources.atomOf(_)))
    }

  private def sign(plan: LogicalPlan, subqueryRoot: Boolean = false): (Int, Either[Refusal, Form]) = {
    val id = nodes.size
    nodes += null
    listings += Set.empty
    filters += new Filters(Nil, Set.empty, Set.empty)
    rounding += Set.empty
    val children = plan.children.map(sign(_))
    val subqueries = subqueryPlans(plan).map { inner =>
      val signed = inner.getTagValue(Signing.signedAlone).fold(sign(inner, subqueryRoot = true))(signedBefore(inner, _))
      context.subqueries.put(inner, signed._2.map(form => (form.signature(inner.output.map(_.exprId)), form)))
      // Of a part that was rewritten since, or has no normal form, nothing else tells it.
      rounding(signed._1) ++= inner.getTagValue(Signing.roundingAlone).getOrElse(Set.empty)
      signed
    }
    if (plan.isInstanceOf[LocalLimit]) limited(id) = children.head._2
    val inputs = children.map { case (child, form) =>
      if (plan.isInstanceOf[GlobalLimit]) limited.getOrElse(child, form) else form
    }
    val form = this.form(plan, inputs).map { own =>
      val below = subqueries.flatMap(_._2.toOption).flatMap(_.inputs)
      val pruned = own.pruned && !subqueryRoot
      if (below.isEmpty && pruned == own.pruned) own else own.copy(inputs = own.inputs ++ below, pruned = pruned)
    }
    rounding(id) = (children ++ subqueries).flatMap(child => rounding(child._1)).toSet ++
      form.fold(_ => Set.empty, _.rounding)
    val signature = form.flatMap { own =>
      val output = plan.output
      output.find(attribute => !own.columns.contains(attribute.exprId))
        .map(attribute => Refusal("OUTER_REFERENCE", attribute.name))
        .toLeft(own.signature(output.map(_.exprId)))
    }
    form.foreach { own =>
      listings(id) = own.inputs
      filters(id) = own.filters
      own.normal.foreach { case (digest, conjunct) => if (!conjuncts.contains(digest)) conjuncts(digest) = conjunct }
    }
    val notStorable = form.toOption.flatMap { own =>
      OperatorForms.notStorable(plan, own).orElse(own.inputs.iterator.flatMap(_.unsettled).nextOption())
    }
    nodes(id) = SignedNode(
      id,
      plan,
      (children ++ subqueries).map(_._1),
      signature,
      notStorable,
      known = sources.known(plan),
      grouping = form.toOption.flatMap(_.grouping).filter(_ => plan.isInstanceOf[Aggregate])
    )
    (id, signature.flatMap(_ => form))
  }

  /** One node for a subquery that had a decision of its own, and may hold what came of it. */
  private def signedBefore(plan: LogicalPlan, form: Form): (Int, Either[Refusal, Form]) = {
    val id = nodes.size
    val output = plan.output.map(_.exprId)
    val rounds = plan.getTagValue(Signing.roundingAlone).exists(_.nonEmpty)
    val signature =
      if (rounds && !context.floatAggregates) Left(Refusal("FLOAT_AGGREGATE", "in a subquery"))
      else if (output.forall(form.columns.contains)) Right(form.signature(output))
      else Left(Refusal("OUTER_REFERENCE", plan.nodeName))
    nodes += SignedNode(id, plan, Nil, signature, Some(Refusal("SUBQUERY_DECIDED")))
    listings += form.inputs
    filters += form.filters
    rounding += form.rounding
    (id, signature.map(_ => form))
  }

  private def form(plan: LogicalPlan, children: Seq[Either[Refusal, Form]]): Either[Refusal, Form] =
    OperatorForms.barrier(plan).map(Left(_)).getOrElse {
      children.collectFirst { case Left(refusal) => refusal } match {
        case Some(refusal) => Left(Refusal("CHILD_REFUSED", ExpressionDigest.rootCode(refusal)))
        case None =>
          try Right(operators(plan, children.collect { case Right(form) => form }))
          catch {
            case refused: Refused => Left(refused.refusal)
            case e @ (NonFatal(_) | _: LinkageError) =>
              Signer.warn(plan, e)
              Left(Refusal("SIGNER_FAILED", e.toString))
          }
      }
    }

  private def subqueryPlans(plan: LogicalPlan): Seq[LogicalPlan] =
    if (!plan.containsPattern(TreePattern.PLAN_EXPRESSION)) Nil
    else plan.expressions.flatMap(_.collect { case subquery: SubqueryExpression => subquery.plan })
}

private[rules] object Signing {

  /** Left on the root of a subquery's plan by whoever signed it by itself, before later rules took its normal form away. */
  val signedAlone: TreeNodeTag[Form] = TreeNodeTag[Form]("spark_regions.subquery")

  /** Left beside it: what the subquery's plan holds of aggregates that round. */
  val roundingAlone: TreeNodeTag[Set[String]] = TreeNodeTag[Set[String]]("spark_regions.subquery.rounding")
}
