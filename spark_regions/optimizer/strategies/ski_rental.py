"""Storing without a history: the ski-rental rule."""

from __future__ import annotations

from spark_regions.decision.values import Appraisal, Decline, MaterializationCandidate


def ski_rental(point: MaterializationCandidate) -> Appraisal | Decline:
    """Store once earlier executions have cost as much more than reads as it takes to write an entry.

    What a rent is more than owning is what an execution takes beyond a read: whatever follows, what is lost is at most
    twice what one who knew the future loses. Worked example: 3 s to recompute, 1.5 s to write, 0.5 s to read: executed
    once before, 2.5 ≥ 1.5, store now. At 1 s to recompute it takes three earlier executions, and at 0.5 s no number.
    """
    if point.iteration:
        return lindy(point)
    paid = point.past * point.benefit
    price = point.write_seconds + point.extra_seconds
    if point.past <= 0:
        return Decline(point.node, "NO_HISTORY", "first use of these columns")
    if paid < price or point.least_benefit <= 0:
        least = f", a read saves {point.least_benefit:.2f} s at least"
        return Decline(point.node, "NOT_WORTH_WRITING", f"paid {paid:.2f} s, an entry costs {price:.2f} s{least}")
    return Appraisal(max(paid - price, 1e-6), "SKI_RENTAL")


def lindy(point: MaterializationCandidate) -> Appraisal | Decline:
    """What has gone on for n iterations is taken to go on for as many more (Gott 1993): a sweep's result is stored once
    those save more than it costs.

    Worked example: 3 s to recompute, 4 s to write, 0.5 s to read: in the second iteration 2 · 2.5 > 4, store.
    """
    gain = point.iteration * point.benefit - point.price
    if gain > 0 and point.iteration * point.least_benefit > point.price:
        return Appraisal(gain, "SWEEP")
    detail = f"iteration {point.iteration}: as many more save {point.iteration * point.least_benefit:.2f} s at least"
    return Decline(point.node, "NOT_WORTH_WRITING", f"{detail}, an entry costs {point.price:.2f} s")
