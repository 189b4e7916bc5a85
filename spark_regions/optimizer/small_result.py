"""The rows at the top of a query, and those of the groups they come from, stored when it first runs if they are few.

The top serves the same query best, the groups one that goes on from there, sorts them otherwise or takes more of them;
most results are small against the work below them. Tasks hold the rows in memory, and they are written when the query
has them, so that storing costs it next to nothing; what grows beyond that is given up, and so is what was there
quickly. Only at the top, out of an aggregate that, by its sources, is much work, are more rows written, as long as that
adds little to the query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_regions.costs.guess import guessed, moves
from spark_regions.dag.plan import Node, Plan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import MaterializationCandidate, unmeasured
from spark_regions.optimizer.strategies.antichain import ancestry

SMALL_BYTES = 1 << 20
"""What it is expected to take at most; it is given up where it grows beyond its reservation."""
LONG_SECONDS = 3.0
"""A query that takes less, by a guess, has nothing to spare for writing."""


def small_result(question: Question, draft: Draft) -> Draft:
    """After all other stores, loads and what is below: the top is new where none of them is at it. Before `account`,
    which tells of the nodes that are left. Not with a plan of the run, which knows what comes again, and not for a
    subquery: the query around it has a top of its own.
    """
    confs, plan = question.confs, question.plan
    if not draft.first_uses or question.planned or question.subquery or confs.first_use_overhead <= 0:
        return draft
    top = _first(plan, plan.root, lambda node: node.id in draft.eligible)
    rows = None if top is None else _new(question, draft, top)
    if top is None or rows is None:
        return draft
    groups = _first(plan, top, _groups)
    quick = groups is None or top in ancestry(plan, (*draft.loads, *draft.stored)) or not _much_work(question, top)
    below = _new(question, draft, groups) if groups in draft.eligible - {top} else None
    found = [replace(rows, in_memory=quick), *([below] if below else [])]
    return draft.storing([(store, "SMALL_RESULT") for store in found])


def _new(question: Question, draft: Draft, number: int) -> MaterializationCandidate | None:
    """The node's rows in memory, where nothing is read or stored at it or above it, and nobody has seen them."""
    plan, confs = question.plan, question.confs
    signed = plan.nodes[number].signature
    moved = any(moves(plan.nodes[below]) for below in plan.below(number))
    if signed is None or not moved or number in plan.under((*draft.loads, *draft.stored)):
        return None
    # What is known of it is known of its rows: other values of the same groups are new.
    known = question.view.variants.get(signed.lineage, ())
    if any(variant.executions and {*signed.columns} <= {*variant.columns} for variant in known):
        return None
    size = min(SMALL_BYTES, confs.max_bytes)
    return replace(unmeasured(number, signed), first_use=True, in_memory=True, bytes=size)


def _much_work(question: Question, top: int) -> bool:
    """Whether it is, by its sources."""
    seconds = guessed(question.plan).task_seconds
    return sum(seconds[below] for below in question.plan.below(top)) / max(question.cores, 1) >= LONG_SECONDS


def _groups(node: Node) -> bool:
    return node.operator.startswith("Aggregate")


def _first(plan: Plan, number: int, wanted: Callable[[Node], bool]) -> int | None:
    """The first such node on the way down, as far as there is one way."""
    while not wanted(plan.nodes[number]):
        if len(plan.nodes[number].children) != 1:
            return None
        (number,) = plan.nodes[number].children
    return number
