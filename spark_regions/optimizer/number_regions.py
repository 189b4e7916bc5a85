"""A query's regions as `explain` shows them: numbered by execution rank, with what each reads and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_regions.dag.exchanges import exchanges
from spark_regions.dag.plan import Plan
from spark_regions.dag.region_plan import RegionPlan
from spark_regions.dag.workflow import Edge, Operator, physical_plan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.wire.messages import NumberedRegions, Region, RegionInput

MAX_NODES = 400
"""Of a larger plan nobody reads the regions."""
MAX_NAMES = 6
STORED, PERSISTED = "stored result", "persisted result"


def number_regions(question: Question, draft: Draft) -> Draft:
    """Last, when it is known what stands where.

    Edges into a shuffle, and those at which a result is kept or read, are materialized; the regions are what pipelined
    edges connect (Pasta def. 2.3). Seconds are predicted: of the query as it was decided, and of Spark's own plan.
    """
    run, plain = draft.run, draft.least_seconds.get(question.plan.root)
    saved = sum(round(draft.saved[number], 4) for number in draft.loads) + sum(each.saving for each in draft.routes)
    found = NumberedRegions(
        step=run.step + 1 if run else None,
        steps=run.steps if run else None,
        chosen_seconds=round(max(plain.value - saved, 0.0), 4) if plain else None,
        plain_seconds=round(plain.value, 4) if plain else None,
        regions=_regions(question, draft) if len(question.plan.nodes) <= MAX_NODES else None,
    )
    return replace(draft, regions=found)


def _regions(question: Question, draft: Draft) -> tuple[Region, ...]:
    plan, own = question.plan, draft.self_seconds
    read = {n: PERSISTED if draft.matches[n].entry.persisted else STORED for n in draft.loads}
    read |= {each.node: each.platform for each in draft.routes}
    made = dict.fromkeys(draft.stored, STORED)
    made |= dict.fromkeys([each.node for each in draft.keeps] + [each.node for each in draft.persists], PERSISTED)
    spared = {below for number in read for below in plan.below(number) if below != number}
    numbers = [number for number in plan.below(plan.root) if number not in spared]
    moved = exchanges(plan)
    edges: list[Edge] = []
    labels: dict[str, str] = {}
    for number in numbers:
        above = plan.parents.get(number)
        if above is None:
            continue
        label = read.get(number) or made.get(number) or moved[number]
        name = f"e{number}"
        labels[name] = label
        edges.append(Edge(name, str(number), str(above), 0.0, bool(label)))
    physical = physical_plan([Operator(str(number)) for number in numbers], edges)
    regions = RegionPlan(physical, physical.blocking)
    order = sorted(range(len(regions.regions)), key=lambda region: (regions.ranks[region], region))
    place = {region: at for at, region in enumerate(order, 1)}
    inputs: dict[int, list[RegionInput]] = {}
    for before, after, edge in regions.region_edges:
        inputs.setdefault(after, []).append(RegionInput(place[before], labels[physical.edges[edge].id]))
    found = []
    for region in order:
        nodes = [numbers[operator] for operator in regions.regions[region]]
        seconds = [own[number].value / question.cores for number in nodes if number in own and number not in read]
        found.append(
            Region(
                place[region],
                regions.ranks[region],
                tuple(nodes),
                tuple(_names(plan, nodes, read)),
                tuple(inputs.get(region, ())),
                round(sum(seconds), 4) if seconds else None,
            )
        )
    return tuple(found)


def _names(plan: Plan, nodes: Sequence[int], read: Mapping[int, str]) -> list[str]:
    names = [(f"{read[n]} at " if n in read else "") + f"{plan.nodes[n].operator} ({n})" for n in nodes]
    return names if len(names) <= MAX_NAMES else [*names[:MAX_NAMES], f"… {len(names) - MAX_NAMES} more"]
