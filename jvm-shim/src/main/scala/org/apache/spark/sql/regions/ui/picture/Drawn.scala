package org.apache.spark.sql.regions.ui.picture

/**
 * An operator as it is drawn.
 *
 * @param id unique on the page, for links to the box
 * @param lines of text in the box, the first in bold
 * @param corner short text in its upper right corner, such as the number of a region
 * @param tone of the plain box: "", "even", "some", "much" or "most"
 * @param badge what was done here, empty for nothing
 * @param kind of the badge, which colours the box: "read", "kept", "shared", "would", "lost" or "declined"
 * @param idle it was not computed
 * @param hint what a pointer over it shows, and a screen reader says
 * @param anchor where a click leads, empty for nowhere
 * @param share of all the time that it took, from 0 to 1; NaN where it is not known
 * @param weight the heavier, the more worth being looked at, where nothing was done
 */
final case class Box(
    id: String,
    lines: Seq[String],
    corner: String,
    tone: String,
    badge: String,
    kind: String,
    idle: Boolean,
    hint: String,
    anchor: String,
    share: Double = Double.NaN,
    weight: Double = 0) {

  /** Something was done here, or should have been. */
  def decided: Boolean = Box.decided(kind)
}

object Box {
  private val decided = Set("read", "kept", "shared", "would", "lost")
}

/**
 * @param label "shuffle 1.2 MiB"
 * @param kept whether rows are materialized between the two
 */
final case class Arrow(from: Int, to: Int, label: String, kept: Boolean)
