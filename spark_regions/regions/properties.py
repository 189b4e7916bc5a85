"""What is known of optimal schedulable region plans (Pasta §3, table 3), as sets of edges.

Property A, B, D and F hold under condition I, C under conditions I and II, E always (fig. 14). Where edges cost nothing
or as much as others there can be several optimal plans; then one of them has the property.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from spark_regions.costs.cost_models import CostModel, SeparableCost
from spark_regions.dag.workflow import PhysicalPlan
from spark_regions.regions.kernel import CHAINS, CLEAN, Link, blocks

HOPELESS = "hopeless"
EARLY_STOP = "early-stop"
TECHNIQUES = (CHAINS, CLEAN, HOPELESS, EARLY_STOP)


def valid_techniques(model: CostModel) -> frozenset[str]:
    """Those that never lose an optimal plan under what the cost declares (fig. 14)."""
    return frozenset(TECHNIQUES) if model.condition_one else frozenset({HOPELESS})


@dataclass(frozen=True, slots=True)
class Pruning:
    """What a search need not look at.

    :param pipelined: non-blocking edges that an optimal plan pipelines (properties A, C, D)
    :param chain_of: of the other edges on a chain of which at most one is materialized (property B): the chain
    """

    pipelined: frozenset[int]
    chain_of: dict[int, int]


def pruning(plan: PhysicalPlan, model: CostModel, techniques: Collection[str]) -> Pruning:
    pipelined: set[int] = set()
    chain_of: dict[int, int] = {}
    if CLEAN in techniques:
        pipelined |= clean_edges(plan)
    if CHAINS in techniques:
        for number, chain in enumerate(maximal_chains(plan)):
            free = [edge for edge in chain if edge not in plan.blocking]
            if len(free) < len(chain):
                pipelined.update(free)
            elif model.condition_two and isinstance(model, SeparableCost):
                stays = min(free, key=lambda edge: model.edge_cost(plan, edge))
                pipelined.update(edge for edge in free if edge != stays)
            elif len(free) > 1:
                chain_of.update(dict.fromkeys(free, number))
    return Pruning(frozenset(pipelined), chain_of)


def maximal_chains(plan: PhysicalPlan) -> list[tuple[int, ...]]:
    """Paths whose inner operators touch no other edge, as long as can be (def. 3.1). Each edge is on one."""
    inner = {
        operator
        for operator in range(len(plan.operators))
        if len(plan.in_edges[operator]) == 1 and len(plan.out_edges[operator]) == 1
    }
    chains = []
    for edge in range(len(plan.edges)):
        if plan.tails[edge] not in inner:
            chain = [edge]
            while plan.heads[chain[-1]] in inner:
                chain.append(plan.out_edges[plan.heads[chain[-1]]][0])
            chains.append(tuple(chain))
    return chains


def clean_edges(plan: PhysicalPlan) -> frozenset[int]:
    """Non-blocking edges that share no undirected cycle with a blocking edge (def. 3.9), bridges among them.

    Two edges share a cycle exactly when they are of one biconnected component.
    """
    return frozenset(
        link.edges[0] for block in _blocks(plan) if not any(link.forced for link in block) for link in block
    )


def bridges(plan: PhysicalPlan) -> frozenset[int]:
    """Non-blocking edges on no undirected cycle (def. 3.6)."""
    return frozenset(block[0].edges[0] for block in _blocks(plan) if len(block) == 1 and not block[0].forced)


def _blocks(plan: PhysicalPlan) -> list[list[Link]]:
    ends = zip(plan.tails, plan.heads, strict=True)
    return list(blocks([Link(*pair, 0.0, edge in plan.blocking, (edge,)) for edge, pair in enumerate(ends)]))
