"""Which stored aggregate with more groups makes which aggregate of the query (docs/rollup.md)."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.rates import SECONDS_PER_ROW_AND_CONJUNCT, SHUFFLED_SECONDS_PER_ROW, STAGE_OVERHEAD_SECONDS
from spark_regions.dag.plan import Node
from spark_regions.dag.records import Entry
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline
from spark_regions.matching.rolls_up import RollUp, rolls_up
from spark_regions.matching.subsumes import ROLLED_UP, Match, MatchFailure
from spark_regions.optimizer.estimate import load_seconds
from spark_regions.optimizer.match import merges, unusable
from spark_regions.optimizer.withdraw import READS, withheld


def roll_up(question: Question, draft: Draft) -> Draft:
    """After `match`, since an entry with the very groups is cheaper; before `price`, which compares with computing.

    The cheapest usable entry for every aggregate that none serves as it is, or the nearest miss as a decline.
    """
    by_base: dict[str, list[Entry]] = {}
    for entry in question.entries:
        if entry.grouping is not None and not entry.persisted and question.confs.recycling:
            by_base.setdefault(entry.grouping.base, []).append(entry)
    found: dict[int, Match] = {}
    declines: list[Decline] = []
    for number, node in question.plan.nodes.items() if by_base else ():
        if node.grouping is None or number in draft.matches or not merges(node):
            continue
        assert node.signature is not None
        core = node.signature.core
        known = [entry for entry in by_base.get(node.grouping.base, ()) if entry.core != core]
        if known and (stop := withheld(question, node.signature.lineage, READS)) is not None:
            declines.append(Decline(number, *stop))
            continue
        missed: Decline | None = None
        for entry in known:
            if (number, entry.id) in question.unordered:
                continue
            result = _match(question, node, entry)
            if isinstance(result, MatchFailure):
                missed = missed or Decline(number, result.code, f"{result.detail}: {result.entry}")
            elif (why := unusable(entry, question)) is not None:
                missed = missed or Decline(number, why, entry.id)
            elif number not in found or result.seconds < found[number].seconds:
                found[number] = result
        if missed is not None and number not in found:
            declines.append(missed)
    if not found and not declines:
        return draft
    return replace(draft, matches={**draft.matches, **found}).declined(*declines)


def _match(question: Question, node: Node, entry: Entry) -> Match | MatchFailure:
    assert node.signature is not None and node.grouping is not None
    result = rolls_up(question.plan, node.signature, node.grouping, entry)
    if isinstance(result, MatchFailure):
        return result
    columns = result.columns.reads | set(result.functions.values())
    seconds = load_seconds(entry, len(columns), question.rates, question.cores)
    seconds += _merge_seconds(entry.rows, result, question.cores)
    return Match(
        node.id, entry, frozenset(columns), result.residual, result.columns.computed, seconds,
        merging=ROLLED_UP, functions=result.functions,
    )  # fmt: skip


def _merge_seconds(rows: int, result: RollUp, parallelism: int) -> float:
    """To filter, shuffle and add up the stored groups."""
    row = SHUFFLED_SECONDS_PER_ROW + SECONDS_PER_ROW_AND_CONJUNCT * len(result.residual)
    return rows * row / max(parallelism, 1) + STAGE_OVERHEAD_SECONDS
