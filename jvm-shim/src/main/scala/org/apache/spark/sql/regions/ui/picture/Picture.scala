package org.apache.spark.sql.regions.ui.picture

import scala.xml.{Node, NodeSeq}

/** A graph as inline SVG, which needs no script to be seen; see [[PictureScript]] for moving about in it. */
object Picture {
  val regionColours = 8
  private val boxWidth = 216.0
  private val lineHeight = 15.0
  private val margin = 16.0
  private val gapX = 22.0
  private val gapY = 32.0
  private val mostCharacters = 34

  /**
   * @param title one line that says what is drawn
   * @param focus the box to look at where not all can be seen
   * @param summary longer, for those who cannot see it; names the table with the same facts
   */
  def apply(
      id: String,
      title: String,
      summary: String,
      boxes: IndexedSeq[Box],
      arrows: IndexedSeq[Arrow],
      focus: Int = 0): Node = {
    val lines = if (boxes.isEmpty) 1 else boxes.map(box => box.lines.size + (if (box.badge.isEmpty) 0 else 1)).max
    val height = 12 + lines * lineHeight
    val layout = Layered(boxes.size, arrows.map(a => (a.from, a.to)), boxWidth, height, gapX, gapY)
    val (x, y) = if (boxes.isEmpty) (0.0, 0.0) else (layout.x(focus) + boxWidth / 2, layout.y(focus) + height / 2)
    val (width, tall) = (layout.width + 2 * margin, layout.height + 2 * margin)
    <svg id={id} class="regions-picture" role="img" aria-labelledby={s"$id-title $id-desc"} tabindex="0"
         xmlns="http://www.w3.org/2000/svg" viewBox={s"0 0 ${round(width)} ${round(tall)}"}
         data-width={round(width)} data-height={round(tall)}
         data-x={round(x + margin)} data-y={round(y + margin)}>
      <title id={s"$id-title"}>{title}</title>
      <desc id={s"$id-desc"}>{summary}</desc>
      <defs>
        <marker id={
      s"$id-tip"
    } viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0,0 L8,4 L0,8 z" class="regions-tip"/>
        </marker>
      </defs>
      <g transform={s"translate($margin,$margin)"}>
        {arrows.indices.map(i => arrow(id, arrows(i), layout, i, height))}
        {boxes.indices.map(i => box(boxes(i), layout.x(i), layout.y(i), height))}
      </g>
    </svg>
  }

  private def arrow(id: String, arrow: Arrow, layout: Layout, index: Int, height: Double): NodeSeq = {
    val start = (layout.x(arrow.from) + boxWidth / 2, layout.y(arrow.from) + height)
    val end = (layout.x(arrow.to) + boxWidth / 2, layout.y(arrow.to))
    val points = start +: layout.bends(index) :+ end
    val path = points.sliding(2).map { case Seq((x1, y1), (x2, y2)) =>
      val middle = (y1 + y2) / 2
      s"C${round(x1)},${round(middle)} ${round(x2)},${round(middle)} ${round(x2)},${round(y2)}"
    }.mkString(s"M${round(start._1)},${round(start._2)} ", " ", "")
    val (x, y) = ((points.head._1 + points(1)._1) / 2, (points.head._2 + points(1)._2) / 2)
    <path d={path} class={if (arrow.kept) "regions-edge regions-kept" else "regions-edge"}
          marker-end={s"url(#$id-tip)"}/> ++
      (if (arrow.label.isEmpty) NodeSeq.Empty
       else <text x={round(x + 5)} y={round(y + 4)} class="regions-edge-label">{arrow.label}</text>)
  }

  private def box(box: Box, x: Double, y: Double, height: Double): Node = {
    val number = if (box.region > 0) (box.region - 1) % regionColours + 1 else box.shade
    val colour = if (number > 0) s" regions-colour-$number" else ""
    val classes = s"regions-box$colour" + (if (box.kind.isEmpty) "" else s" regions-is-${box.kind}") +
      (if (box.idle) " regions-idle" else "")
    val content =
      <title>{box.hint}</title> ++
        <rect width={round(boxWidth)} height={round(height)} rx="5"/> ++
        box.lines.zipWithIndex.map { case (line, i) =>
          <text x="8" y={round(lineHeight * (i + 1) + 2)} class={if (i == 0) "regions-name" else "regions-fact"}>{
            cut(line)
          }</text>
        } ++
        (if (box.region > 0) {
           <text x={round(boxWidth - 8)} y={round(lineHeight + 2)} class="regions-number">R{box.region}</text>
         } else NodeSeq.Empty) ++
        (if (box.badge.isEmpty) NodeSeq.Empty
         else <text x="8" y={round(height - 9)} class="regions-badge">{cut(box.badge)}</text>)
    val group = <g transform={s"translate(${round(x)},${round(y)})"} class={classes}>{content}</g>
    if (box.anchor.isEmpty) group else <a href={box.anchor} tabindex="-1">{group}</a>
  }

  private def cut(text: String): String =
    if (text.length <= mostCharacters) text else text.take(mostCharacters - 1) + "…"

  private def round(number: Double): String = {
    val tenths = math.round(number * 10)
    if (tenths % 10 == 0) (tenths / 10).toString else (tenths / 10.0).toString
  }
}
