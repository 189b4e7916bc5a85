"""A region graph under pipelining: regions merge edge by edge, as long as no cycle arises."""

from __future__ import annotations

from collections.abc import Iterable

from spark_regions.dag.region_plan import RegionPlan, strong_components
from spark_regions.dag.workflow import PhysicalPlan


class RegionGraph:
    """Starts with every edge materialized, which is always schedulable."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.pipelined: set[int] = set()
        count = len(plan.operators)
        self._parent = list(range(count))
        # Of each region: the materialized edges that leave and enter it, counted by the region at their other end.
        self._after: list[dict[int, int]] = [{} for _ in range(count)]
        self._before: list[dict[int, int]] = [{} for _ in range(count)]
        for tail, head in zip(plan.tails, plan.heads, strict=True):
            _count(self._after[tail], head, 1)
            _count(self._before[head], tail, 1)

    def region(self, operator: int) -> int:
        parent = self._parent
        while parent[operator] != operator:
            parent[operator] = operator = parent[parent[operator]]
        return operator

    def pipeline(self, edge: int) -> bool:
        """Pipelines a materialized edge unless the plan would not be schedulable then; whether it did."""
        tail, head = self.region(self.plan.tails[edge]), self.region(self.plan.heads[edge])
        if self._after[tail][head] > 1 or self._detour(tail, head):
            return False
        self._remove(tail, head)
        self._merge(tail, head)
        self.pipelined.add(edge)
        return True

    def found(self) -> RegionPlan:
        return RegionPlan(self.plan, frozenset(range(len(self.plan.edges))) - self.pipelined)

    def _detour(self, tail: int, head: int) -> bool:
        """Whether the head is reached from the tail through another region. Both directions grow in turn."""
        ahead = {other for other in self._after[tail] if other != head}
        behind = {other for other in self._before[head] if other != tail}
        new_ahead, new_behind = list(ahead), list(behind)
        while new_ahead and new_behind:
            if not ahead.isdisjoint(behind):
                return True
            if len(new_ahead) <= len(new_behind):
                new_ahead = _grow(ahead, new_ahead, self._after)
            else:
                new_behind = _grow(behind, new_behind, self._before)
        return not ahead.isdisjoint(behind)

    def _remove(self, tail: int, head: int) -> None:
        del self._after[tail][head]
        del self._before[head][tail]

    def _merge(self, one: int, other: int) -> None:
        if len(self._after[one]) + len(self._before[one]) < len(self._after[other]) + len(self._before[other]):
            one, other = other, one
        self._parent[other] = one
        for ways, back in ((self._after, self._before), (self._before, self._after)):
            for neighbour, count in ways[other].items():
                del back[neighbour][other]
                _count(ways[one], neighbour, count)
                _count(back[neighbour], one, count)
            ways[other] = {}


def settled(found: RegionPlan) -> RegionPlan:
    """A plan that is not hopeless, made schedulable: materialized edges on cycles of its region graph are pipelined.

    That opens no new way: around the cycle there was a way back already.
    """
    while not found.schedulable:
        assert not found.hopeless, "a blocking edge is on a cycle"
        edges = found.region_edges
        knot = strong_components(len(found.regions), [(before, after) for before, after, _ in edges])
        tied = {edge for before, after, edge in edges if knot[before] == knot[after]}
        found = RegionPlan(found.plan, found.materialized - tied)
    return found


def _count(counts: dict[int, int], key: int, more: int) -> None:
    counts[key] = counts.get(key, 0) + more


def _grow(known: set[int], newest: Iterable[int], ways: list[dict[int, int]]) -> list[int]:
    fresh = []
    for region in newest:
        for other in ways[region]:
            if other not in known:
                known.add(other)
                fresh.append(other)
    return fresh
