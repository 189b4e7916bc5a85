"""The plan of least cost for costs that are sums over edges (conditions I and II): reduce, then solve each kernel."""

from __future__ import annotations

from dataclasses import dataclass

from spark_regions.costs.cost_models import SeparableCost
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.errors import CostModelError
from spark_regions.regions.kernel import reduce_plan
from spark_regions.regions.merging import settled


@dataclass(frozen=True, slots=True)
class Solved:
    """
    :param bound: of the cost; equal to it if nothing was left open
    :param kernels: (operators, undecided edges, cycles, programs) of each part that reductions could not decide
    """

    best: RegionPlan
    bound: float
    kernels: tuple[tuple[int, int, int, int], ...]


def solve(plan: PhysicalPlan, cost: SeparableCost, deadline: float, without: frozenset[str] = frozenset()) -> Solved:
    """The cheapest schedulable plan, or the best found by the deadline (of `time.monotonic`).

    :raises CostModelError: an edge's cost is negative
    """
    weights = [cost.edge_cost(plan, edge) for edge in range(len(plan.edges))]
    for edge, weight in enumerate(weights):
        if not weight >= 0:
            raise CostModelError(f"Edge {plan.edges[edge].id} costs {weight:g}; condition I asks for zero or above.")
    reduced = reduce_plan(plan, weights, without)
    chosen = set(reduced.forced)
    bound = sum(weights[edge] for edge in sorted(reduced.forced))
    kernels = []
    # The small ones first: with little time left, more of them end proven.
    for kernel in sorted(reduced.kernels, key=lambda kernel: len(kernel.links)):
        from spark_regions.regions.cover import cover

        covered = cover(kernel, deadline)
        for place in covered.links:
            chosen.update(kernel.links[place].edges)
        bound += covered.bound
        kernels.append((kernel.size, len(kernel.free), covered.cycles, covered.rounds))
    return Solved(settled(RegionPlan(plan, frozenset(chosen))), bound, tuple(kernels))
