package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.types._

/** Turns a condition into the digests that a form keeps of it. */
private[rules] final class Conjuncts(context: ExpressionContext, digest: ExpressionDigest) {

  def apply(condition: Expression): Conjunct = {
    val own = digest(condition)
    val exists = condition.exists {
      case _: ScalarSubquery => false
      case _: SubqueryExpression => true
      case _ => false
    }
    // A filter may stand in a stored column as it is, without what it is computed from.
    val reads = if (exists) condition.references.toSeq.map(digest(_)) else Seq(own)
    val notNull = condition match {
      case IsNotNull(value) => Some(digest(value))
      case _ => None
    }
    val strict = Set.newBuilder[String]
    condition match {
      case IsNotNull(value) => below(value, strict += _)
      // Only where it holds: as a part of something else, null IN an empty subquery is false and not null.
      case InSubquery(Seq(value), _) => nonNull(value, strict += _)
      case other => nonNull(other, strict += _)
    }
    val equal = condition match {
      case EqualTo(left, right) if Conjuncts.exact(left.dataType) => Some((digest(left), digest(right)))
      case _ => None
    }
    val told = SimplePredicates(condition, own, digest)
    val given = condition.transform { case a: Attribute => a.withNullability(false) }
    val certain =
      if (!condition.nullable) Some(Set.empty[String])
      else Option.unless(given.nullable)(condition.references.map(digest(_)).toSet)
    Conjunct(own, reads.distinct, strict.result(), notNull, residual = !exists, equal, told, certain)
  }

  /** Values that are not null wherever `value` is not. */
  private def nonNull(value: Expression, add: String => Unit): Unit = {
    value match {
      case _: Literal | _: SubqueryExpression => return
      case _ => add(digest(value))
    }
    below(value, add)
  }

  private def below(value: Expression, add: String => Unit): Unit = value match {
    case _: InSubquery =>
    case Alias(child, _) => below(child, add)
    case In(child, list) if list.nonEmpty => nonNull(child, add)
    case InSet(child, set) if set.nonEmpty => nonNull(child, add)
    case other if other.nullIntolerant => other.children.foreach(nonNull(_, add))
    case _ =>
  }
}

private[rules] object Conjuncts {

  /** Whether values that compare as equal have the same bits: not zeros of two signs, nor strings under a collation. */
  private def exact(dataType: DataType): Boolean = dataType match {
    case FloatType | DoubleType => false
    case string: StringType => string.supportsBinaryEquality
    case _: NumericType | BooleanType | BinaryType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }
}

/** Normal forms of joins. */
private[rules] final class JoinForms(context: ExpressionContext) {

  def apply(join: Join, left: Form, right: Form): Form = join.joinType match {
    case _: InnerLike if (left.bases & right.bases).isEmpty => inner(join, left, right)
    case _: InnerLike => selfJoin(join, left, right)
    case LeftOuter | LeftSingle => outer(join, left, right)
    case RightOuter => outer(join, right, left)
    case FullOuter => full(join, left, right)
    case LeftSemi | LeftAnti | ExistenceJoin(_) => semi(join, left, right)
    case other => Refused("UNKNOWN_OPERATOR", s"${other.sql} join")
  }

  private def inner(join: Join, left: Form, right: Form): Form = {
    val columns = left.columns ++ right.columns
    val conjuncts = new Conjuncts(context, new ExpressionDigest(context, columns.get))
    Form(
      (left.atoms ++ right.atoms).sorted,
      left.bases ++ right.bases,
      left.conjuncts ++ right.conjuncts,
      columns,
      left.inputs ++ right.inputs,
      left.computed(context.definitions) ++ right.computed(context.definitions),
      pruned = left.pruned || right.pruned
    ).filtered(conditions(join).map(conjuncts(_)))
  }

  /** Keys first: plain Spark applies the rest to pairs of equal keys. */
  private def conditions(join: Join): Seq[Expression] =
    join.condition.toSeq.flatMap(ExpressionDigest.flatten[And](_)).sortBy(!_.isInstanceOf[EqualTo])

  /** The columns of `a` under the mark `markA`, those of `b` under `markB`. */
  private def scope(a: Form, markA: String, b: Form, markB: String): ExpressionDigest =
    new ExpressionDigest(
      context, id => a.columns.get(id).map(Digest(markA, _)).orElse(b.columns.get(id).map(Digest(markB, _))))

  private def condition(join: Join, digest: ExpressionDigest): String =
    Digest.of("on", conditions(join).map(digest(_)).distinct.sorted)

  private def marked(atom: String, mark: String, form: Form): Map[ExprId, String] =
    form.columns.map { case (id, digest) => id -> Digest(mark, atom, digest) }

  /** A product of two blocks with common sources: each keeps its filters and columns, under a mark of its own. */
  private def selfJoin(join: Join, left: Form, right: Form): Form = {
    val (first, second) = if (right.core < left.core) (right, left) else (left, right)
    val atom = Digest("product", first.core, second.core)
    def columns(mark: String, form: Form): Map[ExprId, String] =
      form.columns.map { case (id, digest) => id -> context.definitions.marked(mark + atom, digest) }
    def conjuncts(mark: String, form: Form): Iterable[Conjunct] = {
      val marked = context.definitions.marked(mark + atom, _)
      form.conjuncts.valuesIterator.map(c =>
        c.copy(
          digest = marked(c.digest),
          reads = c.reads.map(marked),
          strict = c.strict.map(marked),
          notNull = c.notNull.map(marked),
          equal = c.equal.map { case (one, other) => (marked(one), marked(other)) },
          told = c.told.map(t => t.copy(conjunct = marked(t.conjunct), column = marked(t.column)))
        )).toSeq
    }
    val all = columns("first", first) ++ columns("second", second)
    val own = new Conjuncts(context, new ExpressionDigest(context, all.get))
    def early(mark: String, form: Form) =
      form.computed(context.definitions).map(context.definitions.marked(mark + atom, _))
    OperatorForms.opaque(atom, all, Seq(left, right)).copy(early = early("first", first) ++ early("second", second))
      .filtered(conjuncts("first", first) ++ conjuncts("second", second) ++ conditions(join).map(own(_)))
  }

  private def full(join: Join, left: Form, right: Form): Form = {
    val (first, second) = if (right.lineage < left.lineage) (right, left) else (left, right)
    val on = condition(join, scope(first, "first", second, "second"))
    val atom = Digest("fullouter", first.lineage, second.lineage, on)
    OperatorForms.opaque(atom, marked(atom, "first", first) ++ marked(atom, "second", second), Seq(left, right))
  }

  /** Filters on the preserved side commute with the join; what is known of the other side ends here. */
  private def outer(join: Join, kept: Form, other: Form): Form = {
    val on = condition(join, scope(kept, "kept", other, "other"))
    val kind = if (join.joinType == LeftSingle) "single" else "outer"
    val atom = Digest(kind, kept.core, other.lineage, on)
    kept.copy(
      atoms = Vector(atom),
      bases = kept.bases + atom,
      columns = kept.columns ++ marked(atom, "optional", other),
      inputs = kept.inputs ++ other.inputs,
      order = None,
      pruned = kept.pruned || other.pruned,
      parsed = false
    )
  }

  private def semi(join: Join, left: Form, right: Form): Form = {
    val on = condition(join,
      new ExpressionDigest(
        context,
        id => left.columns.get(id).orElse(right.columns.get(id).map(Digest("other", _)))))
    val form = left.copy(
      inputs = left.inputs ++ right.inputs,
      order = None,
      pruned = left.pruned || right.pruned)
    join.joinType match {
      case ExistenceJoin(exists) =>
        form.copy(columns = form.columns + (exists.exprId -> Digest("exists", right.lineage, on)))
      case kind =>
        val joined = Conjunct(Digest(kind.sql, right.lineage, on), reads(join, left), Set.empty, None, residual = false)
        form.copy(early = left.computed(context.definitions)).filtered(Seq(joined))
    }
  }

  private def reads(join: Join, left: Form): Seq[String] =
    join.condition.toSeq.flatMap(_.references.flatMap(attribute => left.columns.get(attribute.exprId))).distinct
}
