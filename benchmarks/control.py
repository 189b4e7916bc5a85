"""How long a pause takes until every running task stands, in ten kinds of work, and that rows stay.

python -m benchmarks.control [--rounds 8]

Each round is one pause of each kind, at another time of its query; the query is run again until it has been paused so
often. A pause before any of its tasks runs does not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Options, benchmark_main, percentile
from spark_regions import RunningJob, control
from tests.harness.control import CONTROLLED, facts, kinds
from tests.harness.session import spark_session

BETWEEN_SECONDS = 0.15
MOST_RUNS = 20


def run(options: Options) -> dict[str, Any]:
    milliseconds: dict[str, dict[str, float]] = {}
    everything: list[float] = []
    differing = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        with spark_session(folder / "store", CONTROLLED) as spark:
            facts(spark, folder)
            for kind, make in kinds(spark, folder).items():
                pauses, same = measured(spark, make, options.rounds)
                milliseconds[kind] = shares(pauses)
                everything += pauses
                differing += [] if same else [kind]
    return {"milliseconds": shares(everything), "milliseconds_by_kind": milliseconds, "differing": differing}


def shares(pauses: list[float]) -> dict[str, float]:
    return {f"p{share}": round(percentile(pauses, share / 100), 1) for share in (50, 99)} | {"pauses": len(pauses)}


def measured(spark: SparkSession, make: Callable[[], DataFrame], rounds: int) -> tuple[list[float], bool]:
    """Milliseconds of each pause, and whether all runs gave the rows of the first one, which is not paused."""

    def rows() -> list[tuple[Any, ...]]:
        spark.catalog.clearCache()
        return sorted(map(tuple, make().collect()))

    expected, job, pauses, same = rows(), control(spark), [], True
    with ThreadPoolExecutor(1) as pool:
        for _ in range(MOST_RUNS):
            running = pool.submit(rows)
            while not running.done() and len(pauses) < rounds:
                pauses += paused(job)
                time.sleep(BETWEEN_SECONDS)
            same &= running.result() == expected
            if len(pauses) >= rounds:
                break
    return pauses, same


def paused(job: RunningJob) -> list[float]:
    try:
        start = time.perf_counter()
        found = job.pause(60)
        return [(time.perf_counter() - start) * 1e3] if found.standing else []
    finally:
        job.resume()


if __name__ == "__main__":
    benchmark_main("control", run, default_rounds=8)
