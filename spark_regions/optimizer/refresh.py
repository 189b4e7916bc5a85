"""Which stored result is brought up to date from files that were added since (docs/growing.md)."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.costs.rates import SHUFFLED_SECONDS_PER_ROW, STAGE_OVERHEAD_SECONDS
from spark_regions.dag.plan import Node
from spark_regions.dag.records import Entry
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline
from spark_regions.matching.subsumes import REFRESHED, Match
from spark_regions.optimizer.estimate import load_seconds
from spark_regions.optimizer.match import merges, unusable
from spark_regions.optimizer.withdraw import READS, withheld
from spark_regions.stats.operators import AGGREGATE
from spark_regions.wire.messages import GrownEntry


def refresh(question: Question, draft: Draft) -> Draft:
    """After `match` and `roll_up`, since what is up to date is cheaper; before `price`, which compares with computing.

    The driver has shown that an entry lacks some files of one relation and has everything else; here it is seen to be
    readable, and what reading it and computing the rest takes. The rest reads what is beside the relation once more.

    Worked example: the entry took 10 s to compute; 2 of 10 GB are new; the other side of the join is 1 task-second on
    two cores: 10 s · 0.2 + 0.5 s, of an aggregate a stage to merge, and what reading the entry takes.
    """
    entries = {entry.id: entry for entry in question.entries}
    found: dict[int, Match] = {}
    declines: list[Decline] = []
    for number, node in question.plan.nodes.items():
        known = [(each, entries[each.entry]) for each in node.grown if each.entry in entries]
        if not known or number in draft.matches or not merges(node) or not question.confs.recycling:
            continue
        assert node.signature is not None
        if (stop := withheld(question, node.signature.lineage, READS)) is not None:
            declines.append(Decline(number, *stop))
            continue
        for each, entry in known:
            if (number, entry.id) in question.unordered:
                continue
            if (why := unusable(entry, question)) is not None:
                declines.append(Decline(number, why, entry.id))
                continue
            match = _match(question, draft, node, each, entry)
            if number not in found or match.seconds < found[number].seconds:
                found[number] = match
    if not found and not declines:
        return draft
    return replace(draft, matches={**draft.matches, **found}).declined(*declines)


def lacking_seconds(entry: Entry, grown: GrownEntry) -> float:
    """What computing the rows of the files that an entry lacks takes; wall seconds."""
    return entry.recompute_seconds * grown.bytes / max(grown.whole, 1)


def _match(question: Question, draft: Draft, node: Node, grown: GrownEntry, entry: Entry) -> Match:
    beside = set(question.plan.below(node.id)) - {node.id, *grown.nodes}
    again = sum(draft.self_seconds[number].value for number in beside if number in draft.self_seconds)
    cores = max(question.cores, 1)
    seconds = lacking_seconds(entry, grown) + again / cores
    seconds += load_seconds(entry, len(entry.columns), question.rates, question.cores)
    if node.kind == AGGREGATE:
        seconds += entry.rows * SHUFFLED_SECONDS_PER_ROW / cores + STAGE_OVERHEAD_SECONDS
    nothing: frozenset[str] = frozenset()
    return Match(node.id, entry, frozenset(entry.columns), nothing, nothing, seconds, merging=REFRESHED)
