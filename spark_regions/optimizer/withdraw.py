"""What earlier runs speak against: choices that made queries slower, and lineages that are switched off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spark_regions.dag.plan import Signature
from spark_regions.dag.records import GraphView
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline
from spark_regions.stats.plain_runs import lost

LOST, DIFFERS = "LOST", "DIFFERS"
ALWAYS = "always"
"""The strategies, of skew too, that ask for no gain."""
READS, STORES = ("load", "recall"), ("load", "store")
PERSISTS, SHARES = ("recall", "persist"), ("share",)


def stopped(view: GraphView, lineage: str, kinds: Iterable[str], always: bool = False) -> tuple[str, str] | None:
    """Why none of these choices is made at a lineage, with the detail.

    :param always: whatever it takes
    """
    off = view.off.get(lineage)
    if off is not None:
        return DIFFERS, off
    found = None if always else lost(lineage, kinds, view)
    return None if found is None else (LOST, found)


def weighs(question: Question) -> bool:
    """Whether the strategy asks what a choice brings."""
    return question.confs.strategy != ALWAYS


def withheld(question: Question, lineage: str, kinds: Iterable[str]) -> tuple[str, str] | None:
    """The same for a query."""
    return stopped(question.view, lineage, kinds, always=not weighs(question))


def withdraw(question: Question, draft: Draft) -> Draft:
    """After all that acts beside reads, which `match` has left out, so that the next best one is taken.

    A query that is switched off itself is left to Spark as a whole.
    """
    plan = question.plan
    off = question.view.off.get(question.top.lineage) if question.top else None
    if off is not None:
        return replace(
            draft, loads={}, saved={}, stores=(), keeps=(), persists=(), shares=(), actions=(),
            declines=(Decline(plan.root, DIFFERS, off),),
        )  # fmt: skip
    declines: list[Decline] = []

    def goes(node: int, kinds: Iterable[str], made: Signature | None = None) -> bool:
        lineages = [each.lineage for each in (plan.nodes[node].signature, made) if each]
        why = next((why for each in lineages if (why := withheld(question, each, kinds)) is not None), None)
        if why is not None:
            declines.append(Decline(node, *why))
        return why is None

    kept = replace(
        draft,
        stores=tuple(each for each in draft.stores if goes(each[0].node, STORES, each[0].signature)),
        keeps=tuple(each for each in draft.keeps if goes(each.node, PERSISTS, each.signature)),
        persists=tuple(each for each in draft.persists if goes(each.node, PERSISTS, each.signature)),
        shares=tuple(each for each in draft.shares if all(goes(node, SHARES) for node in each.nodes)),
    )
    return kept.declined(*declines) if declines else draft
