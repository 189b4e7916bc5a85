"""Seconds that the plugin adds to the optimized plan of each TPC-DS query; nothing is executed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.measure import alternated, benchmark_main, percentile, timed
from benchmarks.session import register, sibling, spark_session
from examples import data

SCALE = 0.01  # planning does not read rows: the smallest data do


def run(scale: float, rounds: int) -> dict[str, Any]:
    queries = data.tpcds_queries()
    off: dict[int, list[float]] = {number: [] for number in queries}
    on: dict[int, list[float]] = {number: [] for number in queries}
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        with spark_session(Path(folder) / "recycle") as spark:
            plain = sibling(spark, {"spark.regions.recycle.strategy": "off", "spark.regions.mode": "observe"})
            sessions = ((plain, off), (sibling(spark, {}), on))
            for session, _ in sessions:
                register(session, data.tpcds(SCALE))
                for text in queries.values():
                    seconds_to_plan(session, text)
            for round_number in range(rounds):
                for number, text in queries.items():
                    for session, seconds in alternated(sessions, round_number + number):
                        seconds[number].append(seconds_to_plan(session, text))
    added = {n: median(a - b for a, b in zip(on[n], off[n], strict=True)) for n in queries}
    plain_seconds = [median(values) for values in off.values()]
    return {
        "milliseconds_added": {
            "p50": 1000 * percentile([*added.values()], 0.5),
            "p99": 1000 * percentile([*added.values()], 0.99),
        },
        "milliseconds_off": {
            "p50": 1000 * percentile(plain_seconds, 0.5),
            "p99": 1000 * percentile(plain_seconds, 0.99),
        },
        "queries": {n: {"seconds_off": median(off[n]), "seconds_added": added[n]} for n in queries},
    }


def seconds_to_plan(session: SparkSession, text: str) -> float:
    execution = session.sql(text)._jdf.queryExecution()
    return timed(execution.optimizedPlan)


if __name__ == "__main__":
    benchmark_main("planning", run, default_rounds=3)
