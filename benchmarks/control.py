"""Control of running queries, on this machine's cores and on a standalone cluster of two workers.

- *pauses* (Amber, figs. 11 and 12): how long it takes until every running task stands, and until none does after
  `resume`, in ten kinds of work and in Q1 and Q13 of TPC-H. Each round is one pause of each, at another time of its
  query, which is run again until it has been paused so often; before its first task is no pause.
- *breakpoints* (fig. 14): Q1 stops at 100/119 of the rows of its filter, and of the sum of their quantities, by how
  long tasks wait for each other (`spark.regions.control.countWait`).
- *losses* (§7.8): two executors of the cluster are killed, one while all stands after a `set`.

python -m benchmarks.control [--scale 1] [--rounds 8] [--only pauses breakpoints losses]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Options, benchmark_main, percentile, timed
from examples import data
from spark_regions import RunningJob, control
from tests.cluster.test_standalone import CONFS
from tests.harness.control import CONTROLLED, changed_midway, facts, held_at_start, kinds
from tests.harness.daemons import standalone_cluster
from tests.harness.session import spark_session
from tests.platforms.test_engine import until

PARTS = ("pauses", "breakpoints", "losses")
PLACES = ("local", "cluster")
TPCH = (1, 13)
BETWEEN_SECONDS, UNTIL_TASKS_SECONDS = 0.15, 0.02
MOST_RUNS = 60
LONG_SECONDS = 600.0
WAITS = ("0ms", "5ms", "100ms", "1s", "5s")
COUNTED, OF = 100, 119
LOST_IDS, LOST_SECONDS = 4_000_000, 2.0
"""A query of about a minute."""


@contextmanager
def session(place: str, folder: Path, confs: Mapping[str, str] = {}) -> Iterator[SparkSession]:
    """A session under control, on this machine's cores or on a cluster of its own."""
    folder.mkdir()
    if place == "local":
        with spark_session(folder / "store", CONTROLLED | dict(confs)) as spark:
            yield spark
    else:
        cluster = CONFS | CONTROLLED | dict(confs)
        with (
            standalone_cluster(folder) as master,
            spark_session(folder / "store", cluster | {"spark.master": master}) as spark,
        ):
            yield spark


def registered(spark: SparkSession, options: Options) -> None:
    for name, file in data.tables(data.tpch(options.scale, options.data)).items():
        spark.read.parquet(str(file)).createOrReplaceTempView(name)


def pauses(options: Options, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    differing = []
    for place in PLACES:
        with session(place, folder / place) as spark:
            registered(spark, options)
            facts(spark, folder / place)
            queries = {f"Q{number}": partial(spark.sql, data.tpch_queries()[number]) for number in TPCH}
            each = {}
            for name, make in (kinds(spark, folder / place) | queries).items():
                each[name], same = measured(spark, make, options.rounds)
                differing += [] if same else [f"{place}: {name}"]
                print(place, name, shares(each[name]), file=sys.stderr, flush=True)
            found[place] = shares([pair for pairs in each.values() for pair in pairs])
            found[f"{place}_by_kind"] = {name: shares(pairs) for name, pairs in each.items()}
    return {"milliseconds": {place: found[place]["pause"] for place in PLACES}, "pauses": found, "differing": differing}


def shares(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """In milliseconds, of the pauses and of the resumes; of none where no pause met a task."""
    if not pairs:
        return {"pauses": 0}
    both = zip(("pause", "resume"), zip(*pairs, strict=True), strict=True)
    return {
        name: {f"p{share}": round(1e3 * percentile(seconds, share / 100), 1) for share in (50, 99)}
        for name, seconds in both
    } | {"pauses": len(pairs)}


def measured(spark: SparkSession, make: Callable[[], DataFrame], rounds: int) -> tuple[list[tuple[float, float]], bool]:
    """Seconds of each pause and resume, and whether all runs gave the rows of the first one, which is not paused."""

    def rows() -> list[tuple[Any, ...]]:
        spark.catalog.clearCache()
        return sorted(map(tuple, make().collect()))

    expected, job, same = rows(), control(spark), True
    found: list[tuple[float, float]] = []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(MOST_RUNS):
            running = pool.submit(rows)
            while not running.done() and len(found) < rounds:
                pairs = paused(job)
                found += pairs
                # Of a short query a long sleep would miss all tasks.
                time.sleep(BETWEEN_SECONDS if pairs else UNTIL_TASKS_SECONDS)
            same &= running.result() == expected
            if len(found) >= rounds:
                break
    return found, same


def paused(job: RunningJob) -> list[tuple[float, float]]:
    """Seconds until all tasks stand and until none does; none if no task did."""
    try:
        start = time.perf_counter()
        standing = job.pause(60).standing
        until_all = time.perf_counter() - start
    finally:
        start = time.perf_counter()
        job.resume()
    until(lambda: not any(task.stands for each in job.operators() for task in each.tasks), 60)
    return [(until_all, time.perf_counter() - start)] if standing else []


def breakpoints(options: Options, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    differing = []
    for wait in WAITS:
        with session("local", folder / wait, {"spark.regions.control.countWait": wait}) as spark:
            registered(spark, options)
            query = partial(spark.sql, data.tpch_queries()[1])
            expected = sorted(map(tuple, query().collect()))
            undisturbed = timed(lambda: query().collect())  # noqa: B023
            total = sum(row["count_order"] for row in query().collect())
            quantity = sum(row["sum_qty"] for row in query().collect())
            job, each = control(spark), {}
            rows, sums = total * COUNTED // OF, int(quantity * COUNTED / OF)
            for name, condition in ("count", f"count(*) = {rows}"), ("sum", f"sum(l_quantity) >= {sums}"):
                each[name], same = stopped(job, query, condition, expected)
                differing += [] if same else [f"{name}, {wait}"]
            each["count"]["overshoot"] = each["count"].pop("rows") - rows
            each["sum"]["overshoot"] = float(each["sum"].pop("note").rpartition(" ")[2]) - sums
            found[wait] = {
                name: {"seconds": one["seconds"], "whole": one["whole"], "overshoot": one["overshoot"]}
                for name, one in each.items()
            } | {"undisturbed": undisturbed}
            print(wait, json.dumps(found[wait]), file=sys.stderr, flush=True)
    most = {name: max(each[name]["overshoot"] for each in found.values()) for name in ("count", "sum")}
    return {"overshoot": most, "breakpoints_by_wait": found, "differing": differing}


def stopped(
    job: RunningJob, query: Callable[[], DataFrame], condition: str, expected: object
) -> tuple[dict[str, Any], bool]:
    """Q1, held before its first row until it has a breakpoint at its filter: seconds to it, and with what follows."""
    with ThreadPoolExecutor(1) as pool:
        running = held_at_start(job, pool, query, "Filter")
        job.break_when("Filter", condition)
        start = time.perf_counter()
        job.resume()
        until(lambda: job.paused, LONG_SECONDS)
        seconds = time.perf_counter() - start
        (kept,) = [each for each in job.operators() if each.name == "Filter"]
        note = job.state["note"]
        start = time.perf_counter()
        job.resume()
        same = running.result() == expected
        whole = seconds + time.perf_counter() - start
    return {"seconds": round(seconds, 3), "whole": round(whole, 3), "rows": kept.rows, "note": note}, same


def losses(options: Options, folder: Path) -> dict[str, Any]:
    """Its rows are compared with what the recorded changes make of the input, in every run."""
    coalesced = {"spark.sql.adaptive.coalescePartitions.enabled": "false"}
    with session("cluster", folder / "losses", coalesced) as spark:
        job = control(spark)
        changed_midway(spark, job, lost=False)
        pairs = [
            [changed_midway(spark, job, lost, LOST_IDS, LOST_SECONDS, LONG_SECONDS) for lost in (False, True)]
            for _ in range(max(1, options.rounds // 8))
        ]
    return {
        "losses_over_none": max(round(lost / kept, 3) for kept, lost in pairs),
        "losses_seconds": [[round(each, 1) for each in pair] for pair in pairs],
        "differing": [],
    }


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    given, others = parser.parse_known_args()

    def run(options: Options) -> dict[str, Any]:
        found: dict[str, Any] = {"differing": []}
        parts = {"pauses": pauses, "breakpoints": breakpoints, "losses": losses}
        for name in given.only:
            with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
                told = parts[name](options, Path(folder))
            found |= told | {"differing": found["differing"] + told["differing"]}
            print(json.dumps(told), file=sys.stderr, flush=True)
        return found

    benchmark_main("control", run, default_rounds=8, arguments=others)


if __name__ == "__main__":
    main()
