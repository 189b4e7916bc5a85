"""What to keep, where, and until when: the plan of a whole run as a mixed-integer program (DESIGN §8).

Every query is a tree of the nodes that matter. A node is computed or read; a result can be read once it was kept, at a
level whose bytes are limited, and it is released when that makes room. The objective is the work of all queries with
recomputation, reads and writes. Worked example: A (3 s, 60 MB) and B (2 s, 60 MB) are used by queries 1 and 2, and by 3
and 4, with 100 MB: A is kept until query 2 has run, then B; without next use, one of them would not be kept at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_regions.costs.rates import Rates, carried_seconds
from spark_regions.runs.recorded_query import RecordedQuery
from spark_regions.runs.results import Occurrence, Result

PERSIST, STORE = "persist", "store"
LEVELS = (PERSIST, STORE)
GAP = 0.005


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes that may be kept at a level at any time, beyond what is there now.

    :param memory_first: nothing is stored that may be persisted
    """

    persist: float
    store: float
    memory_first: bool = False

    def of(self, level: str) -> float:
        return self.persist if level == PERSIST else self.store

    def takes(self, level: str, persisted_bytes: float) -> bool:
        """Whether there is room at a level for a result of so many bytes in memory."""
        if level == STORE and self.memory_first and persisted_bytes <= self.persist:
            return False
        return self.of(level) > 0


@dataclass(frozen=True, slots=True)
class Make:
    """Keep a result while a query computes it.

    :param result: its number
    :param last: the last step that reads it
    """

    result: int
    node: int
    level: str
    last: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """
    :param makes: by step
    :param releases: persisted results that are not needed after a step, by step
    :param seconds: predicted of each step as planned, and by Spark's own plan
    :param proven: whether the program was solved to its gap
    """

    results: tuple[Result, ...]
    makes: Mapping[int, tuple[Make, ...]] = field(default_factory=dict)
    releases: Mapping[int, frozenset[int]] = field(default_factory=dict)
    seconds: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    proven: bool = False

    @property
    def chosen_seconds(self) -> float:
        return sum(chosen for chosen, _ in self.seconds.values())

    @property
    def plain_seconds(self) -> float:
        return sum(plain for _, plain in self.seconds.values())


@dataclass(frozen=True, slots=True)
class Tree:
    """A query, condensed to the nodes that matter; each takes the work down to the next of them.

    :param parents: node to the next one above it; the root has none
    """

    nodes: tuple[int, ...]
    parents: Mapping[int, int]
    seconds: Mapping[int, float]


def condensed(step: RecordedQuery, wanted: frozenset[int]) -> Tree:
    """The query's root and the wanted nodes."""
    plan = step.plan
    kept = wanted | {plan.root}
    nearest: dict[int, int] = {}
    seconds = dict.fromkeys(kept, 0.0)
    parents: dict[int, int] = {}
    order = []
    for number in plan.below(plan.root):
        above = plan.parents.get(number)
        if number in kept:
            order.append(number)
            if above is not None:
                parents[number] = nearest[above]
            nearest[number] = number
        else:
            assert above is not None
            nearest[number] = nearest[above]
        seconds[nearest[number]] += step.measured.seconds.get(number, 0.0)
    return Tree(tuple(order), parents, seconds)


def read_seconds(result: Result, place: Occurrence, level: str, rates: Rates, parallelism: int) -> float:
    """To read the place's columns of a kept result, and apply what is left to do."""
    size = rates.level_bytes(result.bytes, level == PERSIST) * min(place.share, 1.0)
    least = 0.0 if level == PERSIST else result.files.read_seconds(size)
    read = max(rates.level_read_seconds(size, parallelism, level == PERSIST), least)
    return read + place.residual / max(parallelism, 1)


def write_seconds(result: Result, level: str, rates: Rates, parallelism: int) -> float:
    size = rates.level_bytes(result.bytes, level == PERSIST)
    return rates.level_write_seconds(size, parallelism, level == PERSIST)


def making_seconds(result: Result, place: Occurrence, level: str, rates: Rates, parallelism: int) -> float:
    """To keep it while the place is computed: its columns that the query does not need are moved and sorted as well."""
    more = 0.0 if place.exact else max(0.0, result.bytes - place.bytes)
    return write_seconds(result, level, rates, parallelism) + carried_seconds(more, parallelism)


def trees(steps: Sequence[RecordedQuery], ahead: Sequence[int], found: Sequence[Result]) -> dict[int, Tree]:
    """The condensed trees of the steps ahead."""
    wanted: dict[int, set[int]] = {k: set() for k in ahead}
    for result in found:
        for place in result.places:
            wanted[place.step].add(place.node)
    return {k: condensed(steps[k], frozenset(nodes)) for k, nodes in wanted.items()}
