"""How long a pause takes until every running task stands, and that rows stay: TPC-H Q1 and Q13 and ten kinds of work,
in one process and on a standalone cluster of two workers (Amber, figs. 11 and 12); and how far beyond its target a
COUNT over the rows of Q1's filter stands (fig. 14).

python -m benchmarks.control [--scale 1] [--rounds 8]

Each round is one pause of each kind, at another time of its query; the query is run again until it has been paused so
often. A pause before any of its tasks runs does not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Options, benchmark_main, percentile, timed
from examples import data
from spark_regions import RunningJob, control
from tests.cluster.test_standalone import CONFS
from tests.harness.control import CONTROLLED, facts, kinds
from tests.harness.daemons import standalone_cluster
from tests.harness.session import spark_session
from tests.platforms.test_engine import until
from tests.spark.control_cases import held_at_start

BETWEEN_SECONDS = 0.15
MOST_RUNS = 20
PAUSED_QUERIES = (1, 13)
COUNTED = 100, 119
"""Of so many rows of the filter, so many are counted."""
COUNTS = 5


def run(options: Options) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        found = {"local": at(folder / "local", {}, options)}
        with standalone_cluster(folder) as master:
            found["standalone"] = at(folder / "standalone", CONFS | {"spark.master": master}, options)
    differing = [f"{place}: {kind}" for place, each in found.items() for kind in each.pop("differing")]
    return found | {"differing": differing}


def at(folder: Path, confs: Mapping[str, str], options: Options) -> dict[str, Any]:
    milliseconds: dict[str, dict[str, float]] = {}
    everything: list[float] = []
    differing = []
    with spark_session(folder / "store", CONTROLLED | confs) as spark:
        for table, file in data.tables(data.tpch(options.scale, options.data)).items():
            spark.read.parquet(str(file)).createOrReplaceTempView(table)
        facts(spark, folder)
        texts = {f"Q{number}": data.tpch_queries()[number] for number in PAUSED_QUERIES}
        queries = {name: partial(spark.sql, text) for name, text in texts.items()}
        for kind, make in (queries | kinds(spark, folder)).items():
            pauses, same = measured(spark, make, options.rounds)
            milliseconds[kind] = shares(pauses)
            everything += pauses
            differing += [] if same else [kind]
        counts = counted(spark)
    return {
        "milliseconds": shares(everything),
        "milliseconds_by_kind": milliseconds,
        "count_over_q1": counts,
        "differing": differing,
    }


def counted(spark: SparkSession) -> dict[str, Any]:
    """A breakpoint at a COUNT of the rows that pass Q1's filter, in runs of the query, which then go on."""
    kept = spark.table("lineitem").where("l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY")
    target = kept.count() * COUNTED[0] // COUNTED[1]
    make, job, beyond, seconds = partial(spark.sql, data.tpch_queries()[1]), control(spark), [], []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(COUNTS):
            running = held_at_start(job, pool, make, "Filter")
            number = job.break_when("Filter", f"count(*) = {target}")
            start = time.perf_counter()
            job.resume()
            until(lambda: job.paused, 600)
            seconds.append(round(time.perf_counter() - start, 2))
            (found,) = [each for each in job.operators() if each.name == "Filter" and each.tasks]
            beyond.append(found.rows - target)
            job.clear(number)
            job.resume()
            running.result()
        unbroken = [round(timed(make().collect), 2) for _ in range(COUNTS)]
    return {"target": target, "beyond": beyond, "seconds_until_it_stands": seconds, "seconds_of_whole_query": unbroken}


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
