"""Planned results of a query, as far as they go together with what else was chosen for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import Plan
from spark_regions.planner.horizon import Advice, Wanted
from spark_regions.recycle.antichain import Choice, positions
from spark_regions.recycle.first_use import unmeasured
from spark_regions.recycle.points import Decline, Point
from spark_regions.recycle.repeats import Share
from spark_regions.stats.estimate import Estimate


def planned_keeps(plan: Plan, choice: Choice, advice: Advice | None) -> tuple[list[Wanted], list[Decline]]:
    """The planned results that can be kept, and why the others cannot.

    Nothing below a load runs; what stands above or below a store is stored or read with it.
    """
    kept: list[Wanted] = []
    declines: list[Decline] = []
    stores = [point.node for point, _ in choice.stores]
    under_loads = {below for number in choice.loads for below in plan.below(number)}
    beside = {*stores, *positions(plan, stores)}
    for wanted in advice.wanted if advice else ():
        if wanted.node in under_loads or wanted.node in beside:
            declines.append(Decline(wanted.node, "ALREADY_STORED_ABOVE"))
        else:
            kept.append(wanted)
    return kept, declines


def stored_point(wanted: Wanted, rates: Rates, parallelism: int) -> Point:
    """A planned result as a point to be stored."""
    size = wanted.bytes * rates.stored_ratio
    point = unmeasured(wanted.node, wanted.signature, rates.write_seconds(size, parallelism), wanted.ref)
    return replace(
        point,
        recompute=Estimate(wanted.recompute, 0.5),
        read_seconds=rates.read_seconds(size, parallelism),
        bytes=size,
        expected=1.0,
    )


def meets(plan: Plan, share: Share, keeps: Collection[Wanted]) -> bool:
    """Whether a share stands in for what is kept, or for a part of it."""
    kept = {below for found in keeps for below in plan.below(found.node)}
    return bool(kept) and any(below in kept for node in share.nodes for below in plan.below(node))
