"""What to load and what to store, by the strategy that the user names (Piglet §4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from spark_regions.dag.plan import Plan
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline, Selection, StrategyInput
from spark_regions.errors import StrategyUnknown
from spark_regions.optimizer.price import seconds_of
from spark_regions.optimizer.strategies import strategy
from spark_regions.optimizer.strategies.antichain import best_antichain


def choose(question: Question, draft: Draft) -> Draft:
    """Before all that is done beside loads and stores: these save most, and what is below a load does not run."""
    confs = question.confs
    given = StrategyInput(
        question.plan, draft.matches, draft.gains, draft.candidates, draft.eligible, draft.least_gains
    )
    try:
        selection = strategy(confs.strategy if confs.recycle else "off")(given)
    except StrategyUnknown as error:
        return draft.declined(Decline(question.plan.root, "UNKNOWN_STRATEGY", str(error)))
    if not confs.recycling and draft.matches:
        # What this application keeps in memory is read without recycling, too.
        selection = best_antichain(
            replace(given, candidates=()), lambda candidate: Decline(candidate.node, "NOT_CHOSEN")
        )
    saved = {**draft.gains, **_each_copy_its_part(question.plan, draft, selection)}
    saved |= _within(question.plain_seconds, {number: saved[number] for number in selection.loads})
    return replace(
        draft,
        loads={number: draft.matches[number].merging or reason for number, reason in selection.loads.items()},
        saved=saved,
        stores=selection.stores,
        first_uses=selection.first_uses,
    ).declined(*selection.declines)


def _within(plain_seconds: float | None, saved: Mapping[int, float]) -> Mapping[int, float]:
    """No query saves more than plain execution of it was seen to take, whatever its operators took elsewhere.

    >>> _within(3.0, {1: 4.0, 5: 2.0}), _within(None, {1: 4.0})
    ({1: 2.0, 5: 1.0}, {1: 4.0})
    """
    whole = sum(max(each, 0.0) for each in saved.values())
    if plain_seconds is None or whole <= plain_seconds:
        return saved
    return {number: min(each, each * plain_seconds / whole) for number, each in saved.items()}


def _each_copy_its_part(plan: Plan, draft: Draft, selection: Selection) -> dict[int, float]:
    """What the chosen loads save at least, by node: without them Spark might have computed copies once."""
    if draft.least_seconds is draft.uncached_seconds:
        return {}
    copies = Counter(plan.nodes[number].copy for number in selection.loads)
    return {
        number: min(
            draft.gains[number],
            seconds_of(draft.least_seconds, number) / copies[plan.nodes[number].copy] - draft.matches[number].seconds,
        )
        for number in selection.loads
    }
