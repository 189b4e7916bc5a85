"""What each slice of a repair takes."""

from __future__ import annotations

from dataclasses import replace

from spark_regions.skew.draft import Appraisal, StageDraft, StageQuestion
from spark_regions.skew.makespan import slice_seconds


def appraise(question: StageQuestion, draft: StageDraft) -> StageDraft:
    """Seconds of each slice: its part of the rows, the copies that it reads, and what it looks up or merges."""
    drawn = (Appraisal(each, slice_seconds(question.stage, each.splits, question.costs)) for each in draft.candidates)
    return replace(draft, appraisals=drawn)
