"""A query's regions as `explain` shows them: numbered by execution rank, with what each reads and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_regions.dag.exchanges import exchange
from spark_regions.dag.plan import Plan
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import Edge, Operator, physical_plan
from spark_regions.planner.decide import Proposal
from spark_regions.planner.horizon import Advice
from spark_regions.stats.estimate import Estimate

MAX_NODES = 400
"""Of a larger plan nobody reads the regions."""
MAX_NAMES = 6
_LABELS = {
    "load": "stored result",
    "recall": "persisted result",
    "persist": "persisted result",
    "store": "stored result",
}


def region_note(
    plan: Plan, proposal: Proposal, actions: Sequence[Mapping[str, Any]], advice: Advice | None, parallelism: int
) -> dict[str, Any]:
    """The `regions` of a decision (docs/protocol.md).

    Edges into a shuffle, and those at which a result is kept or read, are materialized; the regions are what pipelined
    edges connect (Pasta def. 2.3). Seconds are predicted: of the query as it was decided, and of Spark's own plan.
    """
    note: dict[str, Any] = {}
    if advice is not None:
        note |= {"step": advice.step + 1, "steps": advice.steps}
    plain = proposal.fresh.get(plan.root)
    if plain is not None:
        saved = sum(float(action.get("saving") or 0.0) for action in actions if action["kind"] in ("load", "recall"))
        note |= {"chosenSeconds": round(max(plain.value - saved, 0.0), 4), "plainSeconds": round(plain.value, 4)}
    if len(plan.nodes) <= MAX_NODES:
        note["regions"] = _regions(plan, proposal.own, actions, parallelism)
    return note


def _regions(
    plan: Plan, own: Mapping[int, Estimate], actions: Sequence[Mapping[str, Any]], parallelism: int
) -> list[dict[str, Any]]:
    read = {int(a["node"]): str(a["kind"]) for a in actions if a["kind"] in ("load", "recall")}
    made = {int(a["node"]): str(a["kind"]) for a in actions if a["kind"] in ("store", "persist")}
    spared = {below for number in read for below in plan.below(number) if below != number}
    numbers = [number for number in plan.below(plan.root) if number not in spared]
    edges: list[Edge] = []
    labels: dict[str, str] = {}
    for number in numbers:
        above = plan.parents.get(number)
        if above is None:
            continue
        label = _LABELS.get(read.get(number) or made.get(number) or "") or exchange(plan, number)
        name = f"e{number}"
        labels[name] = label
        edges.append(Edge(name, str(number), str(above), 0.0, bool(label)))
    physical = physical_plan([Operator(str(number)) for number in numbers], edges)
    regions = RegionPlan(physical, physical.blocking)
    order = sorted(range(len(regions.regions)), key=lambda region: (regions.ranks[region], region))
    place = {region: at for at, region in enumerate(order, 1)}
    inputs: dict[int, list[dict[str, Any]]] = {}
    for before, after, edge in regions.region_edges:
        inputs.setdefault(after, []).append({"region": place[before], "label": labels[physical.edges[edge].id]})
    found = []
    for region in order:
        nodes = [numbers[operator] for operator in regions.regions[region]]
        seconds = [own[number].value / parallelism for number in nodes if number in own and number not in read]
        found.append(
            {
                "id": place[region],
                "rank": regions.ranks[region],
                "nodes": nodes,
                "operators": _names(plan, nodes, read),
                "inputs": inputs.get(region, []),
                "seconds": round(sum(seconds), 4) if seconds else None,
            }
        )
    return found


def _names(plan: Plan, nodes: Sequence[int], read: Mapping[int, str]) -> list[str]:
    names = [(f"{_LABELS[read[n]]} at " if n in read else "") + f"{plan.nodes[n].operator} ({n})" for n in nodes]
    return names if len(names) <= MAX_NAMES else [*names[:MAX_NAMES], f"… {len(names) - MAX_NAMES} more"]
