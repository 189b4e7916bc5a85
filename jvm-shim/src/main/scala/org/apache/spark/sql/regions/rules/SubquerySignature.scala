package org.apache.spark.sql.regions.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A subquery's plan is optimized to the end before the plan around it is signed; what it then looks like (dynamic pruning,
 * extracted Python UDFs, our own nodes) has no normal form. So its own signing leaves its result on the root.
 */
private[rules] object SubquerySignature {

  /** Plan nodes outlive a query: where this signing failed, what an earlier one left must go. */
  def leave(root: LogicalPlan, signed: SignedQuery): Unit = {
    root.setTagValue(Signing.roundingAlone, signed.places.held(0))
    signed.rootForm match {
      case Some(form) => root.setTagValue(Signing.signedAlone, form)
      case None => root.unsetTagValue(Signing.signedAlone)
    }
  }
}
