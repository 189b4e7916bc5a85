"""The best set of actions that do not nest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from spark_regions.dag.plan import Plan
from spark_regions.recycle.points import MIN_BENEFIT_SECONDS, Decline, Point, Situation


@dataclass(frozen=True, slots=True)
class Verdict:
    """:param gain: net seconds that the store is worth, over its expected uses"""

    gain: float
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What a strategy chose. No node of `loads` or `stores` is above another.

    :param stores: with the seconds that one later use saves, and the reason code
    """

    loads: Mapping[int, str]
    stores: tuple[tuple[Point, str], ...]
    declines: tuple[Decline, ...]


Appraisal = Callable[[Point], Verdict | Decline]


def best_antichain(situation: Situation, appraise: Appraisal) -> Choice:
    """Loads and stores of the highest total gain such that none is above another.

    Bottom-up over the tree: best(n) = max(load n, store n, Σ best(children)), which is exact. A store above a
    load would
    have to give that load up, so what the load saves now counts against it; and what is loadable is already
    taken off the
    store's benefit (`Point.recompute`). Worked example: the base can be loaded (saves 3 s now); the report
    above it would
    save 0.4 s in each of 2 expected uses. 3 > 0.8: load the base. With 10 expected uses: 3 < 4, store the report.
    """
    declines: dict[tuple[int, str | None], Decline] = {}
    stores: dict[int, tuple[Point, Verdict]] = {}
    for point in situation.points:
        verdict = too_cheap(point) or appraise(point)
        if isinstance(verdict, Decline):
            declines[(point.node, point.ref)] = verdict
        elif point.node not in stores or verdict.gain > stores[point.node][1].gain:
            if point.node in stores:
                other = stores[point.node][0]
                declines[(other.node, other.ref)] = Decline(other.node, "NOT_CHOSEN", "a wider point is preferred")
            stores[point.node] = (point, verdict)
        else:
            declines[(point.node, point.ref)] = Decline(
                point.node, "NOT_CHOSEN", "another point of the node is preferred"
            )
    chosen = _solve(situation, stores)
    place = positions(situation.plan, chosen)
    for key, refused in declines.items():
        # Under an action, nothing else about a point matters.
        if place.get(refused.node) == "ALREADY_STORED_ABOVE":
            declines[key] = Decline(refused.node, "ALREADY_STORED_ABOVE")
    loads = {number: "BENEFIT" for number, kind in chosen.items() if kind == "load"}
    taken = []
    for number in sorted(chosen):
        if chosen[number] == "store":
            point, verdict = stores[number]
            taken.append((point, verdict.reason))
    for number in stores:
        if chosen.get(number) != "store":
            declines[(number, stores[number][0].ref)] = Decline(number, place.get(number, "NOT_CHOSEN"))
    for number, gain in situation.load_gains.items():
        if gain < MIN_BENEFIT_SECONDS and number not in chosen:
            declines[(number, "load")] = Decline(number, "LOAD_NOT_CHEAPER", f"{gain:.2f} s")
    return Choice(loads, tuple(taken), tuple(declines.values()))


def too_cheap(point: Point) -> Decline | None:
    if point.benefit < MIN_BENEFIT_SECONDS:
        return Decline(point.node, "TOO_CHEAP", f"{point.recompute.value:.2f} s")
    return None


def positions(plan: Plan, chosen: Collection[int]) -> dict[int, str]:
    """For every node above or below a chosen one, which of both it is."""
    found = dict.fromkeys(plan.above(chosen), "ALREADY_STORED_BELOW")
    for number in chosen:
        found.update((below, "ALREADY_STORED_ABOVE") for below in plan.below(number) if below != number)
    return found


def _solve(situation: Situation, stores: Mapping[int, tuple[Point, Verdict]]) -> dict[int, str]:
    plan = situation.plan
    best: dict[int, float] = {}
    pick: dict[int, str | None] = {}
    for number in plan.bottom_up():
        value = sum(best[child] for child in plan.nodes[number].children)
        choice = None
        gain = situation.load_gains.get(number, 0.0)
        if gain >= MIN_BENEFIT_SECONDS and gain >= value:
            value, choice = gain, "load"
        if number in stores and stores[number][1].gain > value:
            value, choice = stores[number][1].gain, "store"
        best[number], pick[number] = value, choice
    chosen: dict[int, str] = {}
    stored: set[str] = set()
    stack = [plan.root]
    while stack:
        number = stack.pop()
        choice = pick[number]
        if choice == "store":
            lineage = stores[number][0].signature.lineage
            if lineage in stored:
                # The same rows twice in one plan: one of them is written.
                continue
            stored.add(lineage)
        if choice is None:
            stack.extend(reversed(plan.nodes[number].children))
        else:
            chosen[number] = choice
    return chosen
