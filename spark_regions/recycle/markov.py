"""Strategy `markov` (Piglet §4.4): benefit weighted by the probability of reuse, eq. 5 to 7."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from spark_regions.recycle.antichain import Choice, Verdict, best_antichain
from spark_regions.recycle.first_use import with_first_uses
from spark_regions.recycle.points import Decline, Point, Situation
from spark_regions.recycle.ski_rental import ski_rental


def choose(situation: Situation) -> Choice:
    """Points of the Pareto front by expected benefit minus write; ski-rental where no earlier run knew the point."""
    front = {(point.node, point.ref) for point in pareto_front(p for p in situation.points if p.expected > 0)}

    def markov(point: Point) -> Verdict | Decline:
        rented = ski_rental(point)
        if point.expected <= 0:
            return rented
        expected = max(point.expected, point.session)
        gain = expected * point.benefit - point.write_seconds - point.extra_seconds
        if (point.node, point.ref) not in front:
            return Decline(point.node, "NOT_CHOSEN", "another point has more benefit and more probability")
        if gain > 0:
            return Verdict(gain, "BENEFIT")
        if isinstance(rented, Verdict):
            return rented
        return Decline(
            point.node,
            "NOT_WORTH_WRITING",
            f"{expected:.1f} uses of {point.benefit:.2f} s, write {point.write_seconds:.2f} s",
        )

    return with_first_uses(situation, best_antichain(situation, markov))


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """Points such that no other has both a higher benefit and a higher probability (eq. 5, P_total · t_benefit, is
    largest at one of these).

    Worked example, (benefit, probability): (5, 0.4), (4, 0.9), (3, 0.5): the third loses to the second on both.
    """
    known = list(points)
    front: list[Point] = []
    likelier = -1.0  # the highest probability among points of more benefit
    for _, alike in groupby(sorted(known, key=lambda each: -each.benefit), key=lambda each: each.benefit):
        group = list(alike)
        front += [point for point in group if point.probability >= likelier]
        likelier = max(likelier, *(point.probability for point in group))
    return front
