"""Strategy `maxbenefit` (Piglet §4.4): the points with the highest benefit, however likely they are to return."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.decision.values import Appraisal, Decline, MaterializationCandidate, Selection, StrategyInput
from spark_regions.optimizer.strategies.antichain import best_antichain


def choose(given: StrategyInput) -> Selection:
    """Points whose benefit (eq. 1) for one use exceeds their write. The paper takes one point a job and counts no
    write; of several, none is below another.
    """
    return replace(best_antichain(given, maxbenefit), first_uses=True)


def maxbenefit(point: MaterializationCandidate) -> Appraisal | Decline:
    """t_benefit - t_write, if that is a gain at the lower end, too. A result of 5 s, seen once, read in 0.5 s and
    written in 1 s, gains 3.5 s, and at least 0.75 · 5 - 1.5 = 2.25 s.
    """
    gain = point.benefit - point.write_seconds - point.extra_seconds
    if point.least_benefit <= point.write_seconds + point.extra_seconds:
        return Decline(point.node, "NOT_WORTH_WRITING", f"write {point.write_seconds:.2f} s")
    return Appraisal(gain, "BENEFIT")
