package org.apache.spark.sql.regions.profile

import java.time.Instant

import org.apache.spark.sql.regions.Policy

/**
 * One operator's part in a stage.
 *
 * @param kind physical operator, "SortExec"
 * @param rows the larger of what went in and what came out
 * @param exactSeconds measured, and of this operator alone; more time of it may be unmeasured
 * @param atLeastSeconds measured, a lower bound of the whole
 * @param expressions µs that the operator's expressions take on one row ([[ExpressionCosts]])
 */
final case class StagePart(
    kind: String,
    rows: Double,
    exactSeconds: Double = 0,
    atLeastSeconds: Double = 0,
    expressions: Double = 0)

/**
 * µs of one core on one row, by operator; only their proportions matter here.
 *
 * @param fitted when the planner learned them, as it tells time; 0: they are fixed
 * @param learned by kind
 * @param expressions by which [[ExpressionCosts]] are multiplied
 * @param others by which the fixed weights are multiplied of kinds that are not among them
 */
final case class Weights(fitted: Double, learned: Map[String, Double], expressions: Double, others: Double) {
  def apply(part: StagePart): Double =
    learned.getOrElse(part.kind, Weights.fixed(part.kind) * others) + part.expressions * expressions

  def name: String = if (fitted == 0) "fixed" else s"learned ${Instant.ofEpochSecond(fitted.toLong)}"
}

object Weights {
  val fixed: Weights = Weights(0, Map.empty, 1, 1)

  def fixed(kind: String): Double = Policy.operatorWeights.getOrElse(kind,
    if (kind.contains("Python") || kind.contains("Pandas") || kind.contains("Arrow")) Policy.pythonWeight
    else Policy.otherWeight)
}

/**
 * Divides the run time of a stage over the operators that Spark fused into it (DESIGN §5). What is measured exactly
 * goes to its operator; the rest in proportion to rows × weight, but no operator gets less than its lower bound.
 *
 * {{{
 *   stage 10 s: scan (1,000 rows × 0.5, at least 6 s), filter (1,000 × 0.1), sort (500 × 0.4, 1 s exactly)
 *   rest = 10 − 1 = 9 s over 500 : 100 : 200  →  5.625 : 1.125 : 2.25; the scan's 5.625 is below 6
 *   so scan 6, and 3 s over 100 : 200         →  scan 6, filter 1, sort 2 + 1 = 3
 * }}}
 */
object Attribution {

  /** Seconds of each part; they add up to `totalSeconds`. */
  def split(
      totalSeconds: Double,
      parts: IndexedSeq[StagePart],
      weights: Weights = Weights.fixed): IndexedSeq[Double] =
    if (parts.isEmpty || totalSeconds <= 0) parts.map(_ => 0.0)
    else {
      val exact = parts.map(part => math.max(0, part.exactSeconds))
      val measured = exact.sum
      // Clocks of different granularity: what is measured inside can exceed the whole.
      if (measured >= totalSeconds) exact.map(_ * totalSeconds / measured)
      else {
        val bounds = parts.zip(exact).map { case (part, own) => math.max(0, part.atLeastSeconds - own) }
        val rest = fill(totalSeconds - measured, parts.map(part => math.max(0, part.rows) * weights(part)), bounds)
        exact.zip(rest).map { case (own, more) => own + more }
      }
    }

  /** Divides in proportion to `shares`, none below its bound. */
  private def fill(total: Double, shares: IndexedSeq[Double], bounds: IndexedSeq[Double]): IndexedSeq[Double] = {
    val bounded = bounds.sum
    if (bounded >= total) bounds.map(_ * total / bounded)
    else {
      val fixed = Array.fill(shares.size)(false)
      var result = proportion(total, shares, fixed, bounds)
      var again = true
      // Each round fixes at least one more, so it ends.
      while (again) {
        val low = shares.indices.filter(i => !fixed(i) && result(i) < bounds(i))
        low.foreach(i => fixed(i) = true)
        again = low.nonEmpty
        if (again) result = proportion(total, shares, fixed, bounds)
      }
      result
    }
  }

  private def proportion(
      total: Double,
      shares: IndexedSeq[Double],
      fixed: Array[Boolean],
      bounds: IndexedSeq[Double]): IndexedSeq[Double] = {
    val free = shares.indices.filterNot(fixed(_))
    val left = total - shares.indices.filter(fixed(_)).map(bounds).sum
    val sum = free.map(shares).sum
    shares.indices.map { i =>
      if (fixed(i)) {
        // Nobody is left to take the rest: the bounds were all there is.
        if (free.isEmpty) bounds(i) + left / shares.size else bounds(i)
      } else if (sum > 0) left * shares(i) / sum
      else left / free.size
    }
  }
}
