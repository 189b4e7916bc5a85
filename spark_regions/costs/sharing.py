"""What it costs to compute a repeated subplan in each of its places, and once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_regions.costs.rates import (
    SECONDS_PER_ROW_OF,
    SECONDS_PER_SOURCE_ROW,
    SHARED_BYTES_PER_SECOND,
    SHARED_STAGE_SECONDS,
)
from spark_regions.dag.plan import Plan, RepeatedSubplan
from spark_regions.dag.records import GraphView
from spark_regions.stats.cardinality import FILTERED, guessed_rows
from spark_regions.stats.estimate import Estimate, total
from spark_regions.stats.operators import bytes_of

SHUFFLE_ROW_BYTES = 64.0
"""A narrower row costs as much: its key is hashed, and it is copied by itself."""
COMPRESSION = 2.0
"""Rows of a columnar file in memory against the file."""


@dataclass(frozen=True, slots=True)
class SharingCosts:
    """All in seconds on the present cores.

    :param times: how often Spark computes the subplan by itself
    :param apart: to compute it that often
    :param once: to compute it for all places
    :param moved: to write it to a shuffle, and to read it at each place
    :param confidence: in what computing it takes
    """

    times: float
    apart: float
    once: float
    moved: float
    confidence: float = 1.0

    @property
    def saving(self) -> float:
        return self.apart - self.once - self.moved - SHARED_STAGE_SECONDS

    @property
    def least_saving(self) -> float:
        """At the lower end of what computing it less often saves."""
        return Estimate(self.apart - self.once, self.confidence).low - self.moved - SHARED_STAGE_SECONDS

    def __str__(self) -> str:
        return (
            f"computed {self.times:.1f} times in {self.apart:.2f} s, once in {self.once:.2f} s, "
            f"shuffle {self.moved:.2f} s"
        )


def measured(
    plan: Plan,
    view: GraphView,
    repeated: RepeatedSubplan,
    seconds: Mapping[int, Estimate],
    own: Mapping[int, Estimate],
    parallelism: int,
) -> SharingCosts | None:
    """From earlier runs of the places; None where one of them was never measured.

    Worked example on two cores: two places with the same rows, 6 s each, computed twice, 300 MB: apart 12 s, once 6 s,
    moved (300 MB written + 2 · 300 MB read) / 150 MB/s / 2 = 3 s.

    :param seconds: to compute each node
    :param own: task-seconds of each node alone
    """
    kinds = rows_apart(plan, repeated.nodes)
    places = size = 0.0
    for nodes in kinds:
        each = max((seconds[number].value for number in nodes if number in seconds), default=None)
        width = [
            known.value * max(1.0, repeated.row_bytes / max(plan.nodes[number].row_bytes, 1.0))
            * max(1.0, SHUFFLE_ROW_BYTES / max(repeated.row_bytes, 1.0))
            for number in nodes
            if (known := bytes_of(plan.nodes[number], view)) is not None
        ]  # fmt: skip
        if each is None or not width or all(computed(plan, view, number) is None for number in nodes):
            return None
        places += each
        size += max(width)
    firsts = [nodes[0] for nodes in kinds]
    work = {number: _work_once(plan, view, number, estimate.value) for number, estimate in own.items()}
    # The same operator in two places has one count, over both.
    ran: dict[tuple[str, str, str], tuple[float, list[int]]] = {}
    for place in repeated.nodes:
        for below in plan.below(place):
            ran.setdefault(_variant(plan, below), (computed(plan, view, below) or 1.0, []))[1].append(below)
    apart = sum(min(runs, len(nodes)) * work.get(nodes[0], 0.0) for runs, nodes in ran.values())
    whole = sum(own[below].value for first in firsts for below in plan.below(first) if below in own)
    wall = places / whole if whole else 0.0
    one = sum(work.get(below, 0.0) for first in firsts for below in plan.below(first)) / len(firsts)
    once = together(plan, firsts, work)
    moved = _moved(size, repeated, len(firsts), parallelism)
    confidence = total(own[n] for n in plan.under(repeated.nodes) if n in own).confidence
    return SharingCosts(apart / one if one else 1.0, wall * apart, wall * once, moved, confidence)


def guessed(plan: Plan, repeated: RepeatedSubplan, parallelism: int) -> SharingCosts | None:
    """From the sizes of the sources, before anything ran; None where they are unknown.

    Spark reuses what has the same plan in two places, so that only places with other plans count as computed again.
    """
    numbers = [number for place in repeated.nodes for number in reversed(list(plan.below(place)))]
    if any(plan.nodes[number].source_bytes is None for number in numbers if not plan.nodes[number].children):
        return None
    rows = {n: COMPRESSION * guess for n, guess in guessed_rows(plan, numbers, reduced=False).items()}
    alone = {
        number: rows[number] * SECONDS_PER_ROW_OF.get(node.operator, 0.0 if node.children else SECONDS_PER_SOURCE_ROW)
        for number, node in ((number, plan.nodes[number]) for number in rows)
    }
    firsts = sorted(set(repeated.copies))
    each = {first: sum(alone[below] for below in plan.below(first)) / max(parallelism, 1) for first in firsts}
    apart = sum(each.values())
    other_rows = [nodes[0] for nodes in rows_apart(plan, repeated.nodes)]
    once = together(plan, other_rows, alone) / max(parallelism, 1)
    reduced = any(plan.nodes[below].operator in ("Filter", "Aggregate") for below in plan.below(firsts[0]))
    size = max(rows[first] for first in firsts) * max(repeated.row_bytes, SHUFFLE_ROW_BYTES)
    moved = _moved(size * (FILTERED if reduced else 1.0), repeated, len(other_rows), parallelism)
    return SharingCosts(float(len(firsts)), apart, once, moved)


def rows_apart(plan: Plan, nodes: Iterable[int]) -> list[tuple[int, ...]]:
    """The nodes, those with the same rows together."""
    found: dict[str, list[int]] = {}
    for number in nodes:
        signed = plan.nodes[number].signature
        found.setdefault(signed.lineage if signed else "", []).append(number)
    return [tuple(group) for group in found.values()]


def together(plan: Plan, places: list[int], own: Mapping[int, float]) -> float:
    """Work of one subplan for all places, in the unit of `own`.

    Operators with the same rows in each place, and those that read the same rows, work once; the others work on the
    rows of all.

    Worked example: two places join the same sales (scan 4) with the dates (scan 1) of another year each (join 2,
    aggregate 1). Scans and the join's probe work once, both aggregates' work is done: 4 + 1 + 2 + 1 + 1 = 9 of 16.
    """
    lineages = [{_lineage(plan, below) for below in plan.below(place)} for place in places]
    common = set.intersection(*lineages) - {""}
    most: dict[tuple[str, str, int], float] = {}
    for place in places:
        here: dict[tuple[str, str, int], float] = {}
        for below in plan.below(place):
            key = _work(plan, below, common)
            here[key] = here.get(key, 0.0) + own.get(below, 0.0)
        for key, seconds in here.items():
            most[key] = max(most.get(key, 0.0), seconds)
    return sum(most.values())


def computed(plan: Plan, view: GraphView, number: int) -> float | None:
    """How often Spark computed a node's rows in an earlier run of the query; None where nothing was counted.

    An operator that is reused is not executed, and so not timed. Where an aggregate's exchange is reused, its groups
    are merged at each place, and its rows were aggregated no more often than they were computed.
    """
    times = _counted(plan, view, number)
    if times is not None and plan.nodes[number].operator == "Aggregate":
        below = [known for child in plan.nodes[number].children if (known := computed(plan, view, child)) is not None]
        return min(times, max(below, default=times))
    return times


def _counted(plan: Plan, view: GraphView, number: int) -> float | None:
    """Times that the node's operator was timed, per query that executed it."""
    node = plan.nodes[number]
    if node.signature is None:
        return None
    times = [
        variant.seconds.count / variant.executions
        for variant in view.variants.get(node.signature.lineage, ())
        if variant.kind == node.operator and variant.has_columns(node.signature) and variant.executions
    ]
    return sum(times) if times else None


def _work_once(plan: Plan, view: GraphView, number: int, seconds: float) -> float:
    """Task-seconds of an operator each time that its rows are computed.

    :param seconds: mean over all times that it was timed
    """
    times, counted = computed(plan, view, number), _counted(plan, view, number)
    return seconds * counted / times if times and counted else seconds


def _variant(plan: Plan, number: int) -> tuple[str, str, str]:
    node = plan.nodes[number]
    return node.operator, _lineage(plan, number), node.signature.shape if node.signature else str(number)


def _work(plan: Plan, node: int, common: set[str]) -> tuple[str, str, int]:
    """Operators that do the same work in several places have the same key."""
    operator, lineage = plan.nodes[node].operator, _lineage(plan, node)
    if lineage in common:
        return operator, lineage, -1
    signed = plan.nodes[node].signature
    if signed and any(_lineage(plan, child) in common for child in plan.nodes[node].children):
        return operator, signed.core, -1
    return operator, lineage, node


def _lineage(plan: Plan, node: int) -> str:
    signed = plan.nodes[node].signature
    return signed.lineage if signed else ""


def _moved(size: float, repeated: RepeatedSubplan, kinds: int, parallelism: int) -> float:
    # Where rows came in that no place has, how many is unknown: as many as every filter with every other could let in.
    size *= 1.0 if repeated.exact else float(kinds)
    # An aggregate's own exchange was written in each case; its rows are read and merged at each place.
    times = len(repeated.nodes) + (1 if repeated.exchange else 0)
    return size * times / SHARED_BYTES_PER_SECOND / max(parallelism, 1)
