"""Methods that look at no cost (Pasta §6.1)."""

from __future__ import annotations

from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.regions.merging import RegionGraph


def top_down_seed(plan: PhysicalPlan) -> RegionPlan:
    """TDS: every edge is materialized; always schedulable."""
    return RegionPlan(plan, frozenset(range(len(plan.edges))))


def bottom_up_seed(plan: PhysicalPlan) -> RegionPlan:
    """BUS: only blocking edges are materialized; where that is schedulable, no plan is cheaper under condition I."""
    return RegionPlan(plan, plan.blocking)


def baseline(plan: PhysicalPlan) -> RegionPlan:
    """As Hyracks, Flink and Texera do it: from TDS, along a topological order of the operators, each non-blocking edge
    is pipelined if the plan stays schedulable."""
    graph = RegionGraph(plan)
    for operator in plan.topological:
        for edge in plan.out_edges[operator]:
            if edge not in plan.blocking:
                graph.pipeline(edge)
    return graph.found()
