package org.apache.spark.sql.regions.rules

import scala.collection.immutable.VectorMap
import scala.collection.mutable

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.catalyst.expressions.{ExprId, Expression}
import org.apache.spark.sql.regions.{InputListing, Refusal, Signature, wire}

/** Digests of Python functions: what they compute, not how they are pickled. */
trait UdfDigests {

  /** @return by [[UdfDigests.key]], for each of `functions` its digest or why it has none. */
  def digest(functions: Seq[PythonFunction]): Map[String, Either[Refusal, String]]
}

object UdfDigests {
  def key(function: PythonFunction): String = Digest.ofBytes(function.command.toArray)
}

/**
 * How a digest can be computed from others.
 *
 * @param inputs digests of the values that the expression reads
 * @param rebuild the expression over other expressions for `inputs`, in that order
 * @param over the expression's digest where `inputs` are other values
 * @param total whether it raises no error itself, whatever the inputs are
 */
private[rules] final case class Definition(
    inputs: Seq[String],
    rebuild: Seq[Expression] => Expression,
    over: Seq[String] => String,
    total: Boolean)

/** Every definition met while a plan is signed. */
private[rules] final class Definitions {
  private val known = mutable.HashMap[String, Definition]()
  private val markedBefore = mutable.HashMap[String, mutable.HashMap[String, String]]()

  def add(digest: String, definition: => Definition): Unit =
    if (!known.contains(digest)) known(digest) = definition

  def get(digest: String): Option[Definition] = known.get(digest)

  /** Whether it may raise an error where it is computed of a row. */
  val mayFail: String => Boolean = mayFail(Set.empty)

  /** The same where the values `given` are there already. */
  def mayFail(given: Set[String]): String => Boolean = {
    val memory = mutable.HashMap[String, Boolean]()
    def failing(digest: String): Boolean = memory.getOrElse(
      digest, {
        val found = !given(digest) && known.get(digest).exists(each => !each.total || each.inputs.exists(failing))
        memory(digest) = found
        found
      })
    failing
  }

  /**
   * The digest of the same value in the rows of one factor of a product, where the sources have the `mark` of that
   * factor. A function of marked values has the digest that it gets when it is computed above the product: Catalyst
   * moves filters and projections through it.
   */
  def marked(mark: String, digest: String): String = {
    val below = markedBefore.getOrElseUpdate(mark, mutable.HashMap.empty)
    below.getOrElse(
      digest, {
        val own = known.get(digest) match {
          case Some(definition) => definition.over(definition.inputs.map(marked(mark, _)))
          case None => Digest("marked", mark, digest)
        }
        below(digest) = own
        own
      }
    )
  }

  /** Whether `digest` is a function of the values in `given`. */
  def covers(given: Set[String]): String => Boolean = {
    // Values are shared like the nodes of a graph: without a memory, the paths through it would be walked one by one.
    val memory = mutable.HashMap[String, Boolean]()
    def covered(digest: String): Boolean = memory.get(digest) match {
      case Some(answer) => answer
      case None =>
        val answer = given.contains(digest) || known.get(digest).exists(_.inputs.forall(covered))
        memory(digest) = answer
        answer
    }
    covered
  }
}

/**
 * A filter.
 *
 * @param reads digests of the values that it reads
 * @param strict digests that cannot be null where the filter holds
 * @param notNull the value `x` of a filter `x IS NOT NULL`
 * @param residual whether it can be applied on top of stored rows
 * @param equal two values that are the same, bit for bit, where the filter holds
 * @param told what it says of one value, where it is a simple one
 * @param certain values; where none of them is null it is true or false
 */
private[rules] final case class Conjunct(
    digest: String,
    reads: Seq[String],
    strict: Set[String],
    notNull: Option[String],
    residual: Boolean,
    equal: Option[(String, String)] = None,
    told: Option[wire.Predicate] = None,
    certain: Option[Set[String]] = None)

/**
 * @param inOrder in which plain Spark applies them: one may keep the next from failing
 * @param early see [[Form]]
 * @param decided asked only where a filter may fail: those that are true or false of each row at which the ones before them are true
 */
private[rules] final class Filters(val inOrder: Seq[String], val early: Set[String], decided: => Set[String]) {
  private lazy val certain = decided

  /**
   * A filter that may fail and that plain Spark may apply to other rows than a source does which has the filters `applied` behind it.
   * Files skip rows by their statistics, plain Spark's others than a source's, and Spark goes on after a filter that is neither true nor
   * false. So others have to be before it, and to leave nothing open.
   */
  def failing(applied: String => Boolean, fails: String => Boolean): Option[String] =
    inOrder.find(digest => !applied(digest) && fails(digest)).filterNot { digest =>
      val (before, from) = inOrder.span(_ != digest)
      before.forall(certain) && from.forall(later => !applied(later) && fails(later))
    }
}

/**
 * The normal form of a plan: the filtered cross product of `atoms`.
 *
 * @param bases digests under which columns of these rows may be known; two blocks with a common one cannot be
 *   multiplied, because a digest would then mean two columns
 * @param conjuncts by digest, in the order in which plain Spark applies them
 * @param columns what the output attributes are
 * @param early values and filters that plain Spark computes of more rows than these, and that may fail on some of the others
 * @param order of rows, as a digest, where somebody asked for one
 * @param pruned a runtime filter may have removed rows that a join above removes anyway
 * @param parsed rows of a text file of which no column is chosen yet
 * @param grouping of an aggregate, at the aggregate itself
 * @param rounding what it holds of aggregates whose last digits depend on the order of rows; the signer adds those below
 */
private[rules] final case class Form(
    atoms: Vector[String],
    bases: Set[String],
    conjuncts: VectorMap[String, Conjunct],
    columns: Map[ExprId, String],
    inputs: Set[InputListing] = Set.empty,
    early: Set[String] = Set.empty,
    order: Option[String] = None,
    pruned: Boolean = false,
    parsed: Boolean = false,
    rounding: Set[String] = Set.empty,
    grouping: Option[Grouping] = None) {

  lazy val core: String = Digest.of("core", atoms)

  /** `x IS NOT NULL` says nothing new beside a filter that no null passes, and Catalyst infers it here but not there. */
  lazy val normal: VectorMap[String, Conjunct] =
    if (!conjuncts.valuesIterator.exists(_.notNull.isDefined)) {
      conjuncts
    } else {
      val strict = conjuncts.valuesIterator.flatMap(_.strict).toSet
      conjuncts.filterNot { case (_, conjunct) => conjunct.notNull.exists(strict.contains) }
    }

  lazy val filters: Filters = new Filters(
    normal.keys.toSeq,
    early,
    conjuncts.valuesIterator.foldLeft((Set.empty[String], Set.empty[String])) {
      case ((certain, given), each) if each.certain.exists(_.subsetOf(given)) =>
        (certain + each.digest, given ++ each.strict ++ each.notNull)
      case (known, _) => known
    }._1
  )

  lazy val lineage: String = Digest.of("rows", core +: filters.inOrder.sorted)

  def signature(output: Seq[ExprId]): Signature = Signature(core, filters.inOrder.sorted, output.map(columns), lineage)

  /** What becomes early where an operator above takes rows away. */
  def computed(definitions: Definitions): Set[String] =
    early ++ (columns.valuesIterator ++ conjuncts.keysIterator).filter(definitions.mayFail)

  /** What is early above an operator that has the filters `kept` below it and the others above. */
  def before(kept: String => Boolean, definitions: Definitions): Set[String] =
    early ++ conjuncts.keys.toSeq.reverse.dropWhile(!kept(_)).filter(definitions.mayFail)

  def filtered(added: Iterable[Conjunct]): Form =
    copy(conjuncts = conjuncts ++ added.map(conjunct => conjunct.digest -> conjunct))
}
