"""The repair of one reduce stage: whatever its operator allows and the prediction prefers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt

from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks, splits_anything
from spark_regions.skew.boundaries import boundaries, weights
from spark_regions.skew.detect import burdened, thresholds
from spark_regions.skew.operators import MERGED, Operator
from spark_regions.skew.packing import in_order, longest_first, pack
from spark_regions.skew.spec import Decline, Kind, Piece, SkewSpec, Split, Task
from spark_regions.skew.splits import by_keys, by_records
from spark_regions.skew.stage import Costs, Stage
from spark_regions.skew.work import phases, piece_seconds, total_makespan

FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Sizes of a task that are tried, in fair shares of a core: smaller ones pack better and cost more."""
TASKS_PER_CORE = (4, 2)
"""Numbers of tasks that are tried where there are more partitions than that."""
TRIFLE = 1e-9

REASONS = {
    Kind.ORDER: "LONGEST_FIRST",
    Kind.RECORDS: "SPLIT_BY_RECORDS",
    Kind.KEYS: "SPLIT_BY_KEYS",
    Kind.TWO_PHASES: "TWO_PHASES",
    Kind.BOUNDARIES: "RANGE_BOUNDARIES",
}


def repair(stage: Stage, costs: Costs | None = None, adaptive: AdaptiveConf | None = None) -> SkewSpec:
    """The decision with the shortest predicted makespan; `Kind.NONE` with a reason where none beats Spark's own.

    A repair that costs anything must gain more than the error of the prediction; an order of start costs nothing.

    Worked example: an inner join on 4 cores, nine partitions of 1 s and one of 30 s, nearly all of it one key. The
    bound is 39 / 4 s. Plain takes 30 s and more; the key dealt to eight tasks, the longest first, about 10 s.
    """
    costs = costs or Costs()
    plain = plain_makespan(stage, costs, adaptive)
    nothing = SkewSpec(Kind.NONE, plain_makespan=plain, predicted_makespan=plain, balanced_bound=stage.balanced_bound)
    if stage.salted:
        return replace(nothing, reason="HAND_SALTED")
    if not stage.seconds or plain <= 0 or not any(stage.seconds):
        return replace(nothing, reason="NO_HISTORY")
    limits = thresholds(stage.seconds, stage.cores, costs.stage_seconds, stage.error_seconds)
    skewed = burdened(stage.seconds, stage.cores, limits)
    candidates = [_planned(stage, Kind.ORDER, (), costs)]
    declines: list[Decline] = []
    if skewed:
        for found in _splits(stage, costs, declines):
            candidates.append(found)
    unique = tuple({(each.kind, each.code): each for each in reversed(declines)}.values())[::-1]
    margin = sqrt(2) * stage.error_seconds
    best = candidates[0]
    for candidate in candidates[1:]:
        than = best.predicted_makespan - (margin if best.kind is Kind.ORDER else 0.0)
        if candidate.predicted_makespan < than - TRIFLE:
            best = candidate
    needed = TRIFLE if best.kind is Kind.ORDER else margin + TRIFLE
    if best.predicted_makespan <= plain - needed:
        detail = f"{plain:.2f} s to {best.predicted_makespan:.2f} s"
        ours = replace(best, plain_makespan=plain, balanced_bound=stage.balanced_bound)
        return replace(ours, reason=REASONS[best.kind], detail=detail, declines=unique)
    code, detail = _why_not(stage, skewed, unique, adaptive, best, plain)
    return replace(nothing, reason=code, detail=detail, declines=unique)


def plain_makespan(stage: Stage, costs: Costs, adaptive: AdaptiveConf | None = None) -> float:
    """Without us: adaptive execution where it is on, else every partition a task, in the order of their numbers."""
    tasks = adaptive_tasks(stage, costs, adaptive) if stage.aqe else plain_tasks(stage, costs)
    return in_order(tasks, stage.cores).makespan


def plain_tasks(stage: Stage, costs: Costs) -> tuple[float, ...]:
    return tuple(seconds + costs.task_seconds for seconds in stage.seconds)


def _splits(stage: Stage, costs: Costs, declines: list[Decline]) -> Iterator[SkewSpec]:
    if stage.operator is Operator.SORT:
        yield from _ranges(stage, costs, declines)
        return
    kind = Kind.TWO_PHASES if stage.operator in MERGED else Kind.RECORDS
    seen: set[tuple[Split, ...]] = set()
    for fraction in FRACTIONS:
        target = fraction * stage.balanced_bound
        records, keys = by_records(stage, target, costs), by_keys(stage, target)
        whole = by_records(stage, target, costs, keys=False)
        declines += [*records.declines, *keys.declines]
        for splits in (records.splits, whole.splits, keys.splits):
            if splits and splits not in seen:
                seen.add(splits)
                spreads = any(split.helpers > 1 for split in splits)
                yield _planned(stage, kind if spreads else Kind.KEYS, splits, costs)


def _ranges(stage: Stage, costs: Costs, declines: list[Decline]) -> Iterator[SkewSpec]:
    if stage.layout_fixed or not stage.distribution:
        declines.append(Decline(Kind.BOUNDARIES, "REPARTITION" if stage.layout_fixed else "NO_HISTORY"))
        return
    for parts in sorted({len(stage.seconds), *(number * stage.cores for number in (1, *TASKS_PER_CORE))}):
        ends = boundaries(stage.distribution, parts, stage.ties_free)
        shares = weights(stage.distribution, ends)
        tasks = tuple((Piece(number),) for number in longest_first(shares))
        yield _measured(stage, SkewSpec(Kind.BOUNDARIES, boundaries=ends, tasks=tasks), costs)


def _planned(stage: Stage, kind: Kind, splits: tuple[Split, ...], costs: Costs) -> SkewSpec:
    """Tasks in the order of start: slices alone, whole partitions alone or packed, whichever is faster."""
    seconds = piece_seconds(stage, splits, costs)
    slices = {split.partition for split in splits if split.key is None and split.helpers > 1}
    free = [piece for piece in seconds if piece.key is None and piece.partition not in slices]
    own = [piece for piece in seconds if piece.key is not None or piece.partition in slices]
    found = [_measured(stage, SkewSpec(kind, splits, _sorted([(piece,) for piece in seconds], seconds)), costs)]
    if not stage.layout_fixed:
        for number in TASKS_PER_CORE:
            bins = number * stage.cores
            if len(free) > bins:
                groups = pack([seconds[piece] for piece in free], bins, contiguous=stage.operator is Operator.SORT)
                tasks = [tuple(free[index] for index in group) for group in groups] + [(piece,) for piece in own]
                found.append(_measured(stage, SkewSpec(kind, splits, _sorted(tasks, seconds)), costs))
    return min(found, key=lambda each: each.predicted_makespan)


def _sorted(tasks: Sequence[Task], seconds: dict[Piece, float]) -> tuple[Task, ...]:
    return tuple(tasks[at] for at in longest_first([sum(seconds[piece] for piece in task) for task in tasks]))


def _measured(stage: Stage, spec: SkewSpec, costs: Costs) -> SkewSpec:
    return replace(spec, predicted_makespan=total_makespan(phases(stage, spec, costs), stage.cores))


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
    if not skewed:
        return "BALANCED", f"{plain:.2f} s, bound {stage.balanced_bound:.2f} s"
    if declines:
        return declines[0].code, declines[0].detail
    return "GAIN_TOO_SMALL", f"{plain:.2f} s to {best.predicted_makespan:.2f} s"
