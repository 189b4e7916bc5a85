"""A simulation: what skew decisions would come to on 48 and 480 workers. No Spark and no cluster, only arithmetic.

A stage of 960 partitions, 100 map tasks and 2,880 task-seconds, whose keys follow a distribution. It is decided on as
the shim asks, by the sizes of what is written; each task then takes some 10 % more or less than predicted. Of joins,
the left input is skewed; those that Spark's adaptive execution splits itself are left out.

python -m benchmarks.skew_simulation [--out benchmarks/results]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random
from typing import Any
from zlib import crc32

from benchmarks.measure import Options, benchmark_main
from spark_regions.skew.aqe import AdaptiveConf, adaptive_tasks
from spark_regions.skew.draft import StageQuestion
from spark_regions.skew.makespan import phases, total_makespan
from spark_regions.skew.operators import JOINS, Operator
from spark_regions.skew.packing import in_order
from spark_regions.skew.reduce_stage import Costs, Shuffle, Stage
from spark_regions.skew.spec import Kind
from spark_regions.skew.stage import plan_stage

WORKERS = (48, 480)
PARTITIONS, MAPS, KEYS = 960, 100, 20_000
TASK_SECONDS = 2_880.0
ROWS_PER_SECOND, ROW_BYTES = 500_000, 100
NOISE = 0.1
"""Standard deviation of the logarithm of a task's speed."""
OPERATORS = (
    Operator.RIGHT_JOIN,
    Operator.FULL_JOIN,
    Operator.PARTITION_WINDOW,
    Operator.REPARTITION,
    Operator.GROUP_APPLY,
)


def distributions() -> dict[str, list[float]]:
    """Shares of the keys."""
    found = {"uniform": [1.0] * KEYS}
    for exponent in (0.8, 1.2, 2.0):
        found[f"zipf {exponent}"] = [rank**-exponent for rank in range(1, KEYS + 1)]
    found["one key 60 %"] = [0.6 * (KEYS - 1) / 0.4, *[1.0] * (KEYS - 1)]
    return {name: [each / sum(values) for each in values] for name, values in found.items()}


def stage(operator: Operator, shares: list[float], cores: int) -> Stage:
    """As the decision sees it."""
    rows, others = [0] * PARTITIONS, [0] * PARTITIONS
    for number, share in enumerate(shares):
        partition = crc32(f"k{number:05}".encode()) % PARTITIONS
        rows[partition] += round(share * TASK_SECONDS * ROWS_PER_SECOND)
        others[partition] += 1
    left = Shuffle(tuple(count * ROW_BYTES for count in rows), tuple(rows), MAPS)
    right = Shuffle(tuple(count * ROW_BYTES for count in others), tuple(others), 8) if operator in JOINS else None
    seconds = tuple(count / ROWS_PER_SECOND for count in rows)
    return Stage(operator, seconds, left, cores, right, error_share=NOISE)


def simulated(seen: Stage, random: Random) -> dict[str, Any]:
    """Makespans under what was decided, and under adaptive execution alone."""
    costs, adaptive = Costs(), AdaptiveConf()
    spec = plan_stage(StageQuestion(seen, costs, adaptive))
    truth = replace(seen, seconds=tuple(each * random.lognormvariate(0.0, NOISE) for each in seen.seconds))
    aqe = ours = in_order(adaptive_tasks(truth, costs, adaptive), truth.cores).makespan
    if spec.kind is not Kind.NONE:
        ours = total_makespan(phases(truth, spec.splits, spec.tasks, costs), truth.cores)
    figures = {"bound": truth.balanced_bound, "aqe": aqe, "ours": ours, "ours_over_bound": ours / truth.balanced_bound}
    return {"reason": spec.reason, **{name: round(each, 2) for name, each in figures.items()}}


def run(options: Options) -> dict[str, Any]:
    found = {}
    for cores in WORKERS:
        for name, shares in distributions().items():
            for operator in OPERATORS:
                each = simulated(stage(operator, shares, cores), Random(f"{name} {operator} {cores}"))
                found[f"{operator.value}, {name}, {cores} workers"] = each
                print(operator.value, name, cores, each, file=sys.stderr, flush=True)
    cut = [each for name, each in found.items() if not name.startswith(Operator.GROUP_APPLY.value)]
    return {
        "largest_ours_over_bound": max(each["ours_over_bound"] for each in cut),
        "largest_ours_over_aqe": max(each["ours"] / each["aqe"] for each in found.values()),
        "stages": found,
    }


if __name__ == "__main__":
    benchmark_main("skew_simulation", run, default_rounds=1)
