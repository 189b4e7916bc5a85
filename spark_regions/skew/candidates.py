"""The repairs of a stage that its operator allows, each with its predicted makespan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from spark_regions.skew.boundaries import boundaries
from spark_regions.skew.keys import KeyLoad
from spark_regions.skew.operators import MERGED, Operator
from spark_regions.skew.packing import longest_first, pack
from spark_regions.skew.spec import Decline, Kind, Piece, SkewSpec, Split, Task
from spark_regions.skew.splits import by_keys, by_records
from spark_regions.skew.stage import Costs, Stage
from spark_regions.skew.work import phases, piece_seconds, total_makespan

FRACTIONS = (1.0, 0.5, 0.25, 0.125)
"""Sizes of a task that are tried, in fair shares of a core: smaller ones pack better and cost more."""
TASKS_PER_CORE = (4, 2)
"""Numbers of tasks that are tried where there are more partitions than that."""
RANGES_PER_CORE = (1, 2, 4, 8)
"""Numbers of ranges that are tried for a sort."""
FINER = 0.99
"""Part of the makespan that a finer cut must leave, or the search ends."""
SHORTEST = 1e-6
"""Seconds below which nothing is cut; smaller ones would not even divide."""
SAME = 1.005
"""Ratio of two makespans that makes no odds."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """:param score: predicted makespan, one standard error of the longest task, which may well end last, and once more
    the phases that a repair adds
    """

    spec: SkewSpec
    score: float


def in_best_order(stage: Stage, loads: Mapping[str, KeyLoad], costs: Costs) -> Candidate:
    """Nothing is split: packed, and the longest first unless the order of the partitions is part of the result."""
    return _planned(stage, loads, Kind.ORDER, (), costs)


def splitting(stage: Stage, loads: Mapping[str, KeyLoad], costs: Costs, declines: list[Decline]) -> Iterator[Candidate]:
    """By records, by whole partitions, by keys; in ever smaller tasks, as long as that brings anything.

    :param declines: takes what is refused, and why
    """
    if stage.operator is Operator.SORT:
        yield from _ranges(stage, costs, declines)
        return
    kind = Kind.TWO_PHASES if stage.operator in MERGED else Kind.RECORDS
    seen: set[tuple[Split, ...]] = set()
    best = float("inf")
    for fraction in FRACTIONS:
        target = fraction * stage.balanced_bound
        if target < SHORTEST:
            return
        records, keys = by_records(stage, loads, target, costs), by_keys(stage, loads, target)
        # Of a shuffle that is written, whole partitions are cut without reading past the rows of others.
        whole = by_records(stage, {}, target, costs).splits if stage.observed else ()
        declines += [*records.declines, *keys.declines]
        scores = [best]
        for splits in (records.splits, whole, keys.splits):
            if splits and splits not in seen:
                seen.add(splits)
                spreads = any(split.helpers > 1 for split in splits)
                found = _planned(stage, loads, kind if spreads else Kind.KEYS, splits, costs, target)
                scores.append(found.score)
                yield found
        if best < float("inf") and min(scores) >= FINER * best:
            return
        best = min(scores)


def _ranges(stage: Stage, costs: Costs, declines: list[Decline]) -> Iterator[Candidate]:
    if stage.layout_fixed or not stage.distribution:
        declines.append(Decline(Kind.BOUNDARIES, "REPARTITION" if stage.layout_fixed else "NO_HISTORY"))
        return
    for parts in sorted({len(stage.seconds), *(number * stage.cores for number in RANGES_PER_CORE)}):
        ends = boundaries(stage.distribution, parts, stage.ties_free)
        tasks = tuple((Piece(number),) for number in range(len(ends) + 1))
        yield _measured(stage, {}, SkewSpec(Kind.BOUNDARIES, boundaries=ends, tasks=tasks), costs)


def _planned(
    stage: Stage,
    loads: Mapping[str, KeyLoad],
    kind: Kind,
    splits: tuple[Split, ...],
    costs: Costs,
    target: float | None = None,
) -> Candidate:
    """Slices alone; whole partitions alone or packed, whichever is faster, and in fewer tasks where that is the same.

    :param target: seconds of a slice, which packed partitions may fill as well
    """
    seconds = piece_seconds(stage, splits, costs, loads)
    slices = {split.partition for split in splits if split.key is None and split.helpers > 1}
    free = [piece for piece in seconds if piece.key is None and piece.partition not in slices]
    own = [(piece,) for piece in seconds if piece.key is not None or piece.partition in slices]
    ways: list[list[Task]] = [[(piece,) for piece in seconds]]
    if not stage.layout_fixed:
        sizes = {number * stage.cores for number in TASKS_PER_CORE}
        if target:
            sizes.add(ceil(sum(seconds[piece] for piece in free) / target))
        for bins in sorted(sizes):
            if 0 < bins < len(free):
                groups = pack([seconds[piece] for piece in free], bins, contiguous=stage.operator is Operator.SORT)
                ways.append([*(tuple(free[index] for index in group) for group in groups), *own])
    # Spark starts tasks in the order of their numbers, which is also the order of a sort's result.
    fixed = stage.layout_fixed or stage.operator is Operator.SORT
    ordered = [tuple(tasks) if fixed else _sorted(tasks, seconds) for tasks in ways]
    found = [_measured(stage, loads, SkewSpec(kind, splits, tasks), costs, seconds) for tasks in ordered]
    least = min(each.score for each in found)
    return min((each for each in found if each.score <= SAME * least), key=lambda each: len(each.spec.tasks))


def _sorted(tasks: Sequence[Task], seconds: Mapping[Piece, float]) -> tuple[Task, ...]:
    return tuple(tasks[at] for at in longest_first([sum(seconds[piece] for piece in task) for task in tasks]))


def _measured(
    stage: Stage,
    loads: Mapping[str, KeyLoad],
    spec: SkewSpec,
    costs: Costs,
    seconds: Mapping[Piece, float] | None = None,
) -> Candidate:
    found = phases(stage, spec, costs, loads, seconds)
    makespan = total_makespan(found, stage.cores)
    longest = max((max(phase.tasks, default=0.0) for phase in found), default=0.0)
    # A repair of one phase does the stage's own work and reads some of it twice; further ones are priced by guess.
    doubt = makespan - max(phase.makespan(stage.cores) for phase in found) if found else 0.0
    return Candidate(replace(spec, predicted_makespan=makespan), makespan + stage.error_share * longest + doubt)
