package org.apache.spark.sql.regions.ui.pages

import java.util.Locale

import scala.xml.{Node, NodeSeq, Text}

import org.apache.spark.ui.UIUtils

/** A cell with the value that it is sorted by, where that is not its text. */
private[pages] final case class Cell(content: NodeSeq, key: Option[String] = None)

/** The pages' common parts, with the classes that Spark's own pages use. */
private[pages] object Html {
  def text(value: String): Cell = Cell(Text(value))
  def count(value: Long): Cell = Cell(Text(String.format(Locale.US, "%,d", Long.box(value))), Some(value.toString))

  /** Negative, or not a number: unknown. */
  def seconds(value: Double): Cell =
    if (value.isNaN) Cell(Text(""), Some("-1")) else Cell(line(shownSeconds(value)), Some(value.toString))

  def known(value: Option[Double]): Cell = seconds(value.getOrElse(Double.NaN))

  /** Empty, and sorted first, where it is not known. */
  def counted(value: Option[Long]): Cell = value.map(count).getOrElse(unknown)
  def sized(value: Option[Double]): Cell = value.map(size).getOrElse(unknown)
  private val unknown = Cell(Text(""), Some("-1"))

  def size(value: Double): Cell = Cell(line(shownBytes(value)), Some(value.toString))

  def time(millis: Long): Cell =
    if (millis <= 0) Cell(Text(""), Some("0")) else Cell(line(UIUtils.formatDate(millis)), Some(millis.toString))

  /** Never broken over two lines. */
  def line(text: String): NodeSeq = <span class="regions-line">{text}</span>

  /** Long names by their beginning; the whole is there for a pointer, a screen reader, and to be copied. */
  def digest(name: String): NodeSeq =
    if (name.length <= 12) <span class="regions-digest">{name}</span>
    else <span class="regions-digest" title={name}>{name.take(11)}…</span>

  def shownSeconds(value: Double): String =
    if (value == 0) "0 s"
    else if (math.abs(value) >= 100) f"$value%.0f s"
    else if (math.abs(value) >= 0.1) f"$value%.1f s"
    else f"${value * 1000}%.0f ms"

  def shownMillis(value: Double): String = shownSeconds(value / 1000)

  /** Three or four digits: 591 B, 98.8 KiB, 132 KiB. */
  def shownBytes(value: Double): String =
    if (math.abs(value) < 1000) f"$value%.0f B"
    else {
      val (number, unit) = units.map { case (name, bytes) => (value / bytes, name) }
        .find { case (number, _) => math.abs(number) < 999.5 }.getOrElse((value / units.last._2, units.last._1))
      if (math.abs(number) < 99.95) f"$number%.1f $unit" else f"$number%.0f $unit"
    }

  private val units = Seq("KiB", "MiB", "GiB", "TiB", "PiB").zipWithIndex.map { case (name, i) =>
    name -> math.pow(1024, i + 1.0)
  }

  /** A setting or counter as a person reads it: bytes and milliseconds by the end of their names, or of their values. */
  def shownValue(name: String, value: String): String = (name, value) match {
    case (_, plain(number, "b")) => shownBytes(number.toDouble)
    case (_, plain(number, "ms")) => shownLong(number.toDouble / 1000)
    case (bytes, plain(number, "")) if bytes.toLowerCase(Locale.ROOT).endsWith("bytes") => shownBytes(number.toDouble)
    case (millis, plain(number, "")) if millis.endsWith("Millis") => shownMillis(number.toDouble)
    case _ => value
  }

  private val plain = "([0-9]{1,18})(b|ms|)".r

  def shownLong(seconds: Double): String =
    if (seconds < 120) shownSeconds(seconds)
    else if (seconds < 7200) f"${seconds / 60}%.0f min"
    else if (seconds < 172800) f"${seconds / 3600}%.0f h"
    else f"${seconds / 86400}%.0f d"

  /** "1 operator", "3 operators". */
  def counted(number: Int, noun: String): String = counted(number, noun, noun + "s")
  def counted(number: Int, one: String, several: String): String = s"$number ${if (number == 1) one else several}"

  /** How an execution stands, as Spark's own pages show it. */
  def badge(status: String, seconds: Option[Double] = None): NodeSeq = {
    val (colour, words) = status match {
      case "ok" => ("text-bg-success", "ok")
      case "failed" => ("text-bg-danger", "failed")
      case "running" => ("text-bg-primary", seconds.map(s => s"running for ${shownLong(s)}").getOrElse("running"))
      case "planned" => ("text-bg-secondary", "only planned")
      case _ => ("text-bg-secondary", "not ended")
    }
    <span class={s"badge $colour"}>{words}</span>
  }

  /** Closed until it is asked for. */
  def folded(title: NodeSeq, body: NodeSeq, open: Boolean = false, id: String = ""): Node =
    <details class="regions-fold" id={if (id.isEmpty) None else Some(Text(id))} open={
      if (open) Some(Text("open")) else None
    }><summary>{title}</summary>{body}</details>

  /** A section whose table is long, and closed until it is asked for. */
  def foldedSection(title: String, count: Int, body: NodeSeq): Node =
    folded(<h4 class="d-inline">{title} ({count.toString})</h4>, body)

  /** What a code means, then the code. */
  def reason(code: String, detail: String): NodeSeq = {
    val words = Reasons.told(code, detail)
    if (words.isEmpty) <code>{code}</code>
    else Text(words + " ") ++ (if (code.isEmpty) NodeSeq.Empty else <code class="small text-muted">{code}</code>)
  }

  /**
   * @param columns header and what it means, shown as Spark shows its own hints
   * @param filtered whether a field above narrows the rows
   */
  def table(
      id: String,
      caption: String,
      columns: Seq[(String, String)],
      rows: Seq[Seq[Cell]],
      filtered: Boolean = false,
      empty: String = "Nothing yet."): NodeSeq =
    if (rows.isEmpty) <p class="text-muted" id={id}>{empty}</p>
    else
      (if (filtered) filter(id, rows.size) else NodeSeq.Empty) ++
        <div class="table-responsive"><table id={id} class={UIUtils.TABLE_CLASS_STRIPED_SORTABLE}>
          <caption class="visually-hidden">{caption}</caption>
          <thead><tr>{
          columns.map { case (name, hint) =>
            <th scope="col">{if (hint.isEmpty) Text(name) else UIUtils.tooltipSpan(Text(name), hint)}</th>
          }
        }</tr></thead>
          <tbody>{rows.map(row => <tr>{row.map(cell)}</tr>)}</tbody>
        </table></div>

  private def filter(id: String, rows: Int): Node =
    <div class="mb-2">
      <label class="me-2" for={s"$id-filter"}>Filter</label>
      <input type="search" id={s"$id-filter"} class="form-control form-control-sm d-inline-block" style="width: 22rem"
             data-filters={id} placeholder="words, all of which a row has"/>
      <span id={s"$id-count"} class="text-muted ms-2" role="status" aria-live="polite">{rows.toString} shown</span>
    </div>

  private def cell(cell: Cell): Node = cell.key match {
    case Some(key) => <td sorttable_customkey={key}>{cell.content}</td>
    case None => <td>{cell.content}</td>
  }

  def heading(title: String, count: Option[Int] = None): Node =
    <h4 class="mt-3">{title}{count.map(n => s" ($n)").getOrElse("")}</h4>

  /** Term and value pairs as cards; the third is small print. */
  def cards(facts: Seq[(String, NodeSeq, String)]): Node =
    <dl class="regions-cards">{
      facts.map { case (term, value, more) =>
        <div><dt>{term}</dt><dd>{value}{if (more.isEmpty) NodeSeq.Empty else <small>{more}</small>}</dd></div>
      }
    }</dl>
}
