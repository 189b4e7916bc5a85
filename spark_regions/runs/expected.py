"""Queries that are about to run, with what each of their operators is expected to take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from spark_regions.costs.guess import Guess, guessed, passes_on_files
from spark_regions.costs.rates import SECONDS_PER_ROW, SHUFFLED_SECONDS_PER_ROW
from spark_regions.dag.plan import Node, Plan
from spark_regions.runs.recorded_query import Measured, RecordedQuery, completed, recurring_signature


class Seen(NamedTuple):
    """Task-seconds and rows of an operator in earlier runs; None: not known."""

    seconds: float | None
    rows: float | None


def expected(plans: Sequence[Plan], seen: Sequence[Sequence[Seen]], cores: int) -> list[RecordedQuery]:
    """What is known of an operator, or of its like in plans that only have other values; else what its sources say.

    Worked example: sixteen branches of an exploration, of which the first has run: the other fifteen are expected to
    take what that took.

    :param seen: of each plan's nodes, in the order of `below`
    """
    forms = [recurring_signature(plan) for plan in plans]
    alike: dict[tuple[str, int], list[Seen]] = {}
    for form, nodes in zip(forms, seen, strict=True):
        for place, each in enumerate(nodes):
            alike.setdefault((form, place), []).append(each)
    found = []
    for plan, form, nodes in zip(plans, forms, seen, strict=True):
        guess = guessed(plan)
        seconds, rows = {}, {}
        for place, (number, own) in enumerate(zip(plan.below(plan.root), nodes, strict=True)):
            others = alike[form, place]
            passed = bool(plan.nodes[number].children) and passes_on_files(plan, number)
            alone = 0.0 if passed else _guessed(plan.nodes[number], guess)
            seconds[number] = _first(own.seconds, (each.seconds for each in others), alone) / cores
            rows[number] = _first(own.rows, (each.rows for each in others), guess.rows[number])
        found.append(RecordedQuery(plan, Measured(seconds, rows, {})))
    return completed(found)


def _guessed(node: Node, guess: Guess) -> float:
    """Task-seconds. Which of two operators is the dearer one matters here: an aggregate forms groups where their rows
    are, and moves only these, while a join moves all rows."""
    if not node.operator.startswith("Aggregate"):
        return guess.task_seconds[node.id]
    given = sum(guess.rows[child] for child in node.children)
    return given * SECONDS_PER_ROW + guess.rows[node.id] * SHUFFLED_SECONDS_PER_ROW


def _first(own: float | None, others: Iterable[float | None], guess: float) -> float:
    known = [own] if own is not None else [each for each in others if each is not None]
    return fmean(known) if known else guess
