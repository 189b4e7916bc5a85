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
        """Backward links of cycles on which `values` add up to less than 1: a shortest for each forced link."""
        import numpy as np
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        if not self._forced:
            return {}
        lengths = np.concatenate([np.full(self._forward, _LEAST), np.clip(values, 0, 1) + _PER_LINK])
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
