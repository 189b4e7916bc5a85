"""Strategy `maxbenefit` (Piglet §4.4): the points with the highest benefit, however likely they are to return."""

from __future__ import annotations

from spark_regions.recycle.antichain import Choice, Verdict, best_antichain
from spark_regions.recycle.first_use import with_first_uses
from spark_regions.recycle.points import Decline, Point, Situation


def choose(situation: Situation) -> Choice:
    """Points whose benefit (eq. 1) for one use exceeds their write."""
    return with_first_uses(situation, best_antichain(situation, maxbenefit))


def maxbenefit(point: Point) -> Verdict | Decline:
    """t_benefit - t_write. A result of 5 s, read in 0.5 s and written in 1 s, gains 3.5 s."""
    gain = point.benefit - point.write_seconds - point.extra_seconds
    if gain <= 0:
        return Decline(point.node, "NOT_WORTH_WRITING", f"write {point.write_seconds:.2f} s")
    return Verdict(gain, "BENEFIT")
