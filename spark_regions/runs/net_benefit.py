"""What a set of stored results is worth to a whole workload: its net benefit (DESIGN §5).

The benefit of a set is what every query of the workload saves if it reads the best of the set, times the query's
weight, less what making the set costs. Piglet's benefit (eq. 1) is that of one point for one use; in a set, what a
point above already spares is no benefit of one below.

Along one branch of a plan this is submodular: another result never adds more to a larger set. Where a query joins
branches it need not be: of A and B below P, each alone may add nothing to P, and both together something. So the bound
does not rest on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Result(NamedTuple):
    """
    :param cost: of making it, in the unit of the gains; 0 for what is there
    :param pinned: in every set
    """

    name: str
    bytes: float
    cost: float = 0.0
    pinned: bool = False


class Place(NamedTuple):
    """A node of a query that results serve.

    :param above: number of the nearest place above it in the query, which comes earlier; -1: none
    :param gains: what reading it here saves, by number of the result; all above 0
    """

    above: int
    gains: Mapping[int, float]


class Query(NamedTuple):
    """:param weight: how often it is expected"""

    weight: float
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Workload:
    results: tuple[Result, ...]
    queries: tuple[Query, ...]

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the queries that each result serves."""
        found: list[dict[int, None]] = [{} for _ in self.results]
        for number, query in enumerate(self.queries):
            for place in query.places:
                for result in place.gains:
                    found[result][number] = None
        return tuple(tuple(each) for each in found)

    def saved(self, chosen: Collection[int]) -> float:
        """By all queries together, with the chosen results there."""
        return sum(query.weight * sum(gain for _, gain in reads(query, chosen)) for query in self.queries)

    def net(self, chosen: Collection[int]) -> float:
        return self.saved(chosen) - sum(self.results[number].cost for number in chosen)


def reads(query: Query, chosen: Collection[int]) -> list[tuple[int, float]]:
    """What a query reads of the chosen results, with what each saves: none below another, the most in all.

    >>> query = Query(1.0, (Place(-1, {0: 5.0}), Place(0, {1: 3.0}), Place(0, {2: 1.0})))
    >>> reads(query, {0, 1, 2}), reads(query, {1, 2})
    ([(0, 5.0)], [(1, 3.0), (2, 1.0)])
    """
    best, own = best_reads(query, chosen)
    found = []
    open_places = [True] * len(query.places)
    for number, place in enumerate(query.places):
        is_open = place.above < 0 or open_places[place.above]
        result, gain = own[number]
        if is_open and result >= 0 and gain >= best[number]:
            found.append((result, gain))
            is_open = False
        open_places[number] = is_open
    return found


def best_reads(query: Query, chosen: Collection[int]) -> tuple[list[float], list[tuple[int, float]]]:
    """For each place what is saved there and below, and the result to read there, with what that saves."""
    best = [0.0] * len(query.places)
    own: list[tuple[int, float]] = [(-1, 0.0)] * len(query.places)
    for number in range(len(query.places) - 1, -1, -1):
        place = query.places[number]
        for result, gain in place.gains.items():
            if gain > own[number][1] and result in chosen:
                own[number] = (result, gain)
        best[number] = max(best[number], own[number][1])
        if place.above >= 0:
            best[place.above] += best[number]
    return best, own


def upper_bound(workload: Workload, budget: float, chosen: Collection[int]) -> float:
    """Of the net benefit of any set within the budget, judged from the chosen one.

    Let S be chosen and O the best. A query reads of O's results outside of S at some places, none below another; at
    each it gives up at most what S alone saves there and below. So it saves at most what it saves with S and, for each
    such result, the excess of its gain over that. The sum over results is a knapsack, whose fractional optimum is
    filled by excess per byte.
    """
    excess: dict[int, float] = {}
    for query in workload.queries:
        with_chosen, _ = best_reads(query, chosen)
        for result in {each for place in query.places for each in place.gains if each not in chosen}:
            alone = [0.0] * len(query.places)
            for number in range(len(query.places) - 1, -1, -1):
                place = query.places[number]
                alone[number] = max(alone[number], place.gains.get(result, 0.0) - with_chosen[number])
                if place.above >= 0:
                    alone[place.above] += alone[number]
            whole = sum(alone[number] for number, place in enumerate(query.places) if place.above < 0)
            excess[result] = excess.get(result, 0.0) + query.weight * whole
    room = budget - sum(each.bytes for each in workload.results if each.pinned)
    worth = [(more - workload.results[n].cost, max(workload.results[n].bytes, 1.0)) for n, more in excess.items()]
    found = workload.saved(chosen)
    for gain, size in sorted(worth, key=lambda each: -each[0] / each[1]):
        if gain <= 0 or room <= 0:
            break
        if size <= budget:
            found += gain * min(1.0, room / size)
            room -= size
    return found
