package org.apache.spark.sql.regions.ui.picture

import scala.xml.{Node, NodeSeq}

/** A graph as inline SVG, which needs no script to be seen; see [[PictureScript]] for moving about in it. */
object Picture {
  private val boxWidth = 232.0
  private val lineHeight = 15.0
  private val margin = 16.0
  private val gapX = 22.0
  private val gapY = 32.0
  private val mostCharacters = 37

  /**
   * @param title one line that says what is drawn
   * @param summary longer, for those who cannot see it; names the table with the same facts
   */
  def apply(
      id: String,
      title: String,
      summary: String,
      boxes: IndexedSeq[Box],
      arrows: IndexedSeq[Arrow]): Node = {
    val lines = if (boxes.isEmpty) 1 else boxes.map(box => box.lines.size + (if (box.badge.isEmpty) 0 else 1)).max
    val height = 12 + lines * lineHeight
    val layout = Layered(boxes.size, arrows.map(a => (a.from, a.to)), boxWidth, height, gapX, gapY)
    def centre(node: Int): (Double, Double) =
      (layout.x(node) + boxWidth / 2 + margin, layout.y(node) + height / 2 + margin)
    val (x, y) = focus(boxes).map(centre).getOrElse((0.0, 0.0))
    val (width, tall) = (layout.width + 2 * margin, layout.height + 2 * margin)
    <svg id={id} class="regions-picture" role="img" aria-labelledby={s"$id-title $id-desc"} tabindex="0"
         xmlns="http://www.w3.org/2000/svg" viewBox={s"0 0 ${round(width)} ${round(tall)}"}
         data-width={round(width)} data-height={round(tall)}
         data-x={round(x)} data-y={round(y)}>
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
        {boxes.indices.map(i => box(boxes(i), layout.x(i), layout.y(i), height, centre(i)))}
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

  /** What to look at where not all can be seen: the first at which something was done, else the heaviest. */
  private def focus(boxes: IndexedSeq[Box]): Option[Int] =
    boxes.indices.find(i => boxes(i).decided && boxes(i).kind != "lost")
      .orElse(boxes.indices.find(i => boxes(i).decided)).orElse(boxes.indices.maxByOption(i => (boxes(i).weight, -i)))

  private def box(box: Box, x: Double, y: Double, height: Double, centre: (Double, Double)): Node = {
    val classes = Seq("regions-box") ++ Some(s"regions-tone-${box.tone}").filter(_ => box.tone.nonEmpty) ++
      Some(s"regions-is-${box.kind}").filter(_ => box.kind.nonEmpty) ++ Some("regions-idle").filter(_ => box.idle)
    val content =
      <title>{box.hint}</title> ++
        <rect width={round(boxWidth)} height={round(height)} rx="5"/> ++
        box.lines.zipWithIndex.map { case (line, i) =>
          // Bold letters are wider.
          val room = if (i == 0) mostCharacters - box.corner.length - 6 else mostCharacters
          <text x="8" y={round(lineHeight * (i + 1) + 2)} class={if (i == 0) "regions-name" else "regions-fact"}>{
            if (i == 0) cutName(line, room) else cut(line, room)
          }</text>
        } ++
        (if (box.corner.isEmpty) NodeSeq.Empty
         else
           <text x={round(boxWidth - 8)} y={round(lineHeight + 2)} class="regions-number">{box.corner}</text>) ++
        (if (box.badge.isEmpty) NodeSeq.Empty
         else <text x="8" y={round(height - 9)} class="regions-badge">{cut(box.badge, mostCharacters)}</text>) ++
        share(box, height)
    val group =
      <g id={box.id} transform={s"translate(${round(x)},${round(y)})"} class={classes.mkString(" ")}
         data-x={round(centre._1)} data-y={round(centre._2)} data-decided={
        if (box.decided) Some(scala.xml.Text("true")) else None
      }>{content}</g>
    if (box.anchor.isEmpty) group else <a href={box.anchor} tabindex="-1">{group}</a>
  }

  /** A bar along the lower edge: its part of the time of all. */
  private def share(box: Box, height: Double): NodeSeq =
    if (box.share.isNaN || box.share < 0.005) NodeSeq.Empty
    else {
      val width = (boxWidth - 8) * math.min(1, box.share)
      <rect class="regions-share" x="4" y={round(height - 5)} width={round(width)} height="3" rx="1"/>
    }

  private def cut(text: String, room: Int): String = if (text.length <= room) text else text.take(room - 1) + "…"

  /** The number at the end of a name stays. */
  private def cutName(name: String, room: Int): String = {
    val at = name.lastIndexOf(" (")
    if (name.length <= room || at < 0 || name.length - at > room / 2) cut(name, room)
    else cut(name.take(at), room - (name.length - at)) + name.drop(at)
  }

  private def round(number: Double): String = {
    val tenths = math.round(number * 10)
    if (tenths % 10 == 0) (tenths / 10).toString else (tenths / 10.0).toString
  }
}
