"""The 22 TPC-H queries when there is nothing to reuse: plugin on against off, query by query in one warm JVM.

Between rounds the input files get a new modification time, so that no lineage of an earlier round can be met again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import alternated, benchmark_main, timed
from benchmarks.session import counters, register, sibling, spark_session
from examples import data


def run(scale: float, rounds: int) -> dict[str, Any]:
    queries = data.tpch_queries()
    off: dict[int, list[float]] = {number: [] for number in queries}
    on: dict[int, list[float]] = {number: [] for number in queries}
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        tables = Path(folder) / "tables"
        shutil.copytree(data.tpch(scale), tables)
        with spark_session(Path(folder) / "recycle") as spark:
            plain = sibling(spark, {"spark.regions.recycle.strategy": "off", "spark.regions.mode": "observe"})
            sessions = ((plain, off), (sibling(spark, {}), on))
            register(plain, tables)
            for text in queries.values():
                plain.sql(text).collect()
            before = counters(spark)
            for round_number in range(rounds):
                for file in tables.iterdir():
                    os.utime(file)
                for session, _ in sessions:
                    register(session, tables)
                for number, text in queries.items():
                    for session, seconds in alternated(sessions, round_number + number):
                        seconds[number].append(timed(lambda: session.sql(text).collect()))  # noqa: B023
            done = counters(spark) - before
    ratios = {number: median(a / b for a, b in zip(on[number], off[number], strict=True)) for number in queries}
    medians = {number: (median(off[number]), median(on[number])) for number in queries}
    beyond = [number for number, (plain_s, ours_s) in medians.items() if ours_s > 1.05 * plain_s + 0.05]
    return {
        "overall_ratio": sum(ours for _, ours in medians.values()) / sum(theirs for theirs, _ in medians.values()),
        "queries_beyond_1.05_plus_50_ms": beyond,
        "stores": done.stores,
        "loads": done.loads,
        "queries": {
            n: {"seconds_off": medians[n][0], "seconds_on": medians[n][1], "ratio": ratios[n]} for n in queries
        },
    }


if __name__ == "__main__":
    benchmark_main("cold_overhead", run, default_rounds=3)
