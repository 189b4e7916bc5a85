"""Which slices make one task, and which repair is the shortest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from spark_regions.skew.draft import Appraisal, StageDraft, StageQuestion
from spark_regions.skew.makespan import phases, total_makespan
from spark_regions.skew.operators import Operator
from spark_regions.skew.packing import even_groups, longest_first
from spark_regions.skew.spec import Decline, Kind, SkewSpec, Split, Task

TASKS_PER_CORE = (4, 2)
"""Numbers of tasks that are tried where there are more partitions than that."""
SAME = 1.005
"""Ratio of two makespans that makes no odds."""
FINER = 0.99
"""Part of the makespan that a finer cut must leave, or the search ends."""
WORTHWHILE = 0.99
"""Part of the plain makespan that a repair must stay under, so that balanced stages are left alone."""

REASONS = {
    Kind.ORDER: "LONGEST_FIRST",
    Kind.RECORDS: "SPLIT_BY_RECORDS",
    Kind.TWO_PHASES: "TWO_PHASES",
}


@dataclass(frozen=True, slots=True)
class _Packed:
    """:param score: predicted makespan, one standard error of the longest task, which may well end last, and once more
    the phases that a repair adds
    """

    kind: Kind
    splits: tuple[Split, ...]
    tasks: tuple[Task, ...]
    makespan: float
    score: float


def pack(question: StageQuestion, draft: StageDraft) -> StageDraft:
    """The decision with the shortest predicted makespan; `Kind.NONE` with a reason where none beats Spark's own.

    Compared are makespans with one standard error of the longest task on top, so that a few long slices, which are off
    by more, do not win against many short ones. What is chosen is also predicted faster without that.
    """
    stage, plain = question.stage, draft.plain
    appraisals = iter(draft.appraisals)
    best = _packed(question, next(appraisals))  # nothing is cut
    least, factor = min(best.score, plain + stage.error_share * draft.longest), WORTHWHILE
    declines: list[Decline] = []
    cut: list[_Packed] = []
    for each in appraisals:
        declines += each.candidate.declines
        if not each.candidate.splits or (cut and each.candidate.splits == cut[-1].splits):
            if cut:
                break
            continue
        found = _packed(question, each)
        if found.score < factor * least and found.makespan < WORTHWHILE * plain:
            best, least, factor = found, found.score, 1.0
        finer = found.score < FINER * min((before.score for before in cut), default=inf)
        cut.append(found)
        if not finer or question.expired():
            break
    if cut and not best.splits:
        lost = min(cut, key=lambda each: each.makespan)
        declines.insert(0, Decline(lost.kind, "GAIN_TOO_SMALL", _gain(plain, lost)))
    unique = tuple({(each.kind, each.code): each for each in reversed(declines)}.values())[::-1]
    if best.makespan < WORTHWHILE * plain:
        spec = SkewSpec(best.kind, best.splits, best.tasks, best.makespan, reason=REASONS[best.kind])
        spec = replace(spec, detail=_gain(plain, best))
    else:
        code, detail = _why_not(draft, stage.balanced_bound, unique, best)
        spec = SkewSpec(Kind.NONE, predicted_makespan=plain, reason=code, detail=detail)
    spec = replace(spec, plain_makespan=plain, balanced_bound=stage.balanced_bound, declines=unique)
    return replace(draft, spec=spec)


def _packed(question: StageQuestion, appraisal: Appraisal) -> _Packed:
    """Slices alone; whole partitions alone or packed, whichever is faster; in fewer tasks where that is the same."""
    seconds, target = appraisal.seconds, appraisal.candidate.target
    cut = {split.partition for split in appraisal.candidate.splits}
    own = [(each,) for each in seconds if each.partition in cut]
    free = [each for each in seconds if each.partition not in cut]
    ways: list[list[Task]] = [[(each,) for each in seconds]]
    counts = {number * question.stage.cores for number in TASKS_PER_CORE}
    if target is not None:
        counts.add(ceil(sum(seconds[each] for each in free) / target))
    for count in sorted(counts):
        if 0 < count < len(free):
            groups = even_groups([seconds[each] for each in free], count)
            ways.append([*(tuple(free[index] for index in group) for group in groups), *own])
    found = []
    for way in ways:
        # Spark starts tasks in the order of their numbers.
        order = longest_first([sum(seconds[each] for each in task) for task in way])
        found.append(_measured(question, appraisal, tuple(way[at] for at in order)))
    least = min(each.score for each in found)
    return min((each for each in found if each.score <= SAME * least), key=lambda each: len(each.tasks))


def _measured(question: StageQuestion, appraisal: Appraisal, tasks: tuple[Task, ...]) -> _Packed:
    stage, splits = question.stage, appraisal.candidate.splits
    kind = Kind.TWO_PHASES if stage.operator is Operator.PARTITION_WINDOW else Kind.RECORDS
    found = phases(stage, splits, tasks, question.costs, appraisal.seconds)
    makespan = total_makespan(found, stage.cores)
    longest = max(max(phase.tasks) for phase in found)
    # A repair of one phase does the stage's own work and reads some of it twice; further ones are priced by guess.
    doubt = makespan - max(phase.makespan(stage.cores) for phase in found)
    score = makespan + stage.error_share * longest + doubt
    return _Packed(kind if splits else Kind.ORDER, splits, tasks, makespan, score)


def _why_not(draft: StageDraft, bound: float, declines: Sequence[Decline], best: _Packed) -> tuple[str, str]:
    if not draft.skewed or draft.plain <= bound / WORTHWHILE:
        return "BALANCED", f"{draft.plain:.2f} s, bound {bound:.2f} s"
    if declines:
        return declines[0].code, declines[0].detail
    return "GAIN_TOO_SMALL", _gain(draft.plain, best)


def _gain(plain: float, ours: _Packed) -> str:
    return f"{plain:.2f} s to {ours.makespan:.2f} s"
