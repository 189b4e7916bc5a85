"""A workflow as Maestro changes it: links, materialization readers, copies of operators, and regions by source.

A source has no pipelined input; a region is all that one source reaches over pipelined links, so regions overlap
(thesis defs. 4.3, 4.4). A materialized link becomes a reader, a source of its own, that waits for the link's writer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from spark_regions.dag.region_plan import levels
from spark_regions.dag.workflow import PhysicalPlan


@dataclass(frozen=True, slots=True)
class FlowLink:
    """
    :param waits: the head's regions start after the tail's regions have ended
    :param edge: position of the plan's edge that it comes from
    """

    tail: int
    head: int
    waits: bool
    edge: int


class Flow:
    """Nodes 0 … n-1 are the plan's operators; readers and copies follow."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.names = [operator.id for operator in plan.operators]
        self.operator_of = list(range(len(plan.operators)))
        self.order = {operator: float(place) for place, operator in enumerate(plan.topological)}
        ends = zip(plan.tails, plan.heads, strict=True)
        self.links = [FlowLink(tail, head, edge in plan.blocking, edge) for edge, (tail, head) in enumerate(ends)]
        self.materialized: list[int] = []
        self.recomputed_seconds = 0.0
        self._index()

    def copy(self) -> Flow:
        other = Flow.__new__(Flow)
        other.plan, other.recomputed_seconds = self.plan, self.recomputed_seconds
        other.names, other.operator_of, other.order = self.names[:], self.operator_of[:], dict(self.order)
        other.links, other.materialized = self.links[:], self.materialized[:]
        other._index()
        return other

    def materialize(self, cut: Collection[int]) -> Flow:
        """The flow with a writer and a reader on each link of the cut (numbers of `links`)."""
        other = self.copy()
        for number in sorted(cut):
            link = self.links[number]
            reader = other._node(f"read {self.plan.edges[link.edge].id}", -1, self.order[link.head] - 0.25)
            other.links[number] = FlowLink(link.tail, reader, True, link.edge)
            other.links.append(FlowLink(reader, link.head, False, link.edge))
            other.materialized.append(link.edge)
        other._index()
        return other

    def replicate(self, cut: Collection[int]) -> Flow:
        """The flow in which copies of all that feeds the cut over pipelined links feed it instead (fig. 53 a)."""
        other = self.copy()
        copied = self.upstream({self.links[number].tail for number in cut})
        twin = {}
        for node in sorted(copied):
            twin[node] = other._node(f"{self.names[node]} again", self.operator_of[node], self.order[node])
        for number, link in enumerate(self.links):
            if number in cut:
                other.links[number] = FlowLink(twin[link.tail], link.head, False, link.edge)
            if link.head in twin:
                tail = link.tail if link.waits else twin[link.tail]
                other.links.append(FlowLink(tail, twin[link.head], link.waits, link.edge))
        other.recomputed_seconds += self.seconds_of(copied)
        other._index()
        return other

    def seconds_of(self, nodes: Iterable[int]) -> float:
        return sum(self.seconds(node) for node in sorted(nodes))

    def seconds(self, node: int) -> float:
        operator = self.operator_of[node]
        return self.plan.operators[operator].seconds if operator >= 0 else 0.0

    def upstream(self, nodes: Iterable[int]) -> set[int]:
        """All that feeds the nodes over pipelined links, and they themselves."""
        return self._over_pipelined(nodes, self.into, lambda link: link.tail)

    def region(self, source: int) -> set[int]:
        """All that a source reaches over pipelined links."""
        return self._over_pipelined((source,), self.out, lambda link: link.head)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Of each source, in the order of `sources`, the rank of its region; 0 on or behind a cycle."""
        place = {source: number for number, source in enumerate(self.sources)}
        pairs = {
            (place[before], place[after])
            for link in self.links
            if link.waits
            for before in self.sources_of(link.tail)
            for after in self.sources_of(link.head)
        }
        return levels(len(self.sources), sorted(pairs))

    def sources_of(self, node: int) -> list[int]:
        """Sources of the regions that a node belongs to."""
        if node not in self._sources_of:
            bits = self._reached_by[node]
            self._sources_of[node] = [source for number, source in enumerate(self.sources) if bits >> number & 1]
        return self._sources_of[node]

    def _over_pipelined(
        self, nodes: Iterable[int], links: Sequence[Sequence[int]], far: Callable[[FlowLink], int]
    ) -> set[int]:
        """The nodes and all that is reached from them over pipelined links; `far` is the end that a step leads to."""
        found = set(nodes)
        stack = list(found)
        while stack:
            for number in links[stack.pop()]:
                link = self.links[number]
                if not link.waits and far(link) not in found:
                    found.add(far(link))
                    stack.append(far(link))
        return found

    def _node(self, name: str, operator: int, order: float) -> int:
        self.names.append(name)
        self.operator_of.append(operator)
        self.order[len(self.names) - 1] = order
        return len(self.names) - 1

    def _index(self) -> None:
        count = len(self.names)
        self.out: list[list[int]] = [[] for _ in range(count)]
        self.into: list[list[int]] = [[] for _ in range(count)]
        for number, link in enumerate(self.links):
            self.out[link.tail].append(number)
            self.into[link.head].append(number)
        fed = {link.head for link in self.links if not link.waits}
        self.topological = sorted(range(count), key=lambda node: (self.order[node], node))
        self.sources = [node for node in self.topological if node not in fed]
        self._sources_of: dict[int, list[int]] = {}
        self._reached_by = [0] * count
        for number, source in enumerate(self.sources):
            self._reached_by[source] = 1 << number
        for node in self.topological:
            for number in self.into[node]:
                if not self.links[number].waits:
                    self._reached_by[node] |= self._reached_by[self.links[number].tail]
