package org.apache.spark.sql.regions.ui.pages

import scala.collection.mutable
import scala.xml.Node

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.regions.ActionKind
import org.apache.spark.sql.regions.ui.Trees._
import org.apache.spark.sql.regions.ui.picture.{Arrow, Box, Picture}
import org.apache.spark.sql.regions.ui.store.Applied

/** The plan of one query as a picture: operators in the colours of their regions, what is kept between them, and what was done. */
private[pages] final class QueryPicture(query: JsonNode) {
  import QueryPicture._
  val nodes: IndexedSeq[JsonNode] = query.items("nodes").toIndexedSeq
  private val place = nodes.zipWithIndex.map { case (node, i) => node.path("id").asInt(-1) -> i }.toMap

  /** The decision before the query ran; later ones say what turned out. */
  val main: JsonNode =
    query.items("decisions").find(isMain).getOrElse(com.fasterxml.jackson.databind.node.MissingNode.getInstance)
  private val planned: Seq[JsonNode] = main.path("regions").items("regions")
  val actions: Seq[JsonNode] = main.items("actions")
  val declines: Seq[JsonNode] = main.items("declines")

  /** Whether it is known which of Spark's stages ran which operators. */
  val ran: Boolean = nodes.exists(_.whole("region").isDefined)
  private val regionOf: Map[Int, Int] =
    if (ran) nodes.flatMap(node => node.whole("region").map(node.path("id").asInt(-1) -> _.toInt)).toMap
    else planned.flatMap(region => region.items("nodes").map(_.asInt -> region.path("id").asInt)).toMap
  private val actionAt = actions.groupBy(_.path("node").asInt(-1))
  private val declineAt = declines.groupBy(_.path("node").asInt(-1))

  /** What stands below a result that is read was not computed. */
  private val idle: Set[Int] =
    below(actions.filter(a => ActionKind.reads(a.text("kind")) && !refused(a)).map(_.path("node").asInt(-1)))

  def region(node: JsonNode): Int = regionOf.getOrElse(node.path("id").asInt(-1), 0)
  def isIdle(node: JsonNode): Boolean = idle(node.path("id").asInt(-1))

  /** What was done at a node, or why nothing was: (words, kind of the badge). */
  def done(node: JsonNode): (String, String) = {
    val id = node.path("id").asInt(-1)
    actionAt.get(id).flatMap(_.headOption).map(badge).orElse(before(node)).orElse(
      declineAt.get(id).flatMap(all => all.find(_.text("code") == observed).orElse(all.headOption)).flatMap(left))
      .getOrElse(("", ""))
  }

  private def badge(action: JsonNode): (String, String) = {
    val (kind, entry) = (action.text("kind"), action.text("entry").take(9))
    if (refused(action)) (s"⚠ no $kind: ${action.path("refusal").text("code")}", "lost")
    else kind match {
      case "load" => (s"▼ loaded $entry", "read")
      case "recall" => (s"▼ recalled $entry", "read")
      case "store" => (s"▲ stored $entry", "kept")
      case "persist" => (s"▲ persisted $entry", "kept")
      case "share" => ("⇉ computed once", "shared")
      case other => (other, "kept")
    }
  }

  /** What was put into the plan before it was signed. */
  private def before(node: JsonNode): Option[(String, String)] = entry(node).map { entry =>
    if (node.text("operator") == "Tee") (s"▲ stored ${entry.take(9)}", "kept") else (s"▼ read ${entry.take(9)}", "read")
  }

  /** Words before codes; what only follows from another choice is said in the table alone. */
  private def left(decline: JsonNode): Option[(String, String)] = {
    val (code, sentence) = (decline.text("code"), Reasons.sentence(decline.text("code")))
    if (code == observed) Some((s"◇ ${decline.text("detail")}", "would"))
    else if (follows(code)) None
    else Some((s"✕ ${if (sentence.isEmpty) code else sentence}", "declined"))
  }

  /** Rows, bytes and task-seconds, as far as Spark counted them. */
  private def measured(node: JsonNode): String = Seq(
    node.whole("rows").map(rows => f"$rows%,d ${if (rows == 1) "row" else "rows"}"),
    node.number("bytes").map(Html.shownBytes),
    node.number("seconds").map(Html.shownSeconds)
  ).flatten.mkString(" · ")

  private val allSeconds: Double = nodes.filterNot(isIdle).flatMap(_.number("seconds")).sum

  private def box(node: JsonNode, id: String): Box = {
    val (words, kind) = done(node)
    val name = s"${node.text("operator")} (${node.text("id")})"
    val facts = if (isIdle(node)) "not computed" else measured(node)
    val number = region(node)
    val inRegion = if (number > 0) s", region $number" else ""
    val share = node.number("seconds").filter(_ => allSeconds > 0).map(_ / allSeconds)
    val part = share.filter(_ >= 0.005).map(s => f"${100 * s}%.0f %% of the query's task time").getOrElse("")
    val codes = declineAt.getOrElse(node.path("id").asInt(-1), Nil).map(_.text("code")).distinct.mkString(", ")
    Box(
      boxId(id, node.text("id")),
      Seq(name, OperatorWords(node.text("operator"), node.text("label")), facts).filter(_.nonEmpty),
      if (number > 0) s"R$number" else "",
      if (number > 0 && number % 2 == 0) "even" else "",
      words,
      kind,
      isIdle(node),
      Seq(s"$name$inRegion", facts, part, words, codes, node.text("label")).filter(_.nonEmpty).mkString("\n"),
      s"#${rowId(id, node.text("id"))}",
      share.getOrElse(Double.NaN),
      share.getOrElse(0)
    )
  }

  /** Where a node is on the page: its box, or its row where what stands below a read is not drawn. */
  def link(id: String, node: String): String =
    if (drawn(node)) s"#${boxId(id, node)}" else s"#${rowId(id, node)}"

  /** In the order in which they run: those that ran, or those that were expected. */
  val regions: Seq[DrawnRegion] =
    if (ran) nodes.filter(region(_) > 0).groupBy(region).toSeq.sortBy(_._1).map { case (number, members) =>
      val children = members.flatMap(_.items("children")).flatMap(c => place.get(c.asInt(-1))).map(nodes)
      val reads = children.filter(child => !Set(0, number)(region(child))).map(c => s"${crossing(c)} of R${region(c)}")
      DrawnRegion(number, members.map(node => s"${node.text("operator")} (${node.text("id")})"), reads.distinct, None)
    }
    else planned.map { region =>
      val reads = region.items("inputs").map(input => s"${expected(input.text("label"))} of R${input.text("region")}")
      DrawnRegion(region.path("id").asInt, region.items("operators").map(_.asText), reads, region.number("seconds"))
    }

  private def expected(label: String): String =
    if (Set("shuffle", "broadcast")(label)) s"expected $label" else label

  /** What Spark materialized of a node's rows for the operator above it. */
  private def crossing(node: JsonNode): String =
    (Seq(node.text("exchange")).filter(_.nonEmpty) ++ node.number("exchangeBytes").map(Html.shownBytes)).mkString(" ")

  /** What is drawn: what ran, and for each result that was read one box for all that it spared. */
  private val shown: IndexedSeq[JsonNode] = nodes.filterNot(isIdle)

  private val drawn: Set[String] = shown.map(_.text("id")).toSet

  /** Operators below each node that reads a result, by its place in the picture. */
  private val spared: IndexedSeq[(Int, Int)] = shown.zipWithIndex.flatMap { case (node, at) =>
    // Few have only idle children: what is below all of the others need not be counted.
    val reads = node.items("children").nonEmpty && node.items("children").forall(c => idle(c.asInt(-1)))
    val count = if (reads) below(Seq(node.path("id").asInt(-1))).count(place.contains) else 0
    if (count > 0) Some((at, count)) else None
  }

  /** All nodes that stand below some, those too that were cut from the plan. */
  private def below(tops: Seq[Int]): Set[Int] = {
    def children(id: Int): Seq[Int] =
      place.get(id).toSeq.flatMap(i => nodes(i).items("children").map(_.asInt(-1)))
    val found = mutable.Set.empty[Int]
    val open = mutable.Stack.from(tops.flatMap(children))
    while (open.nonEmpty) {
      val id = open.pop()
      if (found.add(id)) open.pushAll(children(id))
    }
    found.toSet
  }

  private def boxes(id: String): IndexedSeq[Box] = shown.map(box(_, id)) ++ spared.map { case (at, count) =>
    val words = if (count == 1) "1 operator" else s"$count operators"
    Box(s"$id-spared-$at", Seq(words, "not computed"), "", "", "", "", idle = true, s"$words below were not computed",
      s"#$id-operators")
  }

  private def arrows: IndexedSeq[Arrow] = {
    val at = shown.zipWithIndex.map { case (node, i) => node.path("id").asInt(-1) -> i }.toMap
    val between = for {
      (above, to) <- shown.zipWithIndex
      child <- above.items("children")
      from <- at.get(child.asInt(-1))
    } yield arrow(shown(from), above, from, to)
    between ++ spared.zipWithIndex.map { case ((to, _), i) => Arrow(shown.size + i, to, "", kept = false) }
  }

  private def arrow(below: JsonNode, above: JsonNode, from: Int, to: Int): Arrow = {
    val label =
      if (ran) crossing(below)
      else if (region(below) == 0 || region(above) == 0 || region(below) == region(above)) ""
      else planned.find(_.path("id").asInt == region(above)).toSeq.flatMap(_.items("inputs"))
        .find(_.path("region").asInt == region(below)).map(input => expected(input.text("label"))).getOrElse("")
    Arrow(from, to, label, label.nonEmpty)
  }

  def svg(id: String): Node = Picture(
    id,
    s"Plan of query ${query.text("query")}: ${nodes.size} operators in ${regions.size} regions",
    "The table “Operators” below has the same facts in words.",
    boxes(id),
    arrows
  )

  /** Boxes at which something was done. */
  def decided: Int = shown.count(node => Seq("read", "kept", "shared", "would", "lost").contains(done(node)._2))

  /** Pixels that the picture's window should have. */
  def height: Int = math.max(200, math.min(640, 107 * depth + 30))

  private def depth: Int = {
    val at = new Array[Int](nodes.size)
    // In pre-order every parent comes before its children.
    nodes.indices.foreach { i =>
      nodes(i).items("children").flatMap(c => place.get(c.asInt(-1))).filter(_ > i).foreach(c => at(c) = at(i) + 1)
    }
    val drawn = nodes.indices.filterNot(i => isIdle(nodes(i))).map(at(_))
    if (drawn.isEmpty) 0 else drawn.max + (if (spared.isEmpty) 1 else 2)
  }
}

/**
 * Operators that run together.
 *
 * @param reads what is materialized of other regions' rows
 * @param predicted seconds on all cores
 */
private[pages] final case class DrawnRegion(
    number: Int,
    operators: Seq[String],
    reads: Seq[String],
    predicted: Option[Double])

private[pages] object QueryPicture {

  /** Decided, but not done: the mode is observe. */
  val observed = "OBSERVE_ONLY"

  /** Codes that only say that something else was chosen, or declined. */
  val follows: Set[String] =
    Set("ALREADY_STORED_ABOVE", "ALREADY_STORED_BELOW", "NOT_CHOSEN", "SUBQUERY_DECIDED", "CHILD_REFUSED")

  def boxId(picture: String, node: String): String = s"$picture-box-$node"
  def rowId(picture: String, node: String): String = s"$picture-node-$node"

  /** The entry that a node of the plan reads or writes, put there before the plan was signed. */
  def entry(node: JsonNode): Option[String] =
    if (!Set("Recycled", "Tee")(node.text("operator"))) None
    else entryOf.findFirstMatchIn(node.text("label")).map(_.group(1))
  private val entryOf = """\[entry ([^\]]+)\]""".r

  def refused(action: JsonNode): Boolean = Applied.refused(action)
}
