"""A job's first run from an empty store, against the same job with its base materialized by hand.

Every run is a spark-submit of its own; what is compared takes turns.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.turns import in_turn
from examples import data
from examples.demo import LAPTOP, ROOT, differing_reports, effects, plugin_confs, submit

JOB = ROOT / "benchmarks" / "lines_job.py"
BY_HAND = ("memory_and_disk", "disk_only", "write_and_read")


def run(options: Options) -> dict[str, Any]:
    tables = str(data.tpch(options.scale, options.data))
    names = ("spark_regions", *BY_HAND)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    reports: dict[str, list[float]] = {name: [] for name in names}
    differing: set[str] = set()
    did = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
            folder = Path(name)
            for kind in in_turn(names, number * len(names) // 2):
                ours = kind == "spark_regions"
                confs = LAPTOP | (plugin_confs(folder / "recycle") if ours else {})
                job = submit(JOB, [tables, str(folder / kind), "plain" if ours else kind], confs)
                seconds[kind].append(job.seconds)
                reports[kind].append(job.seconds_reports)
                if ours:
                    did.append(effects(folder / "recycle", job.log))
            for kind in names:
                differing |= {f"{kind}: {each}" for each in differing_reports(folder / BY_HAND[0], folder / kind)}
    best = min(BY_HAND, key=lambda kind: median(seconds[kind]))
    return {
        "first_run_over_best_hand": paired_ratio(seconds["spark_regions"], seconds[best]),
        "first_run_over_best_hand_reports_only": paired_ratio(reports["spark_regions"], reports[best]),
        "best_hand": best,
        "stores": [each.stored for each in did],
        "loads": [each.loaded for each in did],
        "differing": sorted(differing),
        "seconds": {name: median(values) for name, values in seconds.items()},
        "seconds_all": seconds,
        "seconds_reports_all": reports,
    }


if __name__ == "__main__":
    benchmark_main("first_run", run, default_rounds=2)
