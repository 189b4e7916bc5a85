"""Which partitions make one task, and which task starts first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Schedule:
    """:param worker: of each task, the worker that runs it; :param start: seconds; :param loads: of each worker"""

    worker: tuple[int, ...]
    start: tuple[float, ...]
    loads: tuple[float, ...]

    @property
    def makespan(self) -> float:
        return max(self.loads, default=0.0)


def in_order(seconds: Sequence[float], workers: int) -> Schedule:
    """What Spark does: tasks start in the given order, each on the worker that is free first.

    Never longer than (2 - 1 / workers) times the optimum (Graham, 1966).

    >>> in_order([1.0, 1.0, 4.0], 2).makespan
    5.0
    """
    free = [(0.0, worker) for worker in range(max(workers, 1))]
    loads = [0.0] * len(free)
    placed, starts = [], []
    heapify(free)
    for each in seconds:
        start, worker = free[0]
        heapreplace(free, (start + each, worker))
        placed.append(worker)
        starts.append(start)
        loads[worker] = start + each
    return Schedule(tuple(placed), tuple(starts), tuple(loads))


def longest_first(seconds: Sequence[float]) -> tuple[int, ...]:
    """Order of start: longest processing time first; by index where it makes no odds."""
    return tuple(sorted(range(len(seconds)), key=lambda index: (-seconds[index], index)))


def lpt(seconds: Sequence[float], workers: int) -> Schedule:
    """Longest processing time first: never longer than 4/3 - 1/(3 workers) times the optimum (Graham, 1969).

    >>> lpt([1.0, 1.0, 4.0], 2)
    Schedule(worker=(1, 1, 0), start=(0.0, 1.0, 0.0), loads=(4.0, 2.0))
    """
    order = longest_first(seconds)
    found = in_order([seconds[index] for index in order], workers)
    place = {index: rank for rank, index in enumerate(order)}
    ranks = [place[index] for index in range(len(seconds))]
    return Schedule(tuple(found.worker[r] for r in ranks), tuple(found.start[r] for r in ranks), found.loads)


def even_groups(seconds: Sequence[float], count: int) -> tuple[tuple[int, ...], ...]:
    """Groups of partitions of about equal load, each group one task, by longest first: within 4/3 of the best.

    >>> even_groups([5.0, 1.0, 4.0, 2.0], 2)
    ((0, 1), (2, 3))
    """
    groups: list[list[int]] = [[] for _ in range(count)]
    for index, group in enumerate(lpt(seconds, count).worker):
        groups[group].append(index)
    return tuple(sorted(tuple(group) for group in groups if group))


def cut(sizes: Sequence[int], parts: int) -> tuple[tuple[int, int], ...]:
    """At most `parts` half-open ranges of map outputs, the largest sum the least possible; a block stays whole.

    By bisection between the trivial bounds.

    >>> cut([10, 10, 10, 30], 3)
    ((0, 3), (3, 4))
    """
    sums = [0.0, *accumulate(sizes)]
    low, high = max(max(sizes), sums[-1] / parts), sums[-1]
    best = _ends(sums, high)
    while low < (low + high) / 2 < high:
        middle = (low + high) / 2
        ends = _ends(sums, middle)
        if len(ends) <= parts:
            best = ends
            # Sums take finitely many values: the largest one of a feasible cut is the next candidate.
            high = min(max(sums[end] - sums[start] for start, end in zip([0, *ends], ends, strict=False)), middle)
        else:
            low = middle
    ends = _ends(sums, low)
    best = ends if len(ends) <= parts else best
    return tuple(zip([0, *best], best, strict=False))


def _ends(sums: Sequence[float], limit: float) -> list[int]:
    """Where runs end that are as long as the limit allows, each of at least one element."""
    ends = [0]
    while ends[-1] < len(sums) - 1:
        at = ends[-1]
        ends.append(max(bisect_right(sums, sums[at] + limit, at + 1) - 1, at + 1))
    return ends[1:]
