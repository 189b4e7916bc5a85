"""The repair of one reduce stage: whatever its operator allows and the prediction prefers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks, splits_anything
from spark_regions.skew.candidates import in_best_order, splitting
from spark_regions.skew.detect import burdened, thresholds
from spark_regions.skew.keys import key_loads
from spark_regions.skew.operators import Operator
from spark_regions.skew.packing import in_order
from spark_regions.skew.spec import Decline, Kind, SkewSpec
from spark_regions.skew.stage import Costs, Stage
from spark_regions.skew.ties import spread_ties

WORTHWHILE = 0.99
"""Part of the plain makespan that a repair must stay under, so that balanced stages are left alone."""

REASONS = {
    Kind.ORDER: "LONGEST_FIRST",
    Kind.RECORDS: "SPLIT_BY_RECORDS",
    Kind.KEYS: "SPLIT_BY_KEYS",
    Kind.TWO_PHASES: "TWO_PHASES",
    Kind.BOUNDARIES: "RANGE_BOUNDARIES",
}


def repair(
    stage: Stage,
    costs: Costs | None = None,
    adaptive: AdaptiveConf | None = None,
    expired: Callable[[], bool] = lambda: False,
) -> SkewSpec:
    """The decision with the shortest predicted makespan; `Kind.NONE` with a reason where none beats Spark's own.

    Compared are makespans with one standard error of the longest task on top, so that a few long slices, which are off
    by more, do not win against many short ones. What is chosen is also predicted faster without that.

    Worked example: an inner join on 4 cores, nine partitions of 1 s and one of 30 s, nearly all of it one key. The
    bound is 39 / 4 s. Plain takes 30 s and more; the key dealt to eight tasks, the longest first, about 10 s.

    :param expired: whether the time to decide is over; the best repair so far then stands. 1,000 partitions on 480
        cores take about 0.1 s, 10,000 about 2 s
    """
    costs = costs or Costs()
    tasks = adaptive_tasks(stage, costs, adaptive) if stage.aqe else plain_tasks(stage, costs)
    plain = in_order(tasks, stage.cores).makespan
    nothing = SkewSpec(Kind.NONE, plain_makespan=plain, predicted_makespan=plain, balanced_bound=stage.balanced_bound)
    if stage.salted:
        return replace(nothing, reason="HAND_SALTED")
    if not stage.seconds or plain <= 0 or not any(stage.seconds):
        return replace(nothing, reason="NO_HISTORY")
    if stage.operator is Operator.SORT and not stage.observed and not stage.distribution and _ties_allowed(stage):
        return spread_ties(stage, costs)
    error = stage.error_share * max(stage.seconds)
    skewed = burdened(stage.seconds, stage.cores, thresholds(stage.seconds, stage.cores, costs.stage_seconds, error))
    loads = key_loads(stage)
    declines: list[Decline] = []
    best = in_best_order(stage, loads, costs)
    least = min(best.score, plain + stage.error_share * max(tasks))
    factor = WORTHWHILE
    lost: SkewSpec | None = None
    for candidate in splitting(stage, loads, costs, declines) if skewed or stage.crowded else ():
        if lost is None or candidate.spec.predicted_makespan < lost.predicted_makespan:
            lost = candidate.spec
        if candidate.score < factor * least and candidate.spec.predicted_makespan < WORTHWHILE * plain:
            best, least, factor = candidate, candidate.score, 1.0
        if expired():
            break
    if lost and lost.spreads and not best.spec.splits:
        declines.insert(0, Decline(lost.kind, "GAIN_TOO_SMALL", f"{plain:.2f} s to {lost.predicted_makespan:.2f} s"))
    unique = tuple({(each.kind, each.code): each for each in reversed(declines)}.values())[::-1]
    chosen = best.spec
    if chosen.predicted_makespan < WORTHWHILE * plain:
        detail = f"{plain:.2f} s to {chosen.predicted_makespan:.2f} s"
        ours = replace(chosen, plain_makespan=plain, balanced_bound=stage.balanced_bound)
        return replace(ours, reason=REASONS[chosen.kind], detail=detail, declines=unique)
    code, detail = _why_not(stage, skewed, unique, adaptive, chosen, plain)
    return replace(nothing, reason=code, detail=detail, declines=unique)


def _ties_allowed(stage: Stage) -> bool:
    return stage.ties_free and not stage.ordered and not stage.layout_fixed


def plain_tasks(stage: Stage, costs: Costs) -> tuple[float, ...]:
    seconds = [each + costs.task_seconds for each in stage.seconds]
    return stage.with_spills(seconds, stage.sorted_data, costs)


def _why_not(
    stage: Stage,
    skewed: Sequence[int],
    declines: Sequence[Decline],
    adaptive: AdaptiveConf | None,
    best: SkewSpec,
    plain: float,
) -> tuple[str, str]:
    if stage.aqe and splits_anything(stage, adaptive):
        return "AQE_SUFFICES", f"{plain:.2f} s"
    if not skewed or plain <= stage.balanced_bound / WORTHWHILE:
        return "BALANCED", f"{plain:.2f} s, bound {stage.balanced_bound:.2f} s"
    if declines:
        return declines[0].code, declines[0].detail
    return "GAIN_TOO_SMALL", f"{plain:.2f} s to {best.predicted_makespan:.2f} s"
