"""The best set of loads, and of stores on top of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from spark_regions.costs.rates import MIN_BENEFIT_SECONDS
from spark_regions.dag.plan import Plan
from spark_regions.decision.values import Appraisal, Decline, MaterializationCandidate, Selection, StrategyInput

Appraise = Callable[[MaterializationCandidate], Appraisal | Decline]


def best_antichain(given: StrategyInput, appraise: Appraise) -> Selection:
    """Loads of the highest total gain, none above another; then stores likewise, none of them below a load.

    What can be loaded comes first (Piglet §4.4): nothing below a load runs. Then the stores, above the loads or beside
    them; their benefit already counts with what is loadable. Both bottom-up over the tree, which is exact: best(n) =
    max(gain of n, Σ best(children)). Worked example: the base can be loaded (saves 3 s now), and the report above it
    takes 0.4 s more and is expected twice: the base is loaded, and the report stored in the same pass.
    """
    declines: dict[tuple[int, str | None], Decline] = {}
    stores: dict[int, tuple[MaterializationCandidate, Appraisal]] = {}
    paying = {number: gain for number, gain in given.gains.items() if _pays(given, number)}
    in_vain = given.plan.under(given.gains.keys() - paying.keys())
    for point in given.candidates:
        appraisal = too_cheap(point) or _stored_in_vain(point, in_vain) or appraise(point)
        if isinstance(appraisal, Decline):
            declines[(point.node, point.ref)] = appraisal
        elif point.node not in stores or appraisal.gain > stores[point.node][1].gain:
            if point.node in stores:
                other = stores[point.node][0]
                declines[(other.node, other.ref)] = Decline(other.node, "NOT_CHOSEN", "a wider point is preferred")
            stores[point.node] = (point, appraisal)
        else:
            declines[(point.node, point.ref)] = Decline(
                point.node, "NOT_CHOSEN", "another point of the node is preferred"
            )
    chosen = _solve(given.plan, paying, stores)
    place = ancestry(given.plan, chosen)
    for key, refused in declines.items():
        # Under an action, nothing else about a point matters.
        if place.get(refused.node) == "ALREADY_STORED_ABOVE":
            declines[key] = Decline(refused.node, "ALREADY_STORED_ABOVE")
    loads = {number: "BENEFIT" for number, kind in chosen.items() if kind == "load"}
    taken = []
    for number in sorted(chosen):
        if chosen[number] == "store":
            point, appraisal = stores[number]
            taken.append((point, appraisal.reason))
    for number in stores:
        if chosen.get(number) != "store":
            declines[(number, stores[number][0].ref)] = Decline(number, place.get(number, "NOT_CHOSEN"))
    for number, gain in given.gains.items():
        if number not in chosen and number not in paying:
            least = given.least_gains.get(number, gain)
            detail = f"{gain:.2f} s" + (f", at least {least:.2f} s" if gain >= MIN_BENEFIT_SECONDS else "")
            declines[(number, "load")] = Decline(number, "LOAD_NOT_CHEAPER", detail)
    return Selection(loads, tuple(taken), tuple(declines.values()))


def _pays(given: StrategyInput, number: int) -> bool:
    """Whether a load saves something worth while, and the lower end of its saving is none of a loss."""
    gain = given.gains[number]
    return gain >= MIN_BENEFIT_SECONDS and given.least_gains.get(number, gain) > 0


def too_cheap(point: MaterializationCandidate) -> Decline | None:
    if point.benefit < MIN_BENEFIT_SECONDS:
        return Decline(point.node, "TOO_CHEAP", f"{point.recompute.value:.2f} s")
    return None


def _stored_in_vain(point: MaterializationCandidate, nodes: Collection[int]) -> Decline | None:
    """Of a sweep, which would store one part of its iterations after the other, and read none of them.

    :param nodes: at or below a stored result that does not pay
    """
    if point.iteration and point.node in nodes:
        return Decline(point.node, "NOT_WORTH_WRITING", f"iteration {point.iteration}: what is stored does not pay")
    return None


def ancestry(plan: Plan, chosen: Collection[int]) -> dict[int, str]:
    """For every node above or below a chosen one, which of both it is."""
    found = dict.fromkeys(plan.above(chosen), "ALREADY_STORED_BELOW")
    for number in chosen:
        found.update((below, "ALREADY_STORED_ABOVE") for below in plan.below(number) if below != number)
    return found


def _solve(
    plan: Plan, gains: Mapping[int, float], stores: Mapping[int, tuple[MaterializationCandidate, Appraisal]]
) -> dict[int, str]:
    """:param gains: of loads that pay"""
    chosen = dict.fromkeys(_antichain(plan, gains), "load")
    under_loads = plan.under(chosen)
    worth = {n: appraisal.gain for n, (_, appraisal) in stores.items() if n not in under_loads}
    stored: set[str] = set()
    for number in _antichain(plan, worth):
        lineage = stores[number][0].signature.lineage
        # The same rows twice in one plan: one of them is written.
        if lineage not in stored:
            stored.add(lineage)
            chosen[number] = "store"
    return chosen


def _antichain(plan: Plan, gains: Mapping[int, float]) -> list[int]:
    """The nodes of highest total gain, none above another, in pre-order; the upper one where it makes no odds."""
    best: dict[int, float] = {}
    taken: set[int] = set()
    for number in plan.bottom_up():
        below = sum(best[child] for child in plan.nodes[number].children)
        gain = gains.get(number, 0.0)
        if gain > 0 and gain >= below:
            taken.add(number)
        best[number] = max(gain, below)
    found: list[int] = []
    stack = [plan.root]
    while stack:
        number = stack.pop()
        if number in taken:
            found.append(number)
        else:
            stack.extend(reversed(plan.nodes[number].children))
    return found
