"""Region plans by definition: independent of the code under test, and slow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import networkx as nx

from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import Edge, Operator, PhysicalPlan, physical_plan


def workflow(
    *edges: str, seconds: dict[str, float] | None = None, first: dict[str, float] | None = None
) -> PhysicalPlan:
    """Each edge as "e1 v1 v2 10", with "!" at the end where it is blocking; operators by first mention."""
    found = []
    for text in edges:
        name, source, target, size, *rest = text.split()
        found.append(Edge(name, source, target, float(size), rest == ["!"]))
    names = dict.fromkeys(end for edge in found for end in (edge.source, edge.target))
    seconds, first = seconds or {}, first or {}
    return physical_plan([Operator(name, seconds.get(name, 1.0), first.get(name, 0.0)) for name in names], found)


def positions(plan: PhysicalPlan, *ids: str) -> frozenset[int]:
    return frozenset(place for place, edge in enumerate(plan.edges) if edge.id in ids)


def ids(plan: PhysicalPlan, edges: Collection[int]) -> set[str]:
    return {plan.edges[edge].id for edge in edges}


def labelled(plan: PhysicalPlan, *materialized: str) -> RegionPlan:
    return RegionPlan(plan, positions(plan, *materialized) | plan.blocking)


def region_graph(plan: PhysicalPlan, materialized: Collection[int]) -> nx.MultiDiGraph:
    """Definitions 2.3 and 2.4, word by word."""
    pipelined = nx.Graph()
    pipelined.add_nodes_from(range(len(plan.operators)))
    pipelined.add_edges_from(
        (plan.tails[edge], plan.heads[edge]) for edge in range(len(plan.edges)) if edge not in materialized
    )
    regions = list(nx.connected_components(pipelined))
    region = {operator: number for number, members in enumerate(regions) for operator in members}
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(regions)))
    for edge in materialized:
        graph.add_edge(region[plan.tails[edge]], region[plan.heads[edge]], edge=edge)
    return graph


def schedulable(plan: PhysicalPlan, materialized: Collection[int]) -> bool:
    return nx.is_directed_acyclic_graph(region_graph(plan, materialized))


def hopeless(plan: PhysicalPlan, materialized: Collection[int]) -> bool:
    """Definition 4.1: some blocking region edge leads back to where it starts."""
    graph = region_graph(plan, materialized)
    return any(
        data["edge"] in plan.blocking and nx.has_path(graph, head, tail) for tail, head, data in graph.edges(data=True)
    )


def has_potential(plan: PhysicalPlan, materialized: Collection[int]) -> bool:
    """Whether f exists with f(u) = f(v) on pipelined and f(v) >= f(u) + 1 on materialized edges, by Bellman-Ford."""
    arcs = []
    for edge, (tail, head) in enumerate(zip(plan.tails, plan.heads, strict=True)):
        if edge in materialized:
            arcs.append((tail, head, 1))
        else:
            arcs += [(tail, head, 0), (head, tail, 0)]
    level = [0] * len(plan.operators)
    for _ in range(len(plan.operators) + 1):
        changed = False
        for tail, head, least in arcs:
            if level[head] < level[tail] + least:
                level[head] = level[tail] + least
                changed = True
        if not changed:
            return True
    return False


def all_labellings(plan: PhysicalPlan) -> Iterator[frozenset[int]]:
    free = [edge for edge in range(len(plan.edges)) if edge not in plan.blocking]
    for bits in range(1 << len(free)):
        yield plan.blocking.union(edge for place, edge in enumerate(free) if bits >> place & 1)


def optimum(plan: PhysicalPlan, cost: Callable[[RegionPlan], float]) -> float:
    return min(cost(RegionPlan(plan, found)) for found in all_labellings(plan) if schedulable(plan, found))


def optimal_plans(plan: PhysicalPlan, cost: Callable[[RegionPlan], float]) -> list[frozenset[int]]:
    priced = [(cost(RegionPlan(plan, found)), found) for found in all_labellings(plan) if schedulable(plan, found)]
    least = min(price for price, _ in priced)
    return [found for price, found in priced if price == least]
