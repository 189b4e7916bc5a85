package org.apache.spark.sql.regions.ui.pages

import java.util.Locale

import scala.xml.{Node, NodeSeq, Text}

import org.apache.spark.ui.UIUtils
import org.apache.spark.util.Utils

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

  def size(value: Double): Cell = Cell(line(Utils.bytesToString(value.toLong)), Some(value.toString))

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
