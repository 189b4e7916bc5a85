"""Subplans that stand in several places of one query, computed once (DESIGN §8).

Spark inlines every deterministic common table expression, and reuses an exchange only where two places are equal down
to their columns and filters: the others are computed once for each place.
"""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.rates import MIN_BENEFIT_SECONDS
from spark_regions.costs.sharing import SharingCosts, guessed, measured
from spark_regions.dag.plan import Plan, RepeatedSubplan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import CommonSubplan, Decline
from spark_regions.stats.shared_runs import withdrawn

MIN_SHARE = 0.15
"""Of what the places cost: less is within the error of the estimate."""
MIN_GUESS_SECONDS = 0.5
MIN_GUESS_SHARE = 0.2
"""What a saving has to be at least where nothing was measured."""


def share(question: Question, draft: Draft) -> Draft:
    """Last of those that act: a place of which anything is loaded, stored or kept is not merged with others, and which
    that is has to be known before the best of overlapping subplans are taken.
    """
    if not question.confs.sharing or not question.plan.repeated:
        return draft
    plan, view = question.plan, question.view
    free = _free(question, draft)
    if question.confs.strategy == "always" and question.confs.recycle:
        found = _disjoint(plan, [(each, CommonSubplan(each.nodes, 0.0, "ALWAYS")) for each in free])
        return replace(draft, shares=tuple(found)) if found else draft
    worth: list[tuple[RepeatedSubplan, CommonSubplan]] = []
    declines: list[Decline] = []
    for repeated in free:
        costs = measured(plan, view, repeated, draft.seconds, draft.self_seconds, question.cores)
        reason = "SHARED"
        if costs is None:
            costs, reason = guessed(plan, repeated, question.cores), "SHARED_UNSEEN"
        if costs is None:
            declines.append(Decline(repeated.nodes[0], "NO_HISTORY"))
        elif not _pays(costs, reason):
            declines.append(Decline(repeated.nodes[0], "NOT_WORTH_SHARING", str(costs)))
        else:
            worth.append((repeated, CommonSubplan(repeated.nodes, costs.saving, reason, str(costs))))
    worth.sort(key=lambda each: -each[1].saving)
    found = _disjoint(plan, worth)
    paused = withdrawn(plan, view, sum(each.saving for each in found)) if found else None
    if paused is not None:
        return draft.declined(*declines, *(Decline(each.nodes[0], *paused) for each in found))
    return replace(draft, shares=tuple(found)).declined(*declines) if found or declines else draft


def _free(question: Question, draft: Draft) -> list[RepeatedSubplan]:
    """The repeated subplans of which nothing else is made use of.

    What something stands in for, a load or a wider DataFrame, does not run, nor what is below it.
    """
    plan = question.plan
    wider = {candidate.node for candidate, _ in draft.stores if candidate.ref is not None}
    replaced = {*draft.loads, *wider, *(each.node for each in draft.persists)}
    idle = plan.under(replaced)
    planned = [each.node for each in draft.keeps] + [each.node for each, reason in draft.stores if reason == "PLANNED"]
    kept = plan.under(planned)
    acted = {*replaced, *draft.stored}
    return [
        repeated
        for repeated in plan.repeated
        if not (inside := plan.under(repeated.nodes)) & acted and not inside & kept and not set(repeated.nodes) & idle
    ]


def _pays(costs: SharingCosts, reason: str) -> bool:
    least = max(MIN_BENEFIT_SECONDS, MIN_SHARE * costs.apart)
    if reason != "SHARED":
        least = max(MIN_GUESS_SECONDS, MIN_GUESS_SHARE * costs.apart)
    return costs.saving >= least and costs.least_saving > 0


def _disjoint(plan: Plan, ranked: list[tuple[RepeatedSubplan, CommonSubplan]]) -> list[CommonSubplan]:
    taken: set[int] = set()
    found: list[CommonSubplan] = []
    for repeated, share in ranked:
        inside = plan.under(repeated.nodes)
        if not inside & taken:
            found.append(share)
            taken |= inside
    return sorted(found, key=lambda share: share.nodes)
