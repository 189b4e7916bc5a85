"""The decision on one reduce stage: whatever its operator allows and the prediction prefers."""

from __future__ import annotations

from spark_regions.skew.appraise import appraise
from spark_regions.skew.candidates import candidates
from spark_regions.skew.detect import detect
from spark_regions.skew.draft import StageDraft, StageQuestion
from spark_regions.skew.pack import pack
from spark_regions.skew.spec import SkewSpec

STAGE_PASSES = (detect, candidates, appraise, pack)
"""Each adds to the draft; the first one that decides ends them. Why they stand in this order:

- `detect` comes first, because most stages that are asked about are even: it is one schedule of their loads, and spares
  them all that follows. What it says is also what every repair is compared with.
- `candidates` needs to know whether there is skew; it says what the operator allows, whatever that would bring.
- `appraise` needs to know which partitions are cut, since a slice reads copies and does further work; it does not need
  to know which task a slice will be in.
- `pack` comes last, because it puts slices together by their seconds, and because only whole schedules can be compared:
  it draws candidate after candidate through `appraise`, and stops where finer cuts bring nothing or time is over.
"""


def plan_stage(question: StageQuestion) -> SkewSpec:
    """The decision with the shortest predicted makespan; `Kind.NONE` with a reason where none beats Spark's own.

    Worked example: a left join on 4 cores, nine partitions of 1 s and one of 30 s. The bound is 39 / 4 s. Plain takes
    30 s and more; that partition in eight slices, the longest tasks first, about 10 s.
    """
    draft = StageDraft()
    for each in STAGE_PASSES:
        draft = each(question, draft)
        if draft.spec is not None:
            return draft.spec
    raise AssertionError("the last pass decides")
