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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_regions.regions.cycles import TOLERANCE, Cycles
from spark_regions.regions.kernel import Kernel
from spark_regions.regions.passable import pipelined_in_order

if TYPE_CHECKING:
    from spark_regions.regions.cycles import Values


_FIRST_GAP = 0.01


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
        self.separation = Cycles(kernel)
        self.cycles: dict[frozenset[int], None] = {}
        self.rounds = 0

    def solve(self, deadline: float) -> Cover:
        import numpy as np

        bound = 0.0
        values: Values = np.zeros(len(self.free))
        best = self._repaired(values)
        centre = best
        # None while the relaxation is solved; then the gap that integer programs may leave, smaller each time that a
        # solution breaks no cycle.
        gap: float | None = None
        while self._weight(best) > bound * (1 + 1e-9):
            # Cycles broken between the solution and former ones cut deeper than those broken at a corner.
            centre = (centre + values) / 2 if gap is None and self.rounds else values
            fresh = self._broken(centre) or self._broken(values)
            if not fresh:
                if gap == 0.0 or (np.all(np.minimum(values, 1 - values) < TOLERANCE) and not gap):
                    best = self._lighter(best, np.round(values))
                    break
                best = self._lighter(best, self._repaired(values))
                gap = _FIRST_GAP if gap is None else 0.0
            self.cycles.update(dict.fromkeys(fresh))
            left = deadline - time.monotonic()
            solved = self._optimum(gap, left, self._weight(best)) if left > 0 else None
            if solved is None:
                break
            values, lower = solved
            if gap is None and lower > bound * (1 + 1e-6):
                # While the bound rises no cycle can be dropped and found again for ever.
                self.cycles = {cycle: None for cycle in self.cycles if values[list(cycle)].sum() < 1.5}
            bound = max(bound, lower)
            if gap is not None:
                best = self._lighter(best, self._repaired(values))
        weight = self._weight(best)
        # The solver's own tolerances are relative to the optimum.
        bound = weight if weight <= bound * (1 + 1e-6) + 1e-9 else bound
        links = frozenset(self.free[column] for column in np.flatnonzero(best > 0.5))
        return Cover(links, weight, bound, len(self.cycles), self.rounds)

    def _broken(self, values: Values) -> list[frozenset[int]]:
        return [cycle for cycle in self.separation.violated(values) if cycle not in self.cycles]

    def _weight(self, values: Values) -> float:
        return float(self.weights @ values)

    def _lighter(self, one: Values, other: Values) -> Values:
        return other if self._weight(other) < self._weight(one) else one

    def _optimum(self, gap: float | None, seconds: float, known: float) -> tuple[Values, float] | None:
        """Optimum over the cycles known so far, and a lower bound; None where the time does not suffice for any.

        :param known: weight of a choice; no better one has a link that alone is heavier, and without those the solver's
            absolute tolerances are small beside the optimum
        """
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        self.rounds += 1
        integral = gap is not None
        columns = np.fromiter((column for cycle in self.cycles for column in cycle), dtype=np.int32)
        starts = np.cumsum([0, *(len(cycle) for cycle in self.cycles)])
        rows = csr_array((np.ones(len(columns)), columns, starts), shape=(len(self.cycles), len(self.free)))
        light = self.weights <= known
        found = milp(
            np.where(light, self.weights / known, 1.0),
            integrality=np.full(len(self.free), int(integral)),
            bounds=Bounds(0, light.astype(float)),
            constraints=LinearConstraint(rows, lb=1),
            options={"time_limit": seconds, "mip_rel_gap": gap or 0.0},
        )
        # A linear program that ran out of time bounds nothing; an integer one has a bound of its own.
        if found.x is None or (not integral and found.status != 0):
            return None
        return found.x, float(found.mip_dual_bound if integral else found.fun) * known

    def _repaired(self, values: Values) -> Values:
        """A choice that hits every cycle: links outside the given choice are pipelined first, the dearest first."""
        import numpy as np

        order = sorted(range(len(self.free)), key=lambda column: (values[column] > 0.5, -self.weights[column]))
        pipelined = pipelined_in_order(self.kernel, (self.free[column] for column in order))
        return np.array([float(place not in pipelined) for place in self.free])
