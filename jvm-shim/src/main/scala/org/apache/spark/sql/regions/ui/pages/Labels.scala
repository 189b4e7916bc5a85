package org.apache.spark.sql.regions.ui.pages

/** What was done, in words that the pages and the line on Spark's page have in common. */
private[pages] object Labels {
  private val verbs = Seq(
    "load" -> "loaded",
    "recall" -> "recalled",
    "share" -> "shared",
    "route" -> "routed",
    "committed" -> "stored",
    "persist" -> "persisting",
    "store" -> "storing",
    "abandoned" -> "gave up",
    "fallback" -> "fell back"
  )

  /** "loaded ×3, stored", and why nothing was decided at all; empty where nothing was done. */
  def done(execution: Execution): String = {
    val counts = execution.done
    // What was stored, or given up, is not being stored any more.
    val storing = Seq("store").flatMap(counts.get).sum - Seq("committed", "abandoned").flatMap(counts.get).sum
    val open = counts.updated("store", math.max(0, storing)) - "measured"
    val others = (open.keySet -- verbs.map(_._1)).toSeq.sorted.map(kind => kind -> kind.replace('_', ' '))
    val words = (verbs ++ others).flatMap { case (kind, verb) =>
      open.get(kind).filter(_ > 0).map(n => if (n > 1) s"$verb ×$n" else verb)
    }
    (words ++ Some(execution.main.refusal).filter(_.nonEmpty)).mkString(", ")
  }

  /** "loaded ×3, 69 operators left alone" */
  def summary(execution: Execution): String = {
    val (words, left) = (done(execution), execution.declined)
    s"${if (words.isEmpty) "nothing was done" else words}, $left operator${if (left == 1) "" else "s"} left alone"
  }
}
