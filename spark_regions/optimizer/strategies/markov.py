"""Strategy `markov` (Piglet §4.4): benefit weighted by the probability of reuse, eq. 5 to 7."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from spark_regions.decision.values import Appraisal, Decline, MaterializationCandidate, Selection, StrategyInput
from spark_regions.optimizer.strategies.antichain import best_antichain
from spark_regions.optimizer.strategies.ski_rental import ski_rental


def choose(given: StrategyInput) -> Selection:
    """Points of the Pareto front by expected benefit minus write; ski-rental where no earlier run knew the point.

    Eq. 5 picks the point with the largest P_total · t_benefit. Here that is times the uses in runs that had it, less
    the write, and of several points none is below another.
    """
    front = {(point.node, point.ref) for point in pareto_front(p for p in given.candidates if p.expected > 0)}

    def markov(point: MaterializationCandidate) -> Appraisal | Decline:
        rented = ski_rental(point)
        if point.expected <= 0:
            return rented
        expected = max(point.expected, point.session)
        gain = expected * point.benefit - point.write_seconds - point.extra_seconds
        if (point.node, point.ref) not in front:
            return Decline(point.node, "NOT_CHOSEN", "another point has more benefit and more probability")
        if gain > 0 and expected * point.least_benefit > point.write_seconds + point.extra_seconds:
            return Appraisal(gain, "BENEFIT")
        if isinstance(rented, Appraisal):
            return rented
        return Decline(
            point.node,
            "NOT_WORTH_WRITING",
            f"{expected:.1f} uses of {point.least_benefit:.2f} s at least, write {point.write_seconds:.2f} s",
        )

    return replace(best_antichain(given, markov), first_uses=True)


def pareto_front(points: Iterable[MaterializationCandidate]) -> list[MaterializationCandidate]:
    """Points such that no other has both a higher benefit and a higher probability (eq. 5, P_total · t_benefit, is
    largest at one of these).

    Worked example, (benefit, probability): (5, 0.4), (4, 0.9), (3, 0.5): the third loses to the second on both.
    """
    known = list(points)
    front: list[MaterializationCandidate] = []
    likelier = -1.0  # the highest probability among points of more benefit
    for _, alike in groupby(sorted(known, key=lambda each: -each.benefit), key=lambda each: each.benefit):
        group = list(alike)
        front += [point for point in group if point.probability >= likelier]
        likelier = max(likelier, *(point.probability for point in group))
    return front
