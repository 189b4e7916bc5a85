"""What was brought up to date is stored in the same pass (docs/growing.md)."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Store, unmeasured
from spark_regions.matching.subsumes import REFRESHED
from spark_regions.optimizer.refresh import lacking_seconds
from spark_regions.stats.operators import AGGREGATE


def renew(question: Question, draft: Draft) -> Draft:
    """After `choose`, which says what is read: the next files are then added to this entry, and not to an older one.

    Its size is that of the entry that it comes from, as far as that grows with the files. Rows that are no groups only
    become more: they are written again once the files that they lack take longer than that, each time.
    """
    stores: list[Store] = []
    for number in draft.loads:
        match, node = draft.matches[number], question.plan.nodes[number]
        if match.rule != REFRESHED or node.signature is None or not node.storable or not question.confs.recycling:
            continue
        (grown,) = [each for each in node.grown if each.entry == match.entry.id]
        size = match.entry.bytes * grown.whole / max(grown.whole - grown.bytes, 1)
        size = min(size, float(max(question.confs.max_bytes, 0)))
        rows, columns = float(match.entry.rows), len(node.signature.columns)
        seconds = question.rates.write_seconds(size, question.cores, rows, columns)
        if node.kind != AGGREGATE and lacking_seconds(match.entry, grown) < seconds:
            continue
        stores.append((replace(unmeasured(number, node.signature, seconds), bytes=size), REFRESHED))
    return draft.storing(stores) if stores else draft
