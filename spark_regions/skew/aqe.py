"""What Spark's adaptive execution does with a stage that it has not split: neighbours in one task.

The rules and defaults of Spark 4.3's `ShufflePartitionsUtil` and `CoalesceShufflePartitions`. A join that it splits
itself (`OptimizeSkewedJoin`) is no longer asked about.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_regions.skew.reduce_stage import Costs, Stage


@dataclass(frozen=True, slots=True)
class AdaptiveConf:
    """spark.sql.adaptive.*: advisoryPartitionSizeInBytes, coalescePartitions.minPartitionSize,
    coalescePartitions.parallelismFirst.
    """

    advisory_bytes: int = 64 << 20
    min_bytes: int = 1 << 20
    parallelism_first: bool = True


def adaptive_tasks(stage: Stage, costs: Costs, conf: AdaptiveConf) -> tuple[float, ...]:
    """Seconds of the tasks, in the order of start."""
    sizes, _ = stage.sizes
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
        if size + each > target:
            close()
        size += each
        seconds += stage.seconds[number]
        data += stage.data(number)
    close()
    return stage.with_spills(tasks, sorted_data, costs)


def _coalescing_target(total: float, cores: int, conf: AdaptiveConf) -> float:
    parallel = -(-total // cores) if conf.parallelism_first else total
    return max(conf.min_bytes, min(parallel, conf.advisory_bytes))
