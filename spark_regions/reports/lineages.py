"""What was computed in an application, by lineage: how often, how long, how large, and above what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

LINEAGE_LIMIT = 20_000
"""Lineages that are told apart; of an application with more, only the first so many."""


@dataclass(slots=True)
class Lineage:
    """Rows that queries asked for.

    :param uses: places in queries, each query's run counted
    :param seconds: task-seconds of its own operators, summed over `runs`
    :param source_seconds: those of the source itself, where nothing but columns lies between
    :param source: it was never more than the source itself
    :param runs: places in which it was computed and its time is known
    :param below: how often each lineage stood directly below
    :param roots: places that nothing with a lineage stands above
    :param codes: what was said against storing it
    """

    operator: str
    label: str = ""
    uses: int = 0
    runs: int = 0
    seconds: float = 0.0
    source_seconds: float = 0.0
    rows: int | None = None
    bytes: int | None = None
    source: bool = True
    roots: int = 0
    below: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)

    @property
    def self_seconds(self) -> float:
        return self.seconds / self.runs if self.runs else 0.0


class Lineages:
    """All lineages of an application, and the edges between them."""

    def __init__(self) -> None:
        self.found: dict[str, Lineage] = {}
        self.left_out = 0
        self._latest: dict[str, float] = {}

    def add(self, nodes: Iterable[Mapping[str, Any]], ran: Mapping[int, Mapping[str, Any]], spared: set[int]) -> None:
        """A query that ran.

        :param nodes: of the decision: id, operator, children, label, lineage
        :param ran: by node id: rows, bytes, seconds
        :param spared: nodes that were read, or lie below such a node
        """
        plan = {int(node["id"]): node for node in nodes}
        kept = {number: str(node["lineage"]) for number, node in plan.items() if node.get("lineage")}
        above = _above(plan, kept)
        tops = _tops(kept, above)
        sums = totals(plan, ran, spared)
        for top in sorted(set(tops.values())):
            group = [number for number, its_top in sorted(tops.items()) if its_top == top]
            # A sort has the rows of what it sorts, which is what could be stored.
            named = next((number for number in group if plan[number].get("operator") != "Sort"), top)
            known = self._known(kept[top], plan[named])
            if known is not None:
                computed = [] if spared & set(group) else [ran[number] for number in group if number in ran]
                _measure(known, [plan[number] for number in group], computed)
                if top in sums:
                    self._latest[kept[top]] = sums[top]
        for top in sorted(set(tops.values())):
            self._edge(kept, above[top], top)

    def total(self, lineage: str) -> float | None:
        """Task-seconds when it was last computed in full, with everything below; None where it never was."""
        return self._latest.get(lineage)

    def declined(self, lineage: str, code: str) -> None:
        if lineage in self.found:
            self.found[lineage].codes[code] += 1

    def _known(self, lineage: str, node: Mapping[str, Any]) -> Lineage | None:
        known = self.found.get(lineage)
        if known is None:
            if len(self.found) >= LINEAGE_LIMIT:
                self.left_out += 1
                return None
            known = self.found[lineage] = Lineage(str(node.get("operator", "")), str(node.get("label") or ""))
        return known

    def _edge(self, kept: Mapping[int, str], parent: int | None, child: int) -> None:
        if kept[child] not in self.found:
            return
        if parent is None:
            self.found[kept[child]].roots += 1
        elif kept[parent] in self.found:
            self.found[kept[parent]].below[kept[child]] += 1


def _measure(known: Lineage, nodes: list[Mapping[str, Any]], seen: list[Mapping[str, Any]]) -> None:
    """One use of a lineage: its nodes, and what is known of those that ran."""
    known.uses += 1
    sources = {int(node["id"]) for node in nodes if not node.get("children")}
    known.source = known.source and len(sources) == len(nodes)
    times = {int(each["id"]): float(each["seconds"]) for each in seen if each.get("seconds") is not None}
    if times:
        known.seconds += sum(times.values())
        known.source_seconds += sum(seconds for number, seconds in times.items() if number in sources)
        known.runs += 1
    rows = [int(each["rows"]) for each in seen if each.get("rows") is not None]
    known.rows = rows[0] if rows else known.rows
    sizes = [int(each["bytes"]) for each in seen if each.get("bytes") is not None]
    known.bytes = max([known.bytes or 0, *sizes]) if sizes else known.bytes


def totals(
    plan: Mapping[int, Mapping[str, Any]], ran: Mapping[int, Mapping[str, Any]], spared: set[int]
) -> dict[int, float]:
    """Task-seconds of each node with all below it, where nothing of it was read and every time is known.

    >>> plan = {0: {"children": [1, 2]}, 1: {"children": []}, 2: {"children": []}}
    >>> totals(plan, {0: {"seconds": 1.0}, 1: {"seconds": 2.0}, 2: {"seconds": 0.5}}, set())
    {2: 0.5, 1: 2.0, 0: 3.5}
    >>> totals(plan, {0: {"seconds": 1.0}, 2: {"seconds": 0.5}}, {1})
    {2: 0.5}
    """
    found: dict[int, float] = {}
    # Numbers are in pre-order: a child's is higher than its parent's.
    for number in sorted(plan, reverse=True):
        children = [int(child) for child in plan[number].get("children") or ()]
        own = ran.get(number, {}).get("seconds")
        if own is not None and number not in spared and all(child in found for child in children):
            found[number] = float(own) + sum(found[child] for child in children)
    return found


def _above(plan: Mapping[int, Mapping[str, Any]], kept: Mapping[int, str]) -> dict[int, int | None]:
    """The nearest node above each that has a lineage."""
    above: dict[int, int | None] = dict.fromkeys(plan)
    for number in sorted(plan):
        for child in plan[number].get("children") or ():
            above[int(child)] = number if number in kept else above[number]
    return {number: above[number] for number in kept}


def _tops(kept: Mapping[int, str], above: Mapping[int, int | None]) -> dict[int, int]:
    """For each node the highest one of its lineage in a row: a projection has the rows of what it projects."""
    tops: dict[int, int] = {}
    for number in sorted(kept):
        parent = above[number]
        tops[number] = tops[parent] if parent is not None and kept[parent] == kept[number] else number
    return tops
