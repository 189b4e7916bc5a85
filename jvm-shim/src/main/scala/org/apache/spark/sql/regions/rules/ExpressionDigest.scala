package org.apache.spark.sql.regions.rules

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.regions.{Refusal, Signature, SparkMinor}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{CalendarInterval, UTF8String}

/** What the expressions of a whole plan are digested with. */
private[rules] final class ExpressionContext(
    val definitions: Definitions,
    val python: Map[String, Either[Refusal, String]],
    val floatAggregates: Boolean) {

  /** Signatures of the subquery plans met so far, and what their columns are. */
  val subqueries = new IdentityHashMap[QueryPlan[_], Either[Refusal, (Signature, Form)]]()
}

/**
 * Digests of the expressions of one node: equal digests mean equal values for equal rows.
 *
 * @param columns what the attributes in scope are
 * @param special digest of an expression that the node itself gives a meaning to, or null
 */
private[rules] class ExpressionDigest(
    context: ExpressionContext,
    columns: ExprId => Option[String],
    special: Expression => String = _ => null) {
  import context.definitions

  private val memo = new IdentityHashMap[Expression, String]()
  private val noLambda = Map.empty[ExprId, String]

  def apply(expression: Expression): String = {
    val known = memo.get(expression)
    if (known != null) known
    else {
      val digest = compute(expression, noLambda, 0)
      memo.put(expression, digest)
      digest
    }
  }

  private def child(expression: Expression, lambda: Map[ExprId, String], depth: Int): String =
    if (lambda.nonEmpty) compute(expression, lambda, depth + 1)
    else {
      val known = memo.get(expression)
      if (known != null) known
      else {
        val digest = compute(expression, lambda, depth + 1)
        memo.put(expression, digest)
        digest
      }
    }

  private def compute(expression: Expression, lambda: Map[ExprId, String], depth: Int): String = {
    if (depth > ExpressionDigest.maxDepth) Refused("PLAN_TOO_LARGE", s"an expression deeper than $depth")
    val own = special(expression)
    if (own != null) return own
    val digestOf = (e: Expression) => child(e, lambda, depth)
    expression match {
      case alias: Alias => digestOf(alias.child)
      case attribute: AttributeReference =>
        columns(attribute.exprId).getOrElse(Refused("OUTER_REFERENCE", attribute.name))
      case literal: Literal => literalDigest(literal)
      case variable: NamedLambdaVariable =>
        lambda.getOrElse(variable.exprId, Refused("UNDIGESTIBLE_EXPRESSION", "a lambda variable out of scope"))
      case _ =>
        check(expression)
        val digest = composite(expression, lambda, depth, digestOf)
        if (lambda.isEmpty && definable(expression)) definitions.add(digest, definition(expression, digest, digestOf))
        digest
    }
  }

  private def composite(
      expression: Expression,
      lambda: Map[ExprId, String],
      depth: Int,
      digestOf: Expression => String): String = expression match {
    case _: And => Digest.of("And", ExpressionDigest.flatten[And](expression).map(digestOf).distinct.sorted)
    case _: Or => Digest.of("Or", ExpressionDigest.flatten[Or](expression).map(digestOf).distinct.sorted)
    case EqualTo(left, right) => Digest.of("EqualTo", Seq(digestOf(left), digestOf(right)).sorted)
    case EqualNullSafe(left, right) => Digest.of("EqualNullSafe", Seq(digestOf(left), digestOf(right)).sorted)
    case GreaterThan(left, right) => Digest("LessThan", digestOf(right), digestOf(left))
    case LessThan(left, right) => Digest("LessThan", digestOf(left), digestOf(right))
    case GreaterThanOrEqual(left, right) => Digest("LessThanOrEqual", digestOf(right), digestOf(left))
    case LessThanOrEqual(left, right) => Digest("LessThanOrEqual", digestOf(left), digestOf(right))
    case In(value, list) => Digest.of("In", digestOf(value) +: list.map(digestOf).distinct.sorted)
    case InSet(value, set) =>
      val list = set.toSeq.map(item => literalDigest(Literal(item, value.dataType)))
      Digest.of("In", digestOf(value) +: list.distinct.sorted)
    case sum: Add if ExpressionDigest.commutes(sum) => commutative(sum, digestOf)
    case product: Multiply if ExpressionDigest.commutes(product) => commutative(product, digestOf)
    case GetStructField(struct, ordinal, _) => Digest("GetStructField", digestOf(struct), ordinal.toString)
    case order: SortOrder =>
      Digest("SortOrder", digestOf(order.child), order.direction.sql, order.nullOrdering.sql)
    case udf: PythonUDF =>
      if (!ExpressionDigest.scalarPython.contains(udf.evalType))
        Refused("OPAQUE_PYTHON", s"${udf.name}: ${PythonEvalType.toString(udf.evalType)}")
      python(udf, udf.dataType, udf.children.map(digestOf))
    case udf: PythonUDAF => python(udf, udf.dataType, udf.children.map(digestOf))
    case udf: ScalaUDF =>
      val encoders = (udf.inputEncoders :+ udf.outputEncoder).map(
        _.fold("none")(e => e.clsTag.runtimeClass.getName + ValueDigest.typeKey(e.schema)))
      val parts = Seq(FunctionDigest(udf.function), ValueDigest.typeKey(udf.dataType), encoders.mkString(";"))
      Digest.of("ScalaUDF", parts ++ udf.children.map(digestOf))
    case subquery: SubqueryExpression => subqueryDigest(subquery)
    case LambdaFunction(body, arguments, _) =>
      val inner = lambda ++ arguments.zipWithIndex.map { case (argument, i) =>
        val known = Digest("lambda", lambda.size.toString, i.toString, ValueDigest.typeKey(argument.dataType))
        argument.exprId -> known
      }
      Digest.of("LambdaFunction", compute(body, inner, depth + 1) +: arguments.map(a => inner(a.exprId)))
    case _ => generic(expression, digestOf)
  }

  private def commutative(operator: BinaryArithmetic, digestOf: Expression => String): String = {
    val parameters =
      operator.productIterator.filterNot(_.isInstanceOf[Expression]).map(parameter(operator, _, digestOf))
    Digest.of(
      operator.getClass.getName,
      (ValueDigest.typeKey(operator.dataType) +: parameters.toSeq) ++ operator.children.map(digestOf).sorted)
  }

  private def check(expression: Expression): Unit = {
    val name = expression.getClass.getName
    if (!name.startsWith("org.apache.spark.sql.")) Refused("UNDIGESTIBLE_EXPRESSION", name)
    if (ExpressionDigest.unstable.contains(expression.getClass.getSimpleName)) {
      Refused("NONDETERMINISTIC", expression.prettyName)
    }
    if (!expression.deterministic && expression.children.forall(_.deterministic)) {
      expression match {
        case subquery: SubqueryExpression => // the plan's own refusal says more
        case function: AggregateFunction => // AggregateDigest says whether it has one value over these rows
        case _ => Refused("NONDETERMINISTIC", expression.prettyName)
      }
    }
    expression match {
      case _: PythonUDF | _: PythonUDAF | _: ScalaUDF =>
      case udf: UserDefinedExpression => Refused("UNDIGESTIBLE_FUNCTION", udf.name)
      case _: OuterReference => Refused("OUTER_REFERENCE", expression.sql)
      case call: objects.StaticInvoke if !call.staticObject.getName.startsWith("org.apache.spark.") =>
        Refused("UNDIGESTIBLE_FUNCTION", call.staticObject.getName)
      case _ =>
    }
  }

  private def generic(expression: Expression, digestOf: Expression => String): String = {
    val dataType = expression match {
      case _: WindowFrame => "frame"
      case typed => ValueDigest.typeKey(typed.dataType)
    }
    val parts = mutable.ArrayBuffer(dataType)
    val seen = new IdentityHashMap[Expression, String]()
    def see(e: Expression): String = {
      val digest = digestOf(e)
      seen.put(e, digest)
      digest
    }
    expression.productIterator.foreach(value => parts += parameter(expression, value, see))
    expression.children.foreach(e => if (!seen.containsKey(e)) parts += digestOf(e))
    Digest.of(expression.getClass.getName, parts)
  }

  private def parameter(owner: Expression, value: Any, digestOf: Expression => String): String = {
    def all(tag: String, values: Iterator[Any]): String =
      Digest.join(tag, values.map(parameter(owner, _, digestOf)).toSeq)
    value match {
      case null => "null"
      case expression: Expression => digestOf(expression)
      case dataType: DataType => ValueDigest.typeKey(dataType)
      case field: StructField => Digest.join("field", Seq(field.name, ValueDigest.typeKey(field.dataType)))
      case _: Metadata => "metadata"
      case text: String => "s" + text
      case text: UTF8String => ValueDigest(text, StringType)
      case bytes: Array[Byte] => ValueDigest(bytes, BinaryType)
      case number: Double => ValueDigest(number, DoubleType)
      case number: Float => ValueDigest(number, FloatType)
      case plain @ (_: Boolean | _: Byte | _: Short | _: Int | _: Long | _: Char) => plain.toString
      case decimal: Decimal => ValueDigest(decimal, NullType)
      case interval: CalendarInterval => ValueDigest(interval, CalendarIntervalType)
      case cls: Class[_] => cls.getName
      case constant: Enumeration#Value => "e" + constant.toString
      case constant: Enum[_] => constant.getDeclaringClass.getName + "." + constant.name
      case None => "none"
      case Some(inner) => all("some", Iterator(inner))
      case map: scala.collection.Map[_, _] =>
        Digest.join("map", map.iterator.map { case (k, v) => all("entry", Iterator(k, v)) }.toSeq.sorted)
      case set: scala.collection.Set[_] =>
        Digest.join("set", set.iterator.map(parameter(owner, _, digestOf)).toSeq.sorted)
      case items: scala.collection.Seq[_] => all("seq", items.iterator)
      case items: Array[_] => all("seq", items.iterator)
      case id: ExprId => refuse(owner, id)
      case tree: TreeNode[_] => refuse(owner, tree)
      case product: Product if known(product) => all(product.getClass.getName, product.productIterator)
      case other: AnyRef if other.getClass.getName.endsWith("$") && known(other) => other.getClass.getName
      case other => refuse(owner, other)
    }
  }

  private def known(value: Any): Boolean = {
    val name = value.getClass.getName
    name.startsWith("org.apache.spark.") || name.startsWith("scala.Tuple")
  }

  private def refuse(owner: Expression, value: Any): Nothing =
    Refused("UNDIGESTIBLE_EXPRESSION", s"${owner.getClass.getSimpleName} with ${value.getClass.getName}")

  private def literalDigest(literal: Literal): String = {
    val value = (literal.value, literal.dataType) match {
      case (null, _) => "null"
      case (target: AnyRef, _: ObjectType) => parameter(literal, target, _ => refuse(literal, target))
      case (plain, dataType) => ValueDigest(plain, dataType)
    }
    val digest = Digest("Literal", ValueDigest.typeKey(literal.dataType), value)
    definitions.add(digest, Definition(Nil, _ => literal, _ => digest, total = true))
    digest
  }

  /** Of a Python function that is given rows, not values. */
  def ofRows(function: Expression): String = function match {
    case udf: PythonUDF =>
      check(udf)
      python(udf, udf.dataType, udf.children.map(apply))
    case other => Refused("OPAQUE_PYTHON", other.prettyName)
  }

  private def python(udf: PythonFuncExpression, dataType: DataType, arguments: Seq[String]): String = {
    if (!udf.func.broadcastVars.isEmpty) Refused("UDF_BROADCAST", udf.name)
    val function = context.python.get(UdfDigests.key(udf.func)) match {
      case Some(Right(digest)) => digest
      case Some(Left(refusal)) => throw new Refused(refusal)
      case None => Refused("UNDIGESTIBLE_FUNCTION", udf.name)
    }
    val parts = Seq(function, udf.evalType.toString, udf.func.pythonVer, ValueDigest.typeKey(dataType))
    Digest.of("PythonUDF", parts ++ arguments)
  }

  /** Columns of the subquery's rows are told from those of the outer rows, of which they may be the very same. */
  private def subqueryDigest(subquery: SubqueryExpression): String = {
    val (signature, form) = context.subqueries.get(subquery.plan) match {
      case null => Refused("OUTER_REFERENCE", subquery.prettyName)
      case Left(refusal) => Refused("CHILD_REFUSED", ExpressionDigest.rootCode(refusal))
      case Right(found) => found
    }
    val inner = new ExpressionDigest(
      context,
      id => form.columns.get(id).map(Digest("inner", _)).orElse(columns(id)),
      special)
    val conditions = subquery.children.drop(SparkMinor.outerAttrs(subquery).size).map(inner(_)).sorted
    val shape = subquery match {
      case scalar: ScalarSubquery if scalar.isCorrelated => Refused("OUTER_REFERENCE", "correlated scalar subquery")
      case _: ScalarSubquery => signature.columns.take(1)
      case query: ListQuery => signature.columns.take(query.numCols)
      case _: Exists => Nil
      case other => Refused("UNDIGESTIBLE_EXPRESSION", other.getClass.getName)
    }
    Digest.of(subquery.getClass.getName, Seq(signature.lineage, Digest.of("columns", shape)) ++ conditions)
  }

  /** The inputs of a lambda's body are those of the node's rows only where no part stands for something else. */
  private def definable(expression: Expression): Boolean = expression match {
    case _: ScalarSubquery => true
    case _: SubqueryExpression | _: LambdaFunction => false
    case _: HigherOrderFunction => !expression.exists(special(_) != null)
    case _ => true
  }

  private def definition(expression: Expression, digest: String, digestOf: Expression => String): Definition =
    expression match {
      case _: And => operands(expression, ExpressionDigest.flatten[And](expression), digestOf, _.reduce(And))
      case _: Or => operands(expression, ExpressionDigest.flatten[Or](expression), digestOf, _.reduce(Or))
      case _: HigherOrderFunction =>
        val attributes = expression.references.toSeq
        def at[T](values: Seq[T]): Map[ExprId, T] = attributes.map(_.exprId).zip(values).toMap
        Definition(
          attributes.map(digestOf),
          inputs => {
            val by = at(inputs)
            expression.transform { case attribute: AttributeReference => by.getOrElse(attribute.exprId, attribute) }
          },
          inputs => new ExpressionDigest(context, at(inputs).get, special)(expression),
          total = false
        )
      case scalar: ScalarSubquery => Definition(Nil, _ => scalar, _ => digest, total = true)
      case _ =>
        val children = expression.children.toIndexedSeq
        def same(a: Expression, b: Expression): Boolean = a eq b
        operands(
          expression,
          children,
          digestOf,
          inputs => if (children.corresponds(inputs)(same)) expression else expression.withNewChildren(inputs))
    }

  /** Literals stay in the expression; only what comes from the rows is an input. */
  private def operands(
      expression: Expression,
      all: Seq[Expression],
      digestOf: Expression => String,
      rebuild: Seq[Expression] => Expression): Definition = {
    val variable = all.filterNot(_.isInstanceOf[Literal])
    Definition(
      variable.map(digestOf),
      values => {
        val next = values.iterator
        rebuild(all.map { case literal: Literal => literal; case _ => next.next() })
      },
      values => {
        val by = new IdentityHashMap[Expression, String]()
        variable.zip(values).foreach { case (operand, value) => by.put(operand, value) }
        def given(e: Expression): String = if (by.containsKey(e)) by.get(e) else special(e)
        new ExpressionDigest(context, columns, given)(expression)
      },
      TotalExpressions.own(expression)
    )
  }
}

private[rules] object ExpressionDigest {
  val maxDepth = 500

  // Deterministic by their own account, yet of another value at another time or for another user.
  private val unstable = Set(
    "CurrentDate",
    "CurrentTimestamp",
    "Now",
    "LocalTimestamp",
    "CurrentTime",
    "CurrentBatchTimestamp",
    "CurrentUser",
    "CurrentDatabase",
    "CurrentCatalog",
    "CurrentTimeZone",
    "CurDateExpressionBuilder",
    "CallMethodViaReflection",
    "InputFileName",
    "InputFileBlockStart",
    "InputFileBlockLength"
  )

  private val scalarPython = SparkMinor.scalarArrow ++ Set(
    PythonEvalType.SQL_BATCHED_UDF,
    PythonEvalType.SQL_ARROW_BATCHED_UDF,
    PythonEvalType.SQL_SCALAR_PANDAS_UDF)

  def rootCode(refusal: Refusal): String =
    if (refusal.code == "CHILD_REFUSED") refusal.detail else refusal.code

  private def commutes(operator: BinaryArithmetic): Boolean = operator.dataType match {
    case _: IntegralType | _: DecimalType => true
    case _ => false
  }

  /** The operands of nested `And`s or `Or`s, without recursion: thousands of them are one chain. */
  def flatten[T <: BinaryOperator: scala.reflect.ClassTag](expression: Expression): Seq[Expression] = {
    val operands = mutable.ArrayBuffer[Expression]()
    val open = mutable.Stack(expression)
    while (open.nonEmpty) {
      open.pop() match {
        case operator: T =>
          open.push(operator.right)
          open.push(operator.left)
        case operand => operands += operand
      }
    }
    operands.toSeq
  }
}
