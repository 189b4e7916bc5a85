package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * A subquery's plan is optimized to the end before the plan around it is signed; what it then looks like (dynamic pruning,
 * extracted Python UDFs, our own nodes) has no normal form. So its own signing leaves its result on the root.
 */
private[rules] object SubquerySignature {
  val tag: TreeNodeTag[Form] = TreeNodeTag[Form]("spark_regions.subquery")

  def leave(root: LogicalPlan, signed: SignedQuery): Unit = signed.rootForm.foreach(root.setTagValue(tag, _))

  def of(root: LogicalPlan): Option[Form] = root.getTagValue(tag)
}
