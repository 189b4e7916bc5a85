"""Results that the plan of the run wants kept, as far as they go together with what was chosen for this query alone."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.rates import Rates
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import (
    Decline,
    MaterializationCandidate,
    PlannedMaterialization,
    Store,
    unmeasured,
)
from spark_regions.optimizer.strategies.antichain import ancestry
from spark_regions.runs.program import PERSIST, STORE
from spark_regions.stats.estimate import Estimate


def keep(question: Question, draft: Draft) -> Draft:
    """After `choose`: nothing below a load runs, and what stands above or below a store is stored or read with it.
    Before `share`, whose places must not stand in for what is kept.
    """
    wanted = draft.run.wanted if draft.run else ()
    if not wanted:
        return draft
    plan = question.plan
    under_loads = plan.under(draft.loads)
    beside = {*draft.stored, *ancestry(plan, draft.stored)}
    kept = [each for each in wanted if each.node not in under_loads and each.node not in beside]
    refused = [Decline(each.node, "ALREADY_STORED_ABOVE") for each in wanted if each not in kept]
    stores: list[Store] = [
        (planned_store(each, question.rates, question.cores), "PLANNED") for each in kept if each.level == STORE
    ]
    return replace(
        draft,
        keeps=tuple(each for each in kept if each.level == PERSIST),
        stores=(*draft.stores, *stores),
        # First, since not all declines are sent.
        declines=(*refused, *draft.declines),
    )


def planned_store(wanted: PlannedMaterialization, rates: Rates, cores: int) -> MaterializationCandidate:
    """A planned result as a candidate."""
    size = wanted.bytes * rates.stored_ratio
    moved = (size, cores, wanted.rows, len(wanted.signature.columns))
    return replace(
        unmeasured(wanted.node, wanted.signature, rates.write_seconds(*moved), wanted.ref),
        recompute=Estimate(wanted.recompute, 0.5),
        read_seconds=rates.read_seconds(*moved),
        bytes=size,
        expected=1.0,
    )
