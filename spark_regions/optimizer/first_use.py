"""DataFrames that the program still holds, stored while the first query built on them runs.

An unknown result is stored at its second use at the earliest (`ski_rental`): the first two uses both compute it. Where
the program still holds the DataFrame, another use is likely. The price of being wrong can be bounded: the tee gives up
as soon as writing exceeds a share of the query's own work. Whatever follows, writing costs the query at most that share
more. At its second use that may be more, and there may still be no numbers, as another engine computed it at the first.
What earlier runs stored like that and did not read as often as pays is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_regions.dag.plan import CandidateDataFrame, Plan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline, MaterializationCandidate, Store, unmeasured
from spark_regions.optimizer.strategies.antichain import ancestry
from spark_regions.optimizer.withdraw import LOST, weighs
from spark_regions.stats.estimate import estimate
from spark_regions.stats.first_uses import HELD, wasted

MAX_WIDENING = 4.0
"""The most bytes a row may take, as a multiple of what this query needs of it."""


def first_use(question: Question, draft: Draft) -> Draft:
    """After `choose`: what is known is judged by its numbers, and only where nothing is done on the way from root to
    leaf is something stored unseen. Not with a plan of the run, which knows what comes again.
    """
    if not draft.first_uses or question.planned or question.confs.first_use_overhead <= 0:
        return draft
    more: list[Store] = []
    declines: list[Decline] = []
    taken = [*draft.loads, *draft.stored]
    for found in _held_unseen(question):
        if found.node in taken or found.node in ancestry(question.plan, taken):
            continue
        why = wasted(question.family(found.node), question.view)
        if why is not None and found.past <= 0 and weighs(question):
            declines.append(Decline(found.node, LOST, why))
            continue
        more.append((found, HELD))
        taken.append(found.node)
    return (draft.storing(more) if more else draft).declined(*declines)


def _held_unseen(question: Question) -> Iterable[MaterializationCandidate]:
    """DataFrames that the program holds, or has used before, of which nobody knows what computing them takes."""
    view = question.view
    for shared in question.plan.shared:
        if not any(estimate(variant.total) for variant in view.by_core.get(shared.signature.core, ())):
            found = _held(question.plan, shared)
            if found is not None:
                yield found


def _held(plan: Plan, shared: CandidateDataFrame) -> MaterializationCandidate | None:
    """A DataFrame that is held and whose node may be stored.

    Columns that this query does not need are carried through its shuffles for later ones; many of them are no small
    part of its work, and the tee cannot bound that.
    """
    node = plan.nodes[shared.node]
    again = shared.seen > 1 and not shared.more_python and not shared.weaker
    if not (shared.held or again) or node.signature is None:
        return None
    if node.session or not node.storable or not node.children:
        return None
    if shared.row_bytes > MAX_WIDENING * max(node.row_bytes, 1.0):
        return None
    return replace(
        unmeasured(shared.node, shared.signature, ref=shared.ref), first_use=True, past=max(shared.seen - 1.0, 0.0)
    )
