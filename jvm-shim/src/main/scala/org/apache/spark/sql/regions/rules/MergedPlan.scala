package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** How the rows of a merged plan compare with those of the plans that it was merged from. */
private[rules] sealed trait Extent

private[rules] object Extent {

  /** Those of each. */
  case object Same extends Extent

  /** Those of all together, and no other. */
  case object Union extends Extent

  /** Those of all and perhaps others. */
  case object Wider extends Extent
}

/**
 * One plan for several.
 *
 * @param attributes for each of the plans, where its attributes are in the merged one
 * @param kept attributes of the output that filters read which not all of the plans have
 */
private[rules] final case class MergedPlan(
    plan: LogicalPlan,
    attributes: Seq[AttributeMap[Attribute]],
    extent: Extent,
    kept: Seq[Attribute] = Nil)
