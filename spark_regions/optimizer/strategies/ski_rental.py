"""Storing without a history: the ski-rental rule."""

from __future__ import annotations

from spark_regions.decision.values import Appraisal, Decline, MaterializationCandidate


def ski_rental(point: MaterializationCandidate) -> Appraisal | Decline:
    """Store once the recomputations that are already paid reach the price of an entry.

    Whatever follows, the total is at most twice that of one who knew the future. Worked example: 3 s to
    recompute, 1.5 s
    to write, 0.5 s to read: executed once before, 3 ≥ 2, store now. At 1 s to recompute it takes two earlier
    executions.
    """
    paid = point.past * point.recompute.value
    price = point.write_seconds + point.read_seconds + point.extra_seconds
    if point.past <= 0:
        return Decline(point.node, "NO_HISTORY", "first use of these columns")
    if paid < price:
        return Decline(point.node, "NOT_WORTH_WRITING", f"paid {paid:.2f} s, an entry costs {price:.2f} s")
    return Appraisal(max(paid - price, 1e-6), "SKI_RENTAL")
