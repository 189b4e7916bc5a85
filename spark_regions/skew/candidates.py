"""The repairs that a stage's operator allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spark_regions.skew.draft import Candidate, StageDraft, StageQuestion
from spark_regions.skew.operators import Operator
from spark_regions.skew.spec import Decline, Kind
from spark_regions.skew.splits import by_records

FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Sizes of a task that are tried, in fair shares of a core: smaller ones pack better and cost more."""
SHORTEST = 1e-6
"""Seconds below which nothing is cut; smaller ones would not even divide."""


def candidates(question: StageQuestion, draft: StageDraft) -> StageDraft:
    """Nothing cut; and where there is skew, partitions cut into tasks of ever fewer seconds.

    Drawn one by one, because each finer cut takes longer to look at, and is not looked at where it brings nothing.
    """
    return replace(draft, candidates=_finer_and_finer(question, draft))


def _finer_and_finer(question: StageQuestion, draft: StageDraft) -> Iterator[Candidate]:
    yield Candidate()
    stage = question.stage
    if not draft.skewed and not stage.crowded:
        return
    by_keys = Decline(Kind.KEYS, "UNKNOWN_OPERATOR" if stage.operator is Operator.REDUCE else "NO_HEAVY_KEYS")
    for target in (fraction * stage.balanced_bound for fraction in FRACTIONS):
        if target >= SHORTEST:
            found = by_records(stage, target, question.costs)
            yield Candidate(found.splits, target, (*found.declines, by_keys))
