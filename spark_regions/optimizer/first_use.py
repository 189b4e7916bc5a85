"""What is stored while the first query that computes it runs.

An unknown result is stored at its second use at the earliest (`ski_rental`): the first two uses both compute it. Where
the program still holds the DataFrame, another use is likely, and where an aggregate comes out of much work, its rows
are few. The price of being wrong can be bounded: the tee gives up as soon as writing exceeds a share of the query's own
work, or the few bytes. Whatever follows, writing costs the query at most that share more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from spark_regions.costs.guess import guessed
from spark_regions.dag.plan import CandidateDataFrame, Node, Plan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import MaterializationCandidate, Store, unmeasured
from spark_regions.optimizer.strategies.antichain import ancestry

SMALL_BYTES = 1 << 20
"""What a result of an aggregate is expected to take at most; it is given up where it grows beyond its reservation."""
LONG_SECONDS = 3.0
"""A query that takes less, by a guess, has nothing to spare for writing."""
MAX_WIDENING = 4.0
"""The most bytes a row may take, as a multiple of what this query needs of it."""


def first_use(question: Question, draft: Draft) -> Draft:
    """After `choose`: what is known is judged by its numbers, and only where nothing is done on the way from root to
    leaf is something stored unseen. Not with a plan of the run, which knows what comes again.
    """
    if not draft.first_uses or question.planned or question.confs.first_use_overhead <= 0:
        return draft
    more: list[Store] = []
    taken = [*draft.loads, *draft.stored]
    for found in _first_uses(question, draft):
        if found.node not in taken and found.node not in ancestry(question.plan, taken):
            more.append((found, "SMALL_RESULT" if found.ref is None else "HELD"))
            taken.append(found.node)
    if not more:
        return draft
    nodes = {found.node for found, _ in more}
    declines = tuple(each for each in draft.declines if each.node not in nodes)
    return replace(draft, stores=(*draft.stores, *more), declines=declines)


def _first_uses(question: Question, draft: Draft) -> Iterable[MaterializationCandidate]:
    """What the graph knows nothing of: DataFrames that the program holds, then the small result of much work."""
    view = question.view
    for shared in question.plan.shared:
        if not any(variant.executions for variant in view.by_core.get(shared.signature.core, ())):
            found = _held(question.plan, shared)
            if found is not None:
                yield found
    small = _small_result(question, draft)
    if small is not None:
        yield small


def _held(plan: Plan, shared: CandidateDataFrame) -> MaterializationCandidate | None:
    """A DataFrame that is held and whose node may be stored.

    Columns that this query does not need are carried through its shuffles for later ones; many of them are no small
    part of its work, and the tee cannot bound that.
    """
    node = plan.nodes[shared.node]
    if not shared.held or node.signature is None or node.session or not node.storable or not node.children:
        return None
    if shared.row_bytes > MAX_WIDENING * max(node.row_bytes, 1.0):
        return None
    return replace(unmeasured(shared.node, shared.signature, ref=shared.ref), first_use=True)


def _small_result(question: Question, draft: Draft) -> MaterializationCandidate | None:
    """A query's topmost result, if it is new, comes from an aggregate and, by its sources, from much work."""
    plan = question.plan
    number = _first(plan, plan.root, lambda node: node.id in draft.eligible)
    if number is None or _first(plan, number, lambda node: node.operator.startswith("Aggregate")) is None:
        return None
    top = plan.nodes[number].signature
    if top is None or any(variant.executions for variant in question.view.variants.get(top.lineage, ())):
        return None
    seconds = guessed(plan).task_seconds
    if sum(seconds[below] for below in plan.below(number)) / max(question.cores, 1) < LONG_SECONDS:
        return None
    return replace(unmeasured(number, top), first_use=True, bytes=min(SMALL_BYTES, question.confs.max_bytes))


def _first(plan: Plan, number: int, wanted: Callable[[Node], bool]) -> int | None:
    """The first such node on the way down, as far as there is one way."""
    while not wanted(plan.nodes[number]):
        if len(plan.nodes[number].children) != 1:
            return None
        (number,) = plan.nodes[number].children
    return number
