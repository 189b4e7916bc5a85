"""A reduce stage that is about to run: its sizes in, what its tasks read out."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from spark_regions.costs.rates import TASK_BYTES_PER_SECOND
from spark_regions.errors import InvalidRequest, StoreError
from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks
from spark_regions.skew.draft import StageQuestion
from spark_regions.skew.history import StageHistory
from spark_regions.skew.key_frequencies import KeyFrequencies
from spark_regions.skew.makespan import phases, total_makespan
from spark_regions.skew.messages import stage_of
from spark_regions.skew.packing import in_order
from spark_regions.skew.reduce_stage import Costs, Stage
from spark_regions.skew.spec import Kind, SkewSpec
from spark_regions.skew.stage import plan_stage
from spark_regions.skew.task_time_model import GUESS_ERROR_SHARE, TaskTimeModel
from spark_regions.skew.tie_breaking import one_value_makespan, tied_makespan
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.wire.messages import CountedKeys, DecideSkew, HeavyKey, RanStage, SkewDecision

log = logging.getLogger("spark_regions.planner")

WAIT_SHARE = 0.7
"""Part of the shim's deadline after which the best repair so far is sent."""
FREE = Costs(0.0, 0.0, 0.0, 0.0, tie_seconds_per_row=0.0)
BYTES_ALONE = TaskTimeModel(0.0, 1 / TASK_BYTES_PER_SECOND, 0.0, 0.0)
ALWAYS_CORES = 16
"""With strategy `always`, sizes alone count, a repair costs nothing, and no machine is too small for one."""


@dataclass(frozen=True, slots=True)
class Learned:
    """:param same_rows: the stage reads the very rows that were measured"""

    history: StageHistory
    same_rows: bool


def stage_key(told: DecideSkew | RanStage | CountedKeys) -> tuple[str, str]:
    """What a stage is known by: the shape of its operators, and the lineage of its rows, "" where it has none."""
    return told.shape[:64], (told.lineage or "")[:64]


def learned(graph: OperatorGraph, message: DecideSkew) -> Learned | None:
    """What the stage of a `skew` request took when it last ran; None where nothing is known."""
    shape, lineage = stage_key(message)
    if not shape:
        return None
    try:
        found = graph.stage(shape, lineage)
        if found is None:
            return None
        history = StageHistory.decode(found[1])
        return Learned(history, bool(lineage) and found[0] == lineage) if history.whole else None
    except (StoreError, InvalidRequest) as problem:
        log.warning("a stage is decided on without what it took before: %s", problem)
        return None


def counted(graph: OperatorGraph, message: DecideSkew) -> tuple[HeavyKey, ...] | None:
    """The heaviest keys of a `skew` request's stage, where they were counted on the very same rows; else None."""
    shape, lineage = stage_key(message)
    if not shape or not lineage:
        return None
    try:
        found = graph.stage_keys(shape, lineage)
        return None if found is None else KeyFrequencies.decode(found).keys
    except (StoreError, InvalidRequest) as problem:
        log.warning("the keys of a stage are counted again: %s", problem)
        return None


def decide_skew(message: DecideSkew, before: Learned | None = None) -> SkewDecision:
    """The decision on a stage, and the seconds that the stage was taken for.

    :param before: what it took when it last ran
    :raises InvalidRequest: for a stage that cannot be read
    """
    until = time.monotonic() + WAIT_SHARE * message.deadline_seconds
    stage, costs = stage_of(message.stage, TaskTimeModel()), Costs()
    if before is not None:
        stage = _as_before(stage, before)
        costs = replace(costs, task_seconds=max(costs.task_seconds, before.history.model.fixed))
    sizes = message.adaptive
    adaptive = AdaptiveConf(sizes.advisory_bytes, sizes.min_bytes, sizes.parallelism_first)

    def late() -> bool:
        return time.monotonic() > until

    if message.strategy == "always":
        sized = stage_of(message.stage, BYTES_ALONE)
        spec = plan_stage(StageQuestion(replace(sized, cores=max(sized.cores, ALWAYS_CORES)), FREE, adaptive, late))
        spec = _predicted(spec, stage, adaptive, costs)
    else:
        spec = plan_stage(StageQuestion(stage, costs, adaptive, late))
    return SkewDecision(spec.told(), learned=before is not None)


def _as_before(stage: Stage, before: Learned) -> Stage:
    """With what it took before as its load."""
    sizes, rows = stage.sizes
    seconds = before.history.partition_seconds(sizes, rows, before.same_rows)
    again = before.history.measured(sizes, before.same_rows)
    error = GUESS_ERROR_SHARE if again else before.history.model.error_share
    return replace(stage, seconds=seconds, error_share=error) if any(seconds) else stage


def _predicted(spec: SkewSpec, stage: Stage, adaptive: AdaptiveConf, costs: Costs) -> SkewSpec:
    """With the seconds that the stage's own cores and costs let expect: that may be more than the plain plan's."""
    plain = in_order(adaptive_tasks(stage, costs, adaptive), stage.cores).makespan
    if spec.kind is Kind.NONE:
        return replace(spec, plain_makespan=plain, predicted_makespan=plain, balanced_bound=stage.balanced_bound)
    if spec.kind is Kind.TIES:
        plain, ours = one_value_makespan(stage, costs), tied_makespan(stage, costs)
    else:
        ours = total_makespan(phases(stage, spec.splits, spec.tasks, costs), stage.cores)
    return replace(
        spec,
        plain_makespan=plain,
        predicted_makespan=ours,
        balanced_bound=stage.balanced_bound,
        detail=f"{plain:.2f} s to {ours:.2f} s",
    )
