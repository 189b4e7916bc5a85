"""Ways through a kernel: pipelined links can be gone both ways, materialized ones forward only."""

from __future__ import annotations

from collections.abc import Iterable

from spark_regions.regions.kernel import Kernel


class Passable:
    """Starts with every link materialized; links open backward as long as no way leads around a forced link."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._after: list[list[int]] = [[] for _ in range(kernel.size)]
        self._before: list[list[int]] = [[] for _ in range(kernel.size)]
        self._forced_after: dict[int, list[int]] = {}
        for link in kernel.links:
            self._after[link.tail].append(link.head)
            self._before[link.head].append(link.tail)
            if link.forced:
                self._forced_after.setdefault(link.tail, []).append(link.head)

    def open_back(self, place: int) -> bool:
        """Pipelines a link unless that would be hopeless (Pasta def. 4.1); whether it did."""
        start, end = self._kernel.links[place].head, self._kernel.links[place].tail
        onward = _reached(self._after, end)
        if start in onward and self._forced_after:
            around = onward & _reached(self._before, start)
            if any(head in around for tail in around for head in self._forced_after.get(tail, ())):
                return False
        self._after[start].append(end)
        self._before[end].append(start)
        return True


def pipelined_in_order(kernel: Kernel, order: Iterable[int]) -> set[int]:
    """Links that end up pipelined if each of `order` is where that is not hopeless."""
    passable = Passable(kernel)
    return {place for place in order if passable.open_back(place)}


def _reached(ways: list[list[int]], start: int) -> set[int]:
    seen = {start}
    stack = [start]
    while stack:
        for then in ways[stack.pop()]:
            if then not in seen:
                seen.add(then)
                stack.append(then)
    return seen
