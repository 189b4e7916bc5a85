package org.apache.spark.sql.regions.ui.pages

/** What an operator does, in few words, out of the label that Spark gives it. */
private[pages] object OperatorWords {
  private val expressionId = """#\d+L?""".r
  private val notNull = """isnotnull\([^()]*\)""".r

  /**
   * {{{
   * Join Inner, (k#1L = m#2L)               inner, k = m
   * Aggregate [k#1L], [k#1L, count(1) AS c] by k
   * Filter (isnotnull(k#1L) AND (k#1L > 3)) k > 3
   * Sort [k#1L ASC NULLS FIRST], true       k ASC
   * }}}
   *
   * @return empty for operators of which the name says enough
   */
  def apply(operator: String, label: String): String = {
    val text = expressionId.replaceAllIn(label, "")
    val rest = text.dropWhile(_ != ' ').trim
    operator match {
      case "Join" =>
        val (kind, condition) = rest.span(_ != ',')
        Seq(kind.toLowerCase(java.util.Locale.ROOT), open(condition.drop(1).trim)).filter(_.nonEmpty).mkString(", ")
      case "Aggregate" => if (rest.contains("], [")) s"by ${list(rest)}" else "over all rows"
      case "Filter" => condition(rest)
      case "Sort" => list(rest).replace(" NULLS FIRST", "").replace(" NULLS LAST", "")
      case "GlobalLimit" | "LocalLimit" => s"$rest rows"
      case _ => ""
    }
  }

  private def list(text: String): String = text.stripPrefix("[").takeWhile(_ != ']')

  /** That a column is not null goes without saying where something else is said. */
  private def condition(text: String): String = {
    val parts = conjuncts(text)
    val telling = parts.filterNot(part => notNull.pattern.matcher(part).matches)
    (if (telling.isEmpty) parts else telling).mkString(" AND ")
  }

  private def conjuncts(text: String): Seq[String] = {
    val inner = open(text)
    val at = outerAnd(inner)
    if (at < 0) Seq(inner) else conjuncts(inner.take(at)) ++ conjuncts(inner.drop(at + 5))
  }

  /** Where the first AND outside of all brackets begins. */
  private def outerAnd(text: String): Int = {
    var depth = 0
    text.indices.find { i =>
      if (text(i) == '(') depth += 1 else if (text(i) == ')') depth -= 1
      depth == 0 && text.startsWith(" AND ", i)
    }.getOrElse(-1)
  }

  /** Without a pair of brackets around all of it. */
  private def open(text: String): String = {
    val trimmed = text.trim
    if (!trimmed.startsWith("(") || !trimmed.endsWith(")")) trimmed
    else {
      var depth = 0
      val closed = trimmed.indices.find { i =>
        if (trimmed(i) == '(') depth += 1 else if (trimmed(i) == ')') depth -= 1
        depth == 0
      }
      if (closed.contains(trimmed.length - 1)) open(trimmed.substring(1, trimmed.length - 1)) else trimmed
    }
  }
}
