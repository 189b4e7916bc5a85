"""What holds of a draft after every pass."""

from __future__ import annotations

from collections import Counter

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.matching.subsumes import REFRESHED


def violation(question: Question, draft: Draft) -> str | None:
    """Which invariant does not hold, with the nodes; None where all do.

    - nothing below a load, or at it, is acted on: it does not run; but what is brought up to date is stored as well
    - at most one action stores or keeps the rows of a node, or of a DataFrame in its place
    - no two subplans that are computed once have a node in common
    - no result is larger than the budget of the level at which it is kept
    - of a floating-point aggregate in several places, no place is read or kept alone
    - what is loaded has an entry that serves it, and a saving
    - nothing below what another engine computes is acted on, and nothing but a store at it
    """
    plan, confs = question.plan, question.confs
    stored = [candidate for candidate, _ in draft.stores]
    made = [(each.node, each.ref) for each in (*stored, *draft.persists)]
    made += [(each.node, each.ref) for each in draft.keeps]
    shared = [number for each in draft.shares for number in each.nodes]
    renewed = {number for number in draft.loads if draft.matches[number].rule == REFRESHED} if draft.matches else set()
    idle = plan.under(draft.loads) - (renewed & {node for node, _ in made})
    below_loads = idle & {*(node for node, _ in made), *shared} | {
        number for number in draft.loads if plan.above([number]) & draft.loads.keys()
    }
    if below_loads:
        return f"nodes {sorted(below_loads)} are acted on at or below a load"
    twice = sorted(node for (node, _), times in Counter(made).items() if times > 1)
    if twice:
        return f"nodes {twice} are made twice"
    inside = Counter(number for each in draft.shares for number in plan.under(each.nodes))
    common = sorted(number for number, times in inside.items() if times > 1)
    if common:
        return f"nodes {common} are shared twice"
    large = [each.node for each in stored if each.bytes > confs.max_bytes > 0]
    large += [each.node for each in draft.persists if each.bytes > confs.persist_max_bytes]
    if large:
        return f"nodes {large} are larger than the budget"
    alone = sorted(
        number for number in {*draft.loads, *(node for node, _ in made)} if plan.nodes[number].one_of_several
    )
    if alone:
        return f"nodes {alone} are places of a floating-point aggregate that also stands elsewhere"
    unknown = sorted(draft.loads.keys() - (draft.matches.keys() & draft.saved.keys()))
    if unknown:
        return f"nodes {unknown} are loaded without an entry or a saving"
    routed = [each.node for each in draft.routes]
    computed = plan.under(routed)
    lost = computed & {*draft.loads, *shared, *(node for node, _ in made)} - ({*routed} & {*draft.stored})
    lost |= {node for node in routed if not plan.above([node]).isdisjoint(routed)}
    return f"nodes {sorted(lost)} are acted on where another engine computes the rows" if lost else None
