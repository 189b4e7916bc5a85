"""Is there skew? (thesis §10.1)"""

from __future__ import annotations

from dataclasses import replace

from spark_regions.skew.aqe import adaptive_tasks
from spark_regions.skew.draft import StageDraft, StageQuestion
from spark_regions.skew.operators import Operator
from spark_regions.skew.packing import in_order
from spark_regions.skew.spec import Kind, SkewSpec
from spark_regions.skew.thresholds import burdened, thresholds
from spark_regions.skew.tie_breaking import tie_breaking


def detect(question: StageQuestion, draft: StageDraft) -> StageDraft:
    """How long Spark alone would take, and whether a partition is longer than any order of the tasks can hide.

    Decides by itself where there is nothing to look for: keys that the user has salted, no work, and a sort, of which
    nothing is written yet.
    """
    stage, costs = question.stage, question.costs
    tasks = adaptive_tasks(stage, costs, question.adaptive)
    plain = in_order(tasks, stage.cores).makespan
    if stage.salted or plain <= 0 or not any(stage.seconds):
        reason = "HAND_SALTED" if stage.salted else "NO_HISTORY"
        return replace(draft, spec=SkewSpec(Kind.NONE, (), (), plain, plain, stage.balanced_bound, reason))
    if stage.operator is Operator.SORT:
        return replace(draft, spec=tie_breaking(stage, costs))
    error = stage.error_share * max(stage.seconds)
    limits = thresholds(stage.seconds, stage.cores, costs.stage_seconds, error)
    skewed = bool(burdened(stage.seconds, stage.cores, limits))
    return replace(draft, plain=plain, longest=max(tasks), skewed=skewed)
