"""Cost function A (Pasta §2.5): the sum of the sizes of the materialized edges, blocking ones included, in bytes."""

from __future__ import annotations

from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan


class MaterializedBytes:
    """
    Each edge is written for itself, also where two leave one port: their consumers read at different times and need not
    get the same partitioning.
    """

    name = "bytes"
    condition_one = True
    condition_two = True

    def cost(self, found: RegionPlan) -> float:
        return found.bytes_materialized

    def edge_cost(self, plan: PhysicalPlan, edge: int) -> float:
        return plan.edges[edge].bytes


model = MaterializedBytes()
