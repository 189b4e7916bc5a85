"""Results that only this application can use, kept in the block manager once recomputing them has cost as much."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.rates import MIN_BENEFIT_SECONDS
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Appraisal, MaterializationCandidate
from spark_regions.optimizer.strategies.ski_rental import ski_rental


def persist(question: Question, draft: Draft) -> Draft:
    """After `choose`: what other applications can use as well is stored rather than persisted, and neither above nor
    below it is anything persisted. Topmost first. What is stored in memory only may be given up.
    """
    acted = {*draft.loads, *(candidate.node for candidate, _ in draft.stores if not candidate.in_memory)}
    blocked = question.plan.under(acted) | question.plan.above(acted)
    chosen: list[MaterializationCandidate] = []
    for candidate in draft.private:
        if candidate.node not in blocked:
            blocked.update(question.plan.below(candidate.node))
            chosen.append(candidate)
    worth = tuple(
        each
        for each in chosen
        if each.bytes <= question.confs.persist_max_bytes
        and each.benefit >= MIN_BENEFIT_SECONDS
        and isinstance(ski_rental(each), Appraisal)
    )
    return replace(draft, persists=worth) if worth else draft
