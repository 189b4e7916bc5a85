"""Region plans: which edges are materialized, and the regions, region graph and order that follow (Pasta §2).

A region is a connected component over pipelined edges, its direction ignored (def. 2.3). Each materialized edge makes
its target's region wait for its source's (def. 2.4). A plan is schedulable if that region graph has no cycle; a
materialized edge inside one region is such a cycle, so of parallel edges all are materialized or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from spark_regions.dag.workflow import PhysicalPlan


@dataclass(frozen=True)
class RegionPlan:
    """A label for each edge.

    :param materialized: positions of the materialized edges, all blocking ones among them (table 1)
    """

    plan: PhysicalPlan
    materialized: frozenset[int]

    @cached_property
    def region_of(self) -> tuple[int, ...]:
        """The region of each operator; regions are numbered from 0 by their first operator."""
        pipelined = (edge for edge in range(len(self.plan.edges)) if edge not in self.materialized)
        return components(len(self.plan.operators), ((self.plan.tails[e], self.plan.heads[e]) for e in pipelined))

    @cached_property
    def regions(self) -> tuple[tuple[int, ...], ...]:
        """Operators of each region."""
        groups: list[list[int]] = [[] for _ in range(max(self.region_of, default=-1) + 1)]
        for operator, region in enumerate(self.region_of):
            groups[region].append(operator)
        return tuple(map(tuple, groups))

    @cached_property
    def region_edges(self) -> tuple[tuple[int, int, int], ...]:
        """(region that ends first, region that waits, edge)"""
        tails, heads, region = self.plan.tails, self.plan.heads, self.region_of
        return tuple((region[tails[edge]], region[heads[edge]], edge) for edge in sorted(self.materialized))

    @cached_property
    def _levels(self) -> tuple[int, ...]:
        return levels(len(self.regions), [(before, after) for before, after, _ in self.region_edges])

    @property
    def schedulable(self) -> bool:
        return 0 not in self._levels

    @property
    def ranks(self) -> tuple[int, ...]:
        """An execution order (def. 2.5): of each region the least rank, counted from 1. Only for a schedulable plan."""
        assert self.schedulable, "an unschedulable plan has no execution order"
        return self._levels

    @cached_property
    def hopeless(self) -> bool:
        """A cycle of the region graph contains a blocking edge: pipelining more can never mend it (def. 4.1)."""
        if self.schedulable:
            return False
        count = len(self.regions)
        knot = strong_components(count, [(before, after) for before, after, _ in self.region_edges])
        blocking = self.plan.blocking
        return any(edge in blocking and knot[before] == knot[after] for before, after, edge in self.region_edges)

    @property
    def bytes_materialized(self) -> float:
        return sum(self.plan.edges[edge].bytes for edge in sorted(self.materialized))


def components(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The component of each of `count` points, numbered from 0 in the order of first points.

    >>> components(4, [(2, 0), (3, 1)])
    (0, 1, 0, 1)
    """
    parent = list(range(count))
    for one, other in pairs:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        while parent[other] != other:
            parent[other] = other = parent[parent[other]]
        parent[one] = other
    names: dict[int, int] = {}
    found = []
    for point in range(count):
        root = point
        while parent[root] != root:
            root = parent[root]
        parent[point] = root
        found.append(names.setdefault(root, len(names)))
    return tuple(found)


def levels(count: int, pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Of each point 1 + the longest path that leads to it; 0 for points on or behind a cycle.

    >>> levels(3, [(0, 1), (0, 2), (1, 2)]), levels(2, [(0, 1), (1, 1)])
    ((1, 2, 3), (1, 0))
    """
    waiting = [0] * count
    after: list[list[int]] = [[] for _ in range(count)]
    for before, then in pairs:
        waiting[then] += 1
        after[before].append(then)
    level = [0] * count
    reached = [1] * count
    ready = [point for point in range(count) if not waiting[point]]
    for point in ready:
        level[point] = reached[point]
        for then in after[point]:
            reached[then] = max(reached[then], level[point] + 1)
            waiting[then] -= 1
            if not waiting[then]:
                ready.append(then)
    return tuple(level)


def strong_components(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The strongly connected component of each point (Tarjan 1972, without recursion).

    >>> strong_components(3, [(0, 1), (1, 0), (1, 2)])
    [1, 1, 0]
    """
    after: list[list[int]] = [[] for _ in range(count)]
    for before, then in pairs:
        after[before].append(then)
    number = [0] * count
    low = [0] * count
    component = [-1] * count
    stack: list[int] = []
    clock = components_found = 0
    for start in range(count):
        if number[start]:
            continue
        clock += 1
        number[start] = low[start] = clock
        stack.append(start)
        work = [(start, iter(after[start]))]
        while work:
            point, following = work[-1]
            for then in following:
                if not number[then]:
                    clock += 1
                    number[then] = low[then] = clock
                    stack.append(then)
                    work.append((then, iter(after[then])))
                    break
                if component[then] < 0:
                    low[point] = min(low[point], number[then])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[point])
                if low[point] == number[point]:
                    while component[point] < 0:
                        component[stack.pop()] = components_found
                    components_found += 1
    return component
