"""Which candidates may be chosen at all."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline


def fit(question: Question, draft: Draft) -> Draft:
    """Between those that find candidates and `choose`, which has one budget and no other bound.

    What is larger than the whole budget is left out; with a plan of the run also what no later run has used.
    """
    budget = question.confs.max_bytes
    too_large = [each for each in draft.candidates if each.bytes > budget]
    kept = tuple(each for each in draft.candidates if each.bytes <= budget)
    if question.planned and question.confs.strategy != "always":
        kept = tuple(each for each in kept if each.expected > 0)
    if len(kept) == len(draft.candidates):
        return draft
    declines = (Decline(each.node, "TOO_LARGE", f"{each.bytes:.0f} bytes") for each in too_large)
    return replace(draft, candidates=kept).declined(*declines)
