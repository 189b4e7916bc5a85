"""Before a sort is written: whether the rows of one value may go to several ranges, though no value is known yet."""

from __future__ import annotations

from spark_regions.skew.packing import in_order
from spark_regions.skew.reduce_stage import Costs, Stage
from spark_regions.skew.spec import Kind, PartitionSlice, SkewSpec

MOST_ADDED = 0.02
"""Part of an even sort that may be added to it, in case that a value is heavy."""


def tie_breaking(stage: Stage, costs: Costs) -> SkewSpec:
    """A further sort key that breaks ties costs every row a little, and is all that a heavy value needs.

    Spark samples keys and makes ranges of about equal weight; only a value that fills several ranges defeats it. With
    nothing measured, the decision is that of an insurance: taken where it adds at most 2 % to a sort without a heavy
    value, and less than one with all rows in one value loses. `plain_makespan` is that of the latter, the most that may
    be saved.

    Worked example: 8 ranges of 1 s and 1,000,000 rows on 4 cores. A tie-breaker of 10 ns a row adds 0.02 s to 2 s; a
    value with all rows takes 8 s.

    :param stage: a sort that is not written, its partitions taken for even
    """
    makespan = tied_makespan(stage, costs)
    even = in_order([each + costs.task_seconds for each in stage.seconds], stage.cores).makespan
    worst = one_value_makespan(stage, costs)
    detail = f"adds {makespan - even:.3f} s to {even:.2f} s, saves up to {max(worst - makespan, 0.0):.2f} s"
    if makespan < worst and makespan <= (1 + MOST_ADDED) * even:
        tasks = tuple((PartitionSlice(number),) for number in range(len(stage.seconds)))
        return SkewSpec(Kind.TIES, (), tasks, makespan, worst, stage.balanced_bound, "TIES_SPREAD", detail)
    return SkewSpec(Kind.NONE, (), (), even, even, stage.balanced_bound, "GAIN_TOO_SMALL", detail)


def tied_makespan(stage: Stage, costs: Costs) -> float:
    """Seconds of an even sort with the further key."""
    ties = [rows * costs.tie_seconds_per_row for rows in stage.left.rows]
    tasks = [each + tie + costs.task_seconds for each, tie in zip(stage.seconds, ties, strict=True)]
    return in_order(tasks, stage.cores).makespan


def one_value_makespan(stage: Stage, costs: Costs) -> float:
    """Seconds of a sort whose rows all have one value: one task does all."""
    return sum(stage.seconds) + costs.task_seconds
