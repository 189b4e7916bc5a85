"""Which edges of a query plan Spark materializes by itself: those into a shuffle or a broadcast."""

from __future__ import annotations

from spark_regions.dag.plan import Plan

BROADCAST_BYTES = 10 << 20
_SHUFFLED = ("Aggregate", "Distinct", "Window", "Sort", "Repartition", "RebalancePartitions", "Except", "Intersect")


def exchanges(plan: Plan) -> dict[int, str]:
    """How the edge from each node to the one above is materialized; empty where rows are passed on, and at the root."""
    most = most_bytes(plan)
    found = dict.fromkeys(plan.nodes, "")
    for node in plan.nodes.values():
        if node.operator == "Join":
            small = [child for child in node.children if most[child] <= BROADCAST_BYTES]
            found |= (
                {min(small, key=most.__getitem__): "broadcast"} if small else dict.fromkeys(node.children, "shuffle")
            )
        elif node.operator.startswith(_SHUFFLED):
            found |= dict.fromkeys(node.children, "shuffle")
    return found


def most_bytes(plan: Plan) -> dict[int, float]:
    """Of each node an upper bound: what the sources below it hold; infinite where one of them does not say."""
    found: dict[int, float] = {}
    for number in plan.bottom_up():
        node = plan.nodes[number]
        unknown = node.source_bytes if node.source_bytes is not None else float("inf")
        found[number] = sum(found[child] for child in node.children) if node.children else unknown
    return found
