package org.apache.spark.sql.regions.ui.picture

/**
 * An operator as it is drawn.
 *
 * @param lines of text in the box, the first in bold
 * @param region number of its colour, 0 for none
 * @param badge what was done here, empty for nothing
 * @param kind of the badge: "read", "kept", "shared", "lost" or "declined"
 * @param idle it was not computed
 * @param hint what a pointer over it shows, and a screen reader says
 * @param shade colour where there is no region
 * @param anchor where a click leads, empty for nowhere
 */
final case class Box(
    lines: Seq[String],
    region: Int,
    badge: String,
    kind: String,
    idle: Boolean,
    hint: String,
    anchor: String,
    shade: Int = 0)

/**
 * @param label "shuffle 1.2 MiB"
 * @param kept whether rows are materialized between the two
 */
final case class Arrow(from: Int, to: Int, label: String, kept: Boolean)
