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
        self._forced = [link for link in links if link.forced]
        self._starts = sorted({link.head for link in self._forced})
        self._backward = {(links[place].head, links[place].tail): column for column, place in enumerate(free)}

    def violated(self, values: Values) -> dict[frozenset[int], None]:
        """Backward links of cycles on which `values` add up to less than 1.

        Of each forced link a shortest, then again with the links of those made long: a program over many cycles that
        share no link is solved about as fast as one over a few, and fewer programs are needed.
        """
        import numpy as np

        found: dict[frozenset[int], None] = {}
        lengths = np.clip(values, 0, 1)
        for _ in range(_REPEATS if self._forced else 0):
            fresh = self._shortest(lengths)
            if not fresh:
                break
            found.update(fresh)
            lengths[list(frozenset().union(*fresh))] = 1.0
        return found

    def _shortest(self, values: Values) -> dict[frozenset[int], None]:
        import numpy as np
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        lengths = np.concatenate([np.full(self._forward, _LEAST), values + _PER_LINK])
        graph = csr_array((lengths, (self._tails, self._heads)), shape=(self._size, self._size))
        limit = 1 - TOLERANCE
        distances, before = dijkstra(graph, indices=self._starts, return_predecessors=True, limit=limit)
        row = {start: place for place, start in enumerate(self._starts)}
        return {
            frozenset(self._walked(before[row[link.head]], link.head, link.tail)): None
            for link in self._forced
            if distances[row[link.head], link.tail] < limit
        }

    def _walked(self, before: Any, start: int, end: int) -> Iterator[int]:
        while end != start:
            previous = int(before[end])
            column = self._backward.get((previous, end))
            if column is not None:
                yield column
            end = previous
