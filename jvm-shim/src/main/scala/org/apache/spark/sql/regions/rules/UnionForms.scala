package org.apache.spark.sql.regions.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical.Union

/**
 * Normal forms of unions. Catalyst pushes a filter of a union, and what is computed of its columns, into each of its branches; here
 * they are the union's again, so that the whole union serves a part of it.
 *
 * {{{
 *   Union                                    v > 3
 *     Filter v > 3                             Union
 *       january                    →             january
 *     Filter w > 3                               february (v is w)
 *       february
 * }}}
 *
 * A value of the union's rows is named by what it is in each branch. Where all branches compute it alike, it is that function of such
 * values. Filters of the branches that are alike but for what they are applied to are a filter of the union; which ones are taken
 * together where there are several does not matter for the rows.
 */
private[rules] final class UnionForms(definitions: Definitions) {

  def apply(union: Union, forms: Seq[Form]): Form = {
    val found = inOrder(forms.head, alike(forms, _.notNull.isEmpty))
    // One may keep the next from failing, in each branch.
    val filters = if (forms.indices.forall(i => isInOrder(forms(i), found.map(_(i))))) found else Nil
    val less = without(forms, filters)
    val notNull = alike(less, _.notNull.isDefined)
    val lifted = inOrder(forms.head, filters ++ notNull)
    val kept = without(less, notNull)
    val rest = kept.map(_.lineage)
    // In the order of what they are, so that theirs in the plan does not matter.
    val order = rest.indices.sortBy(rest)
    val atom = Digest.of("union", order.map(rest))
    val values = new Values(atom)
    val columns = union.output.zipWithIndex.map { case (attribute, at) =>
      attribute.exprId -> values(order.map(i => forms(i).columns(union.children(i).output(at).exprId)))
    }
    val early = order.map(i => forms(i).before(kept(i).conjuncts.contains, definitions))
    val filtered = lifted.map { each =>
      val conjunct = new Values(atom).conjunct(order.map(each))
      conjunct -> order.zip(early).exists { case (i, before) => before(each(i).digest) }
    }
    OperatorForms.opaque(atom, columns.toMap, forms)
      .copy(early = values.early(early) ++ filtered.collect { case (conjunct, true) => conjunct.digest })
      .filtered(filtered.map(_._1))
  }

  /** Filters of the branches, each with those of the other ones. */
  private def alike(forms: Seq[Form], wanted: Conjunct => Boolean): Seq[Seq[Conjunct]] = {
    def movable(c: Conjunct) = c.residual && c.reads == Seq(c.digest) && wanted(c)
    val groups = forms.map(_.conjuncts.valuesIterator.filter(movable).toSeq.groupBy(c => shape(c.digest)))
    groups.map(_.keySet).reduce(_ & _).toSeq.flatMap { of =>
      val least = groups.map(_(of).size).min
      // Those that were pushed are behind the branch's own.
      groups.map(_(of).takeRight(least)).transpose
    }
  }

  private def inOrder(first: Form, lifted: Seq[Seq[Conjunct]]): Seq[Seq[Conjunct]] = {
    val place = first.conjuncts.keys.zipWithIndex.toMap
    lifted.sortBy(each => place(each.head.digest))
  }

  private def isInOrder(form: Form, lifted: Seq[Conjunct]): Boolean = {
    val wanted = lifted.map(_.digest)
    form.conjuncts.keys.filter(wanted.toSet).toSeq == wanted
  }

  /** The same for one operator with the same literals, whatever it is applied to. */
  private def shape(digest: String): String =
    definitions.get(digest).fold("value")(of => of.over(of.inputs.map(_ => "value")))

  /** That a value is not null is often found out from a filter, in one branch and not in another. */
  private def without(forms: Seq[Form], lifted: Seq[Seq[Conjunct]]): Seq[Form] = forms.zipWithIndex.map {
    case (form, i) =>
      val gone = lifted.map(_(i))
      val (digests, strict) = (gone.map(_.digest).toSet, gone.flatMap(_.strict).toSet)
      form.copy(
        conjuncts =
          form.conjuncts.filterNot { case (digest, c) => digests(digest) || c.notNull.exists(strict) })
  }

  /** Of the union's rows. */
  private final class Values(atom: String) {
    private val known = mutable.HashMap[Seq[String], String]()

    /** @param each what it is in the branches, by their order in the atom */
    def apply(each: Seq[String]): String = known.get(each) match {
      case Some(found) => found
      case None =>
        val found = function(each).getOrElse(Digest.of("branches", atom +: each))
        known(each) = found
        found
    }

    /** @param branches what is early in them */
    def early(branches: Seq[Set[String]]): Set[String] =
      known.collect { case (each, own) if branches.zip(each).exists { case (before, d) => before(d) } => own }.toSet

    private def function(each: Seq[String]): Option[String] = {
      val parts = each.flatMap(definitions.get)
      Option.when(parts.size == each.size && parts.map(_.inputs.size).distinct.size == 1) {
        val inputs = parts.map(_.inputs).transpose.map(apply)
        parts.map(_.over(inputs)).distinct
      }.collect { case Seq(one) => one }
    }

    def conjunct(each: Seq[Conjunct]): Conjunct = {
      val (digest, first) = (apply(each.map(_.digest)), each.head)
      // What one branch has twice can be two values of the union.
      val up = known.toSeq.groupMap(_._1.head)(_._2).collect { case (own, Seq(one)) => own -> one }
      Conjunct(
        digest,
        Seq(digest),
        first.strict.flatMap(up.get),
        first.notNull.flatMap(up.get),
        residual = true,
        first.equal.flatMap { case (one, other) => up.get(one).zip(up.get(other)) },
        first.told.flatMap(t => up.get(t.column).map(column => t.copy(conjunct = digest, column = column))),
        first.certain.map(_.map(value => up.getOrElse(value, value)))
      )
    }
  }
}
