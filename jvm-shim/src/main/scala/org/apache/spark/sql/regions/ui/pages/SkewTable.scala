package org.apache.spark.sql.regions.ui.pages

import scala.xml.{NodeSeq, Text}

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ui.Trees._

/** The stages of a query whose tasks would be uneven: how they were arranged, how long that took, and the share of each heavy partition. */
private[pages] object SkewTable {
  import Html._

  def apply(query: JsonNode, links: Links): NodeSeq = {
    val stages = query.items("decisions").filter(_.text("topic") == "skew")
    val measured = stages.flatMap(_.items("actions")).map(_.path("stageRun")).filter(_.isObject)
      .groupBy(_.whole("stage"))
    val rows = stages.flatMap { stage =>
      val arranged = stage.items("actions").filterNot(_.path("stageRun").isObject)
      val declines = stage.items("declines")
      if (arranged.nonEmpty) arranged.map(row(_, declines, measured, links))
      else if (declines.isEmpty) None
      else Some(alone(declines))
    }
    if (rows.isEmpty) NodeSeq.Empty
    else heading("Skewed stages", Some(rows.size)) ++
      table(
        s"regions-skew-${query.text("query")}",
        "Stages whose tasks are uneven",
        Seq(
          "Stage of" -> "",
          "Arranged" -> "",
          "Plain, predicted" -> "From the stage's start to its last task's end, as Spark had planned it",
          "Arranged, predicted" -> "The same, as it is arranged now",
          "Evenly spread" -> "The same work spread evenly over all cores: no arrangement is faster",
          "Measured" -> "From the start of the first of Spark's stages that ran it to the end of the last",
          "Heavy partitions and keys" -> "Share of the input's bytes, and of its rows by a sample, the heaviest first",
          "Not done, and why" -> ""
        ),
        rows
      )
  }

  private def row(
      action: JsonNode,
      declines: Seq[JsonNode],
      measured: Map[Option[Long], Seq[JsonNode]],
      links: Links): Seq[Cell] = {
    val makespan = action.path("makespan")
    val runs = measured.getOrElse(makespan.whole("stage"), Nil)
    Seq(
      text(action.text("operator")),
      Cell(Text(action.text("kind").replace('_', ' ')) ++ small(
        for (partitions <- makespan.whole("partitions"); tasks <- makespan.whole("tasks"))
          yield Text(s"$partitions partitions in $tasks tasks"))),
      known(makespan.number("plain")),
      known(makespan.number("predicted")),
      known(makespan.number("balanced")),
      Cell(took(runs, links), seconds(runs).map(_.toString).orElse(Some("-1"))),
      Cell(splits(action) ++ keys(runs)),
      Cell(reasons(declines))
    )
  }

  private def alone(declines: Seq[JsonNode]): Seq[Cell] =
    Seq(text(declines.head.text("operator")), text("left alone"), known(None), known(None), known(None), known(None),
      text(""), Cell(reasons(declines)))

  /** Parts may run side by side, so the times of the parts are not to be added. */
  private def seconds(runs: Seq[JsonNode]): Option[Double] = {
    val (began, ended) = (runs.flatMap(_.whole("began")), runs.flatMap(_.whole("ended")))
    for (first <- began.minOption; last <- ended.maxOption) yield (last - first) / 1000.0
  }

  private def took(runs: Seq[JsonNode], links: Links): NodeSeq =
    seconds(runs).map(s => line(shownSeconds(s))).getOrElse(
      Text("not ended")) ++ runs.sortBy(_.whole("sparkStage")).flatMap { run =>
      val (id, attempt) = (run.whole("sparkStage").getOrElse(0L), run.whole("attempt").getOrElse(0L))
      small(
        Some(<a href={links.stage(id, attempt)}>stage {id.toString}</a> ++ Text(
          s": ${seconds(Seq(run)).map(shownSeconds).getOrElse("")} in ${run.text("tasks")} tasks")))
    }

  private def small(content: Option[NodeSeq]): NodeSeq =
    content.map(c => <div class="small text-muted regions-line">{c}</div>).getOrElse(NodeSeq.Empty)

  private def reasons(declines: Seq[JsonNode]): NodeSeq = declines.map { decline =>
    <div>{decline.text("code")}: {Reasons.told(decline.text("code"), decline.text("detail"))}</div>
  }

  /** Several stages may have read the rows of a key. */
  private def keys(runs: Seq[JsonNode]): NodeSeq = runs.flatMap(_.items("keys")).distinctBy(_.text("key")).map { each =>
    val (share, error) = (100 * each.number("share").getOrElse(0.0), 100 * each.number("error").getOrElse(0.0))
    <div><code>{each.text("key")}</code> {f"$share%.1f %% of the rows (± $error%.1f %%)"}</div>
  }

  private def splits(action: JsonNode): NodeSeq = action.items("splits").map { split =>
    val percent = 100 * split.number("share").getOrElse(0.0)
    <div><span class="regions-bar" style={
      f"width: ${percent * 1.2}%.0fpx"
    } aria-hidden="true"></span>
      {
      val side = if (split.text("side").isEmpty) "the input" else s"the ${split.text("side")} input"
      f"$percent%.0f %% of $side (partition ${split.text("partition")}) to ${split.text("tasks")} tasks"
    }<div class="small text-muted">{split.text("how")}</div></div>
  }
}
