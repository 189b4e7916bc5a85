"""What Spark's adaptive execution does with a stage on its own: contiguous coalescing, and skew splits of some joins.

The rules and defaults of Spark 4.3's `OptimizeSkewedJoin`, `ShufflePartitionsUtil` and `CoalesceShufflePartitions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from spark_regions.skew.operators import JOINS, Input, Operator
from spark_regions.skew.stage import Costs, Shuffle, Stage

SPLITS: dict[Operator, tuple[Input, ...]] = {
    Operator.INNER_JOIN: (Input.LEFT, Input.RIGHT),
    Operator.LEFT_JOIN: (Input.LEFT,),
    Operator.SEMI_JOIN: (Input.LEFT,),
    Operator.ANTI_JOIN: (Input.LEFT,),
    Operator.RIGHT_JOIN: (Input.RIGHT,),
}
"""Inputs that it splits; never of a full outer join."""


@dataclass(frozen=True, slots=True)
class AdaptiveConf:
    """spark.sql.adaptive.*: advisoryPartitionSizeInBytes, coalescePartitions.minPartitionSize,
    coalescePartitions.parallelismFirst, skewJoin.skewedPartitionFactor, skewJoin.skewedPartitionThresholdInBytes.
    """

    advisory_bytes: int = 64 << 20
    min_bytes: int = 1 << 20
    parallelism_first: bool = True
    skew_factor: float = 5.0
    skew_bytes: int = 256 << 20


def adaptive_tasks(stage: Stage, costs: Costs, conf: AdaptiveConf | None = None) -> tuple[float, ...]:
    """Seconds of the tasks, in the order of start."""
    conf = conf or AdaptiveConf()
    cuts = _skew_cuts(stage, conf)
    sizes = [stage.left.bytes[n] + (stage.right.bytes[n] if stage.right else 0) for n in range(len(stage.seconds))]
    target = _coalescing_target(sum(sizes), stage.cores, conf)
    tasks: list[float] = []
    sorted_data: list[float] = []
    size = seconds = data = 0.0

    def close() -> None:
        nonlocal size, seconds, data
        if size:
            tasks.append(seconds + costs.task_seconds)
            sorted_data.append(data)
        size = seconds = data = 0.0

    for number, each in enumerate(sizes):
        if number in cuts:
            close()
            slices = _slices(stage, number, cuts[number], costs)
            tasks.extend(slices)
            sorted_data.extend(stage.data(number) / len(slices) for _ in slices)
            continue
        if stage.layout_fixed or size + each > target:
            close()
        size += each
        seconds += stage.seconds[number]
        data += stage.data(number)
    close()
    return stage.with_spills(tasks, sorted_data, costs)


def splits_anything(stage: Stage, conf: AdaptiveConf | None = None) -> bool:
    return bool(_skew_cuts(stage, conf or AdaptiveConf()))


def _coalescing_target(total: float, cores: int, conf: AdaptiveConf) -> float:
    parallel = -(-total // cores) if conf.parallelism_first else total
    return max(conf.min_bytes, min(parallel, conf.advisory_bytes))


def _skew_cuts(stage: Stage, conf: AdaptiveConf) -> dict[int, dict[Input, tuple[float, ...]]]:
    """Of each skewed partition, the parts into which each input is cut."""
    if stage.operator not in JOINS or stage.reshuffle_bytes:
        return {}  # One further shuffle, and it drops all splits of the query.
    found: dict[int, dict[Input, tuple[float, ...]]] = {}
    for side in SPLITS.get(stage.operator, ()):
        shuffle = stage.input(side)
        assert shuffle is not None
        middle = median(shuffle.bytes) if shuffle.bytes else 0
        threshold = max(conf.skew_bytes, middle * conf.skew_factor)
        plain = [size for size in shuffle.bytes if size <= threshold]
        target = max(conf.advisory_bytes, sum(plain) / len(plain) if plain else 0)
        for number, size in enumerate(shuffle.bytes):
            parts = _parts(shuffle, number, target) if size > threshold else (1.0,)
            if len(parts) > 1:
                found.setdefault(number, {})[side] = parts
    return found


def _parts(shuffle: Shuffle, number: int, target: float) -> tuple[float, ...]:
    """Runs of map outputs up to the target; a block of one map task stays whole."""
    blocks: Sequence[float] = shuffle.blocks.get(number) or (shuffle.bytes[number] / shuffle.maps,) * shuffle.maps
    runs: list[float] = []
    open_run = 0.0
    for block in blocks:
        if open_run and open_run + block > target:
            runs.append(open_run)
            open_run = 0.0
        open_run += block
    runs.append(open_run)
    if len(runs) > 1 and runs[-1] < 0.2 * target:
        runs[-2:] = [runs[-2] + runs[-1]]
    total = sum(runs)
    return tuple(run / total for run in runs)


def _slices(stage: Stage, number: int, cuts: dict[Input, tuple[float, ...]], costs: Costs) -> list[float]:
    """Every part of one input meets every part of the other; an uncut input is read by each slice."""
    lefts, rights = cuts.get(Input.LEFT, (1.0,)), cuts.get(Input.RIGHT, (1.0,))
    again = 0.0
    for side, parts in ((Input.LEFT, rights), (Input.RIGHT, lefts)):
        shuffle = stage.input(side)
        if shuffle and len(parts) > 1 and len(cuts.get(side, (1.0,))) == 1:
            again += shuffle.bytes[number] * costs.read_seconds_per_byte
    seconds = stage.seconds[number]
    return [seconds * left * right + again + costs.task_seconds for left in lefts for right in rights]
