"""First response time (thesis §21.3): seconds until a result operator shows its first row.

tau(1) = t(r_a) + t(r_b) + … + t(r_x(1)), where r_x holds the result operator, r_a, r_b, … are the regions that must be
complete before it starts, t(r) the seconds of the slowest operator of r, and t(r(1)) the shortest way of a first row
(`first_seconds`) through r to the result operator: one row is enough. The regions run one after the other; those that
the result does not need come later. Of several result operators the first to answer counts (the thesis has one; its
fig. 58 takes the minimum over the regions that hold it).
"""

from __future__ import annotations

from spark_regions.costs.region_seconds import region_seconds, seconds_in_rows
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan


class FirstResponse:
    """
    Neither condition holds: pipelining an edge can pull operators into the result's region that wait for others.
    """

    name = "first-response"
    condition_one = False
    condition_two = False

    def cost(self, found: RegionPlan) -> float:
        return min((response_seconds(found, result) for result in found.plan.results), default=0.0)

    def least(self, plan: PhysicalPlan) -> float:
        before, _ = seconds_in_rows(plan)
        return min((before[result] + plan.operators[result].first_seconds for result in plan.results), default=0.0)


def response_seconds(found: RegionPlan, result: int) -> float:
    """Seconds until one result operator shows its first row."""
    before: list[list[int]] = [[] for _ in found.regions]
    for earlier, later, _ in found.region_edges:
        before[later].append(earlier)
    own = found.region_of[result]
    needed: set[int] = set()
    waiting = list(before[own])
    while waiting:
        region = waiting.pop()
        if region not in needed:
            needed.add(region)
            waiting += before[region]
    seconds = region_seconds(found)
    return sum(seconds[region] for region in sorted(needed)) + first_row_seconds(found, result)


def first_row_seconds(found: RegionPlan, result: int) -> float:
    """t(r(1)): the shortest way of a first row to the result operator over pipelined edges."""
    plan = found.plan
    ways: dict[int, float] = {}
    for operator in plan.topological:
        inputs = (plan.tails[edge] for edge in plan.in_edges[operator] if edge not in found.materialized)
        ways[operator] = min((ways[tail] for tail in inputs), default=0.0) + plan.operators[operator].first_seconds
    return ways[result]


model = FirstResponse()
