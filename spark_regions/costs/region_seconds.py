"""Cost function B (Pasta §5.3): the sum over regions of the seconds of the slowest operator."""

from __future__ import annotations

from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan


class RegionSeconds:
    """
    Regions run one after the other, the operators of one side by side. Merging two regions never costs: the maximum of
    the union is one of the two maxima. So condition I holds; condition II does not.
    """

    name = "seconds"
    condition_one = True
    condition_two = False

    def cost(self, found: RegionPlan) -> float:
        return sum(region_seconds(found))

    def least(self, plan: PhysicalPlan) -> float:
        return max(seconds_in_rows(plan)[1], default=0.0)


def region_seconds(found: RegionPlan) -> list[float]:
    """Seconds of each region: those of its slowest operator."""
    return [max(found.plan.operators[place].seconds for place in region) for region in found.regions]


def seconds_in_rows(plan: PhysicalPlan) -> tuple[list[float], list[float]]:
    """Of each operator, seconds that pass before its region starts and until it has ended or what leads to it has,
    whatever the plan.

    Where a path from u to v holds a blocking edge, u's region ends before v's starts. So operators of which each leads
    to the next in such a way are all of different regions, and those take at least as long as they do together.
    """
    before = [0.0] * len(plan.operators)
    until = [0.0] * len(plan.operators)
    for operator in plan.topological:
        for edge in plan.in_edges[operator]:
            tail = plan.tails[edge]
            before[operator] = max(before[operator], until[tail] if edge in plan.blocking else before[tail])
            until[operator] = max(until[operator], until[tail])
        until[operator] = max(until[operator], before[operator] + plan.operators[operator].seconds)
    return before, until


model = RegionSeconds()
