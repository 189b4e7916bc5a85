"""The rows at the top of a query, stored when it first runs if they are few.

The top serves the same query best, and most results are small against the work below them. Tasks hold the rows in
memory, and they are written when the query has them, so that storing costs it next to nothing; what grows beyond that
is given up, and so is what was there quickly. Only out of an aggregate that, by its sources, is much work are more rows
written, as long as that adds little to the query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_regions.costs.guess import guessed, moves
from spark_regions.dag.plan import Node, Plan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import unmeasured
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
    number = _first(plan, plan.root, lambda node: node.id in draft.eligible)
    if number is None or not any(moves(plan.nodes[below]) for below in plan.below(number)):
        return draft
    acted = (*draft.loads, *draft.stored)
    top = plan.nodes[number].signature
    if top is None or number in plan.under(acted):
        return draft
    # What is known of it is known of its rows: other values of the same groups are new.
    known = question.view.variants.get(top.lineage, ())
    if any(variant.executions and {*top.columns} <= {*variant.columns} for variant in known):
        return draft
    in_memory = number in ancestry(plan, acted) or not _much_work(question, number)
    found = replace(
        unmeasured(number, top), first_use=True, in_memory=in_memory, bytes=min(SMALL_BYTES, confs.max_bytes)
    )
    return draft.storing([(found, "SMALL_RESULT")])


def _much_work(question: Question, top: int) -> bool:
    """Whether it comes from an aggregate and, by its sources, from much work."""
    plan = question.plan
    if _first(plan, top, lambda node: node.operator.startswith("Aggregate")) is None:
        return False
    seconds = guessed(plan).task_seconds
    return sum(seconds[below] for below in plan.below(top)) / max(question.cores, 1) >= LONG_SECONDS


def _first(plan: Plan, number: int, wanted: Callable[[Node], bool]) -> int | None:
    """The first such node on the way down, as far as there is one way."""
    while not wanted(plan.nodes[number]):
        if len(plan.nodes[number].children) != 1:
            return None
        (number,) = plan.nodes[number].children
    return number
