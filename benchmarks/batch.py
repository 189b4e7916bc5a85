"""Eight writes given to `spark_regions.run`, against the same writes one by one on plain Spark; nothing is stored."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.turns import in_turn
from examples import data
from examples.demo import LAPTOP, ROOT, differing_reports, plugin_confs, submit

JOB = ROOT / "benchmarks" / "batch_job.py"
KINDS = ("run", "one_by_one")


def run(options: Options) -> dict[str, Any]:
    tables = str(data.tpch(options.scale, options.data))
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    differing: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        for number in range(options.rounds):
            for kind in in_turn(KINDS, number):
                # A store of its own in every round: no run knows of an earlier one.
                ours = plugin_confs(folder / f"recycle-{number}") | {"spark.regions.recycle.enabled": "false"}
                confs = LAPTOP | (ours if kind == "run" else {})
                job = submit(JOB, [tables, str(folder / f"{kind}-{number}"), kind], confs)
                seconds[kind].append(job.seconds_reports)
            differing |= set(differing_reports(folder / f"one_by_one-{number}", folder / f"run-{number}"))
    return {
        "run_over_one_by_one": paired_ratio(seconds["run"], seconds["one_by_one"]),
        "differing": sorted(differing),
        "seconds": {kind: median(values) for kind, values in seconds.items()},
        "seconds_all": seconds,
    }


if __name__ == "__main__":
    benchmark_main("batch", run, default_rounds=2)
