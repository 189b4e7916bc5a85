"""A job's first run with reuse inside the session, against the same job with its base materialized by hand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import benchmark_main
from examples import data
from examples.demo import JOB, LAPTOP, ROOT, plugin_confs, submit

HAND_JOB = ROOT / "benchmarks" / "hand_job.py"
KINDS = ("memory_and_disk", "disk_only", "write_and_read")


def run(scale: float, rounds: int) -> dict[str, Any]:
    tables = str(data.tpch(scale))
    hand = LAPTOP | {"spark.submit.pyFiles": str(JOB)}
    seconds: dict[str, list[float]] = {name: [] for name in ("spark_regions", *KINDS)}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
            for name in seconds if number % 2 == 0 else reversed(list(seconds)):
                output = f"{folder}/{name}"
                if name == "spark_regions":
                    job = submit(JOB, [tables, output], LAPTOP | plugin_confs(Path(folder) / "recycle"))
                else:
                    job = submit(HAND_JOB, [tables, output, name], hand)
                seconds[name].append(job.seconds)
    best = min(KINDS, key=lambda kind: median(seconds[kind]))
    pairs = zip(seconds["spark_regions"], seconds[best], strict=True)
    return {
        "first_run_over_best_hand": median(ours / theirs for ours, theirs in pairs),
        "best_hand": best,
        "seconds": {name: median(values) for name, values in seconds.items()},
        "seconds_all": seconds,
    }


if __name__ == "__main__":
    benchmark_main("first_run", run, default_rounds=2)
