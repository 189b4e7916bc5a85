"""Which edges of a query plan Spark materializes by itself: those into a shuffle or a broadcast."""

from __future__ import annotations

from spark_regions.dag.plan import Plan

BROADCAST_BYTES = 10 << 20
_SHUFFLED = ("Aggregate", "Distinct", "Window", "Sort", "Repartition", "RebalancePartitions", "Except", "Intersect")


def exchange(plan: Plan, number: int) -> str:
    """How the edge from a node to the one above it is materialized; empty where rows are passed on, and at the root."""
    above = plan.parents.get(number)
    if above is None:
        return ""
    operator = plan.nodes[above].operator
    if operator == "Join":
        small = [child for child in plan.nodes[above].children if most_bytes(plan, child) <= BROADCAST_BYTES]
        if small:
            return "broadcast" if number == min(small, key=lambda child: most_bytes(plan, child)) else ""
        return "shuffle"
    return "shuffle" if operator.startswith(_SHUFFLED) else ""


def most_bytes(plan: Plan, number: int) -> float:
    """An upper bound: what the sources below the node hold; infinite where one of them does not say."""
    sizes = [plan.nodes[each].source_bytes for each in plan.below(number) if not plan.nodes[each].children]
    return sum(size if size is not None else float("inf") for size in sizes)
