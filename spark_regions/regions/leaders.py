"""Cost function B exactly, or with a bound: an integer program in which each region pays for its slowest operator.

Operators are ordered, slowest first. y_v = 1 if v is the first of its region, its leader. Any set S of operators that
holds none before v must have v as a leader or a pipelined edge on its border:

    minimise sum seconds_v y_v   with   y_v + sum over non-blocking edges e on the border of S of (1 - x_e) >= 1

for each v and each such S around it, and the constraints over cycles of `spark_regions.regions.cover`. Both families
are found when a solution breaks them. Pipelining more never costs (condition I), so a plan that is not hopeless can be
settled into a schedulable one, clean edges and the rest of chains with a blocking edge are pipelined beforehand, and
where no more than blocking edges need be materialized that is the optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_regions.costs.region_seconds import RegionSeconds
from spark_regions.dag.region_plan import RegionPlan, components
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.regions.cycles import TOLERANCE, Cycles
from spark_regions.regions.kernel import CHAINS, CLEAN, RegionKernel, region_kernel
from spark_regions.regions.merging import settled
from spark_regions.regions.passable import pipelined_in_order
from spark_regions.regions.properties import pruning

if TYPE_CHECKING:
    from spark_regions.regions.cycles import Values


@dataclass(frozen=True, slots=True)
class Led:
    """
    :param bound: no schedulable plan costs less
    :param rounds: number of programs solved
    :param constraints: number of cycles and borders that were needed
    """

    best: RegionPlan
    bound: float
    rounds: int
    constraints: int


def solve_leaders(
    plan: PhysicalPlan, model: RegionSeconds, deadline: float, without: frozenset[str] = frozenset()
) -> Led:
    """The plan of least summed seconds of slowest operators, or the best by the deadline (of `time.monotonic`)."""
    least = RegionPlan(plan, plan.blocking)
    if least.schedulable:
        return Led(least, model.cost(least), 0, 0)
    known = pruning(plan, model, {CHAINS, CLEAN} - without)
    return _Program(plan, model, region_kernel(plan, known.pipelined)).solve(deadline)


class _Program:
    """Columns: x of each free link, then y of each operator of the kernel."""

    def __init__(self, plan: PhysicalPlan, model: RegionSeconds, reduced: RegionKernel) -> None:
        import numpy as np

        kernel = reduced.kernel
        self.plan, self.model, self.kernel, self.forced = plan, model, kernel, reduced.forced
        self.seconds = [0.0] * kernel.size
        for place, operator in enumerate(plan.operators):
            group = reduced.group[place]
            self.seconds[group] = max(self.seconds[group], operator.seconds)
        self.free = kernel.free
        self.ends = [(kernel.links[place].tail, kernel.links[place].head) for place in self.free]
        self.prices = np.array([*([0.0] * len(self.free)), *self.seconds])
        order = sorted(range(kernel.size), key=lambda node: -self.seconds[node])
        self.rank = {node: place for place, node in enumerate(order)}
        self.separation = Cycles(kernel)
        self.cycles: dict[frozenset[int], None] = {}
        self.borders: dict[tuple[int, frozenset[int]], None] = {}
        for node in order:
            self._add_border({node})
        self.rounds = 0
        self.best = RegionPlan(plan, frozenset(range(len(plan.edges))))
        self.cost = model.cost(self.best)

    def solve(self, deadline: float) -> Led:
        import numpy as np

        bound = self.model.least(self.plan)
        values: Values = np.zeros(len(self.prices))
        self._improve(values)
        integral = False
        while self.cost > bound * (1 + 1e-6) + 1e-9:
            known = len(self.cycles) + len(self.borders)
            self.cycles.update(self.separation.violated(values[: len(self.free)]))
            if self.rounds:
                self._separate_borders(values, integral, deadline)
            if len(self.cycles) + len(self.borders) == known and self.rounds:
                if integral:
                    break
                integral = True
            left = deadline - time.monotonic()
            solved = self._optimum(integral, left) if left > 0 else None
            if solved is None:
                break
            values, lower = solved
            bound = max(bound, lower)
            self._improve(values)
        bound = self.cost if self.cost <= bound * (1 + 1e-6) + 1e-9 else bound
        return Led(self.best, bound, self.rounds, len(self.cycles) + len(self.borders))

    def _improve(self, values: Values) -> None:
        """Takes the plan that a solution suggests, if it is better: what the solution pipelines comes first, of that
        what joins slow operators."""

        def key(column: int) -> tuple[float, float]:
            tail, head = self.ends[column]
            return round(float(values[column]), 1), -min(self.seconds[tail], self.seconds[head])

        order = [self.free[column] for column in sorted(range(len(self.free)), key=key)]
        parted = set(order) - pipelined_in_order(self.kernel, order)
        edges = (edge for place in parted for edge in self.kernel.links[place].edges)
        found = settled(RegionPlan(self.plan, self.forced.union(edges)))
        cost = self.model.cost(found)
        if cost < self.cost:
            self.best, self.cost = found, cost

    def _add_border(self, nodes: set[int]) -> None:
        leader = min(nodes, key=self.rank.__getitem__)
        border = (column for column, (tail, head) in enumerate(self.ends) if (tail in nodes) != (head in nodes))
        self.borders[leader, frozenset(border)] = None

    def _separate_borders(self, values: Values, integral: bool, deadline: float) -> None:
        """Adds borders over which nothing like a whole pipelined edge leads, though nobody inside leads either."""
        before = len(self.borders)
        share = 1 - values[: len(self.free)]
        for least in (0.5,) if integral else (0.7, 0.4, 0.1, TOLERANCE):
            joined = (ends for ends, part in zip(self.ends, share, strict=True) if part >= least)
            groups: dict[int, set[int]] = {}
            for node, group in enumerate(components(self.kernel.size, joined)):
                groups.setdefault(group, set()).add(node)
            for nodes in groups.values():
                leader = min(nodes, key=self.rank.__getitem__)
                over = [(tail in nodes) != (head in nodes) for tail, head in self.ends]
                if values[len(self.free) + leader] + share[over].sum() < 1 - TOLERANCE:
                    self._add_border(nodes)
        if len(self.borders) == before and not integral:
            self._separate_by_flow(values, share, deadline)

    def _separate_by_flow(self, values: Values, share: Values, deadline: float) -> None:
        """The border of least share around each operator that does not lead, by maximum flow to those before it."""
        import numpy as np
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        unit = 1_000_000
        size, sink = self.kernel.size, self.kernel.size
        tails, heads = np.array(self.ends).T
        capacity = np.round(np.clip(share, 0, 1) * unit).astype(np.int32)
        nodes = np.arange(size)
        ranks = np.array([self.rank[node] for node in range(size)])
        rows = np.concatenate([tails, heads, nodes])
        columns = np.concatenate([heads, tails, np.full(size, sink)])
        for node in range(size):
            lead = values[len(self.free) + node]
            if lead > 1 - TOLERANCE or self.seconds[node] == 0 or time.monotonic() > deadline:
                continue
            drains = np.where(ranks < self.rank[node], np.int32(2 * unit), np.int32(0))
            amounts = np.concatenate([capacity, capacity, drains])
            graph = csr_array((amounts, (rows, columns)), shape=(size + 1, size + 1), dtype=np.int32)
            graph.eliminate_zeros()
            found = maximum_flow(graph, node, sink)
            if found.flow_value / unit + lead < 1 - 1e-4:
                left = graph - found.flow
                left.eliminate_zeros()
                reached = breadth_first_order(left, node, return_predecessors=False)
                self._add_border({int(other) for other in reached if other != sink})

    def _optimum(self, integral: bool, seconds: float) -> tuple[Values, float] | None:
        """Optimum over the constraints known so far, and a lower bound; None where the time suffices for neither."""
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        self.rounds += 1
        rows = [(sorted(cycle), 1.0, -1, 1.0) for cycle in self.cycles]
        rows += [(sorted(border), -1.0, leader, 1.0 - len(border)) for leader, border in self.borders]
        columns: list[int] = []
        amounts: list[float] = []
        starts, least = [0], []
        for row, amount, leader, bound in rows:
            columns += row
            amounts += [amount] * len(row)
            if leader >= 0:
                columns.append(len(self.free) + leader)
                amounts.append(1.0)
            starts.append(len(columns))
            least.append(bound)
        matrix = csr_array((amounts, columns, starts), shape=(len(rows), len(self.prices)))
        scale = float(self.prices.max()) or 1.0
        # With x whole, y is whole by itself: it is least where it is either 0 or 1.
        whole = np.array([int(integral)] * len(self.free) + [0] * self.kernel.size)
        found = milp(
            self.prices / scale,
            integrality=whole,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, lb=np.array(least)),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if found.x is None or (not integral and found.status != 0):
            return None
        return found.x, float(found.mip_dual_bound if integral else found.fun) * scale
