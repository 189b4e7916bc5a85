"""The exact optimum of a kernel: an integer program over cycles, with proven gap 0 (HiGHS through scipy).

Let pipelined links be passable both ways and materialized ones forward only. A plan is not hopeless (Pasta def. 4.1)
exactly when no forced link lies on a cycle of that graph: each cycle through a forced link must go backward over some
materialized one. Among the plans that are not hopeless, one of least cost can be taken that is schedulable: pipelining
every materialized link on a cycle opens no new way, since around the cycle there was a way back already, and costs
nothing. So the optimum is the lightest set of links that hits the backward links of every cycle through a forced link:

    minimise sum w_e x_e   with   sum over backward links of C of x_e >= 1   for each such cycle C,   x binary.

The cycles are too many to list; they are found when a solution breaks them, by shortest paths of length x over
backward and 0 over forward links, first on the linear relaxation, which is most often integral at its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_regions.regions.kernel import Kernel

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Values = NDArray[numpy.float64]

_TOLERANCE = 1e-6
# Breaks ties among paths of equal length for the one with fewer links: it cuts deeper.
_PER_LINK = 1e-7


@dataclass(frozen=True, slots=True)
class Cover:
    """The links to materialize, besides the forced ones.

    :param bound: no choice weighs less
    :param cycles: number of constraints that were needed
    :param rounds: number of programs solved
    """

    links: frozenset[int]
    weight: float
    bound: float
    cycles: int
    rounds: int

    @property
    def proven(self) -> bool:
        return self.weight <= self.bound


def cover(kernel: Kernel, deadline: float) -> Cover:
    """The lightest choice, or the best found at the deadline (of `time.monotonic`) with a lower bound."""
    return _Program(kernel).solve(deadline)


class _Program:
    def __init__(self, kernel: Kernel) -> None:
        import numpy as np

        self.kernel = kernel
        self.free = kernel.free
        self.weights = np.array([kernel.links[place].weight for place in self.free])
        self.column = {place: column for column, place in enumerate(self.free)}
        # Arcs: every link forward, then every free link backward.
        links = kernel.links
        self.tails = np.array([link.tail for link in links] + [links[place].head for place in self.free])
        self.heads = np.array([link.head for link in links] + [links[place].tail for place in self.free])
        self.forced = [link for link in links if link.forced]
        self.backward: dict[tuple[int, int], int] = {
            (links[place].head, links[place].tail): column for column, place in enumerate(self.free)
        }
        self.cycles: dict[frozenset[int], None] = {}
        self.rounds = 0

    def solve(self, deadline: float) -> Cover:
        import numpy as np

        bound = 0.0
        best = self._repaired(np.zeros(len(self.free)))
        values: Values = np.zeros(len(self.free))
        integral = False
        while True:
            fresh = self._violated(values)
            if not fresh:
                if integral or np.all(np.minimum(values, 1 - values) < _TOLERANCE):
                    chosen = np.round(values)
                    if self._weight(chosen) < self._weight(best):
                        best = chosen
                    break
                integral = True
            else:
                self.cycles.update(dict.fromkeys(fresh))
            left = deadline - time.monotonic()
            if left <= 0:
                break
            solved = self._optimum(integral, left)
            if solved is None:
                break
            values, lower = solved
            bound = max(bound, lower)
            if integral:
                repaired = self._repaired(values)
                if self._weight(repaired) < self._weight(best):
                    best = repaired
                if self._weight(best) <= bound * (1 + 1e-9):
                    break
        weight = self._weight(best)
        # The solver's own tolerances are relative to the optimum.
        bound = weight if weight <= bound * (1 + 1e-7) + 1e-9 else bound
        links = frozenset(self.free[column] for column in np.flatnonzero(best > 0.5))
        return Cover(links, weight, bound, len(self.cycles), self.rounds)

    def _weight(self, values: Values) -> float:
        return float(self.weights @ values)

    def _optimum(self, integral: bool, seconds: float) -> tuple[Values, float] | None:
        """Optimum over the cycles known so far, and a lower bound; None where the time does not suffice for any."""
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        self.rounds += 1
        columns = np.fromiter((column for cycle in self.cycles for column in cycle), dtype=np.int32)
        starts = np.cumsum([0, *(len(cycle) for cycle in self.cycles)])
        rows = csr_array((np.ones(len(columns)), columns, starts), shape=(len(self.cycles), len(self.free)))
        scale = float(self.weights.max()) or 1.0
        found = milp(
            self.weights / scale,
            integrality=np.full(len(self.free), int(integral)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(rows, lb=1),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if found.x is None:
            return None
        lower = found.fun if found.mip_dual_bound is None or not integral else found.mip_dual_bound
        return found.x, float(lower) * scale

    def _violated(self, values: Values) -> list[frozenset[int]]:
        """Backward links of cycles on which they add up to less than 1; one for each forced link that has such."""
        import numpy as np
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        size = self.kernel.size
        lengths = np.concatenate([np.zeros(len(self.kernel.links)), np.clip(values, 0, 1) + _PER_LINK])
        # csgraph takes a stored 0 for no arc.
        graph = csr_array((lengths + _PER_LINK / 1000, (self.tails, self.heads)), shape=(size, size))
        starts = sorted({link.head for link in self.forced})
        row = {start: place for place, start in enumerate(starts)}
        distances, before = dijkstra(graph, indices=starts, return_predecessors=True, limit=1 - _TOLERANCE)
        found: dict[frozenset[int], None] = {}
        for link in self.forced:
            place = row[link.head]
            if distances[place, link.tail] < 1 - _TOLERANCE:
                cycle = frozenset(self._backward(before[place], link.head, link.tail))
                if cycle not in self.cycles:
                    found[cycle] = None
        return list(found)

    def _backward(self, before: Any, start: int, end: int) -> Iterable[int]:
        while end != start:
            previous = int(before[end])
            column = self.backward.get((previous, end))
            if column is not None:
                yield column
            end = previous

    def _repaired(self, values: Values) -> Values:
        """A choice that hits every cycle: the given one, rounded, all free links added, then taken away again where
        that closes no cycle through a forced link; the heaviest first."""
        import numpy as np

        chosen = np.ones(len(self.free))
        passable = _Passable(self.kernel)
        order = sorted(range(len(self.free)), key=lambda column: (values[column] > 0.5, -self.weights[column]))
        for column in order:
            link = self.kernel.links[self.free[column]]
            if passable.open_back(link.head, link.tail):
                chosen[column] = 0.0
        return chosen


class _Passable:
    """Ways through a kernel as more and more links open backward, none of which may lead around a forced link."""

    def __init__(self, kernel: Kernel) -> None:
        self.after: list[list[int]] = [[] for _ in range(kernel.size)]
        self.before: list[list[int]] = [[] for _ in range(kernel.size)]
        for link in kernel.links:
            self.after[link.tail].append(link.head)
            self.before[link.head].append(link.tail)
        self.forced = [(link.tail, link.head) for link in kernel.links if link.forced]
        self.forced_after: dict[int, list[int]] = {}
        for tail, head in self.forced:
            self.forced_after.setdefault(tail, []).append(head)

    def open_back(self, start: int, end: int) -> bool:
        """Opens start -> end unless that closes a cycle through a forced link; whether it was opened."""
        onward = self._reached(self.after, end)
        if start not in onward:
            return self._open(start, end)
        backward = self._reached(self.before, start)
        around = onward & backward
        if any(head in around for tail in around for head in self.forced_after.get(tail, ())):
            return False
        return self._open(start, end)

    def _open(self, start: int, end: int) -> bool:
        self.after[start].append(end)
        self.before[end].append(start)
        return True

    @staticmethod
    def _reached(ways: list[list[int]], start: int) -> set[int]:
        seen = {start}
        stack = [start]
        while stack:
            for then in ways[stack.pop()]:
                if then not in seen:
                    seen.add(then)
                    stack.append(then)
        return seen
