"""Cycles through forced links that a choice of materialized links does not hit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spark_regions.regions.kernel import Kernel

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Values = NDArray[numpy.float64]

TOLERANCE = 1e-6
# Breaks ties among paths of equal length for the one with fewer links: it cuts deeper.
_PER_LINK = 1e-7
# csgraph takes a stored 0 for no arc.
_LEAST = 1e-10
_REPEATS = 6
# Searches from this many forced links at once: their table of distances stays small.
_GROUP = 128
# Once a round has found so many cycles, the links that were not looked at wait for the next round.
_ENOUGH = 500


class Cycles:
    """All cycles of a kernel, found as they are needed. Columns number its free links."""

    def __init__(self, kernel: Kernel) -> None:
        import numpy as np

        links, free = kernel.links, kernel.free
        self._size = kernel.size
        self._forward = len(links)
        # Every link forward, then every free link backward.
        self._tails = np.array([link.tail for link in links] + [links[place].head for place in free])
        self._heads = np.array([link.head for link in links] + [links[place].tail for place in free])
        # Of each head of forced links, their tails; heads in groups, of which the next is looked at first.
        self._forced: dict[int, list[int]] = {}
        for link in links:
            if link.forced:
                self._forced.setdefault(link.head, []).append(link.tail)
        heads = sorted(self._forced)
        self._groups = [heads[start : start + _GROUP] for start in range(0, len(heads), _GROUP)]
        self._next = 0
        self._backward = {(links[place].head, links[place].tail): column for column, place in enumerate(free)}

    def violated(self, values: Values) -> dict[frozenset[int], None]:
        """Backward links of cycles on which `values` add up to less than 1.

        Of each forced link a shortest, then again with the links of those made long: a program over many cycles that
        share no link is solved about as fast as one over a few, and fewer programs are needed.
        """
        import numpy as np

        found: dict[frozenset[int], None] = {}
        groups = len(self._groups)
        for _ in range(groups):
            group = self._groups[self._next]
            self._next = (self._next + 1) % groups
            lengths = np.clip(values, 0, 1)
            for _ in range(_REPEATS):
                fresh = self._shortest(lengths, group)
                if not fresh:
                    break
                found.update(fresh)
                lengths[list(frozenset().union(*fresh))] = 1.0
            if len(found) >= _ENOUGH:
                break
        return found

    def _shortest(self, values: Values, group: list[int]) -> dict[frozenset[int], None]:
        """A shortest cycle of each forced link whose head is in the group.

        Links that are as good as materialized do not count as ways back; then only ends of one strong component have a
        cycle, which in late rounds few have.
        """
        import numpy as np
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components, dijkstra

        limit = 1 - TOLERANCE
        lengths = np.concatenate([np.full(self._forward, _LEAST), values + _PER_LINK])
        ways = lengths < limit
        shape = (self._size, self._size)
        graph = csr_array((lengths[ways], (self._tails[ways], self._heads[ways])), shape=shape)
        _, knot = connected_components(graph, connection="strong")
        tied = [head for head in group if any(knot[tail] == knot[head] for tail in self._forced[head])]
        if not tied:
            return {}
        distances, before = dijkstra(graph, indices=tied, return_predecessors=True, limit=limit)
        return {
            frozenset(self._walked(before[row], head, tail)): None
            for row, head in enumerate(tied)
            for tail in self._forced[head]
            if distances[row, tail] < limit
        }

    def _walked(self, before: Any, start: int, end: int) -> Iterator[int]:
        while end != start:
            previous = int(before[end])
            column = self._backward.get((previous, end))
            if column is not None:
                yield column
            end = previous
