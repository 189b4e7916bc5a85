"""Queries of a standalone cluster, paused on two executors; one of them is killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_regions import RunningJob, control, param
from tests.cluster.test_standalone import CONFS
from tests.harness.control import CONTROLLED, ROWS, facts
from tests.harness.daemons import standalone_cluster
from tests.harness.session import spark_session
from tests.platforms.test_engine import until
from tests.spark.control_cases import ALL, filtered, held_at_start, paused_and_resumed
from tests.spark.test_platforms import apart

pytestmark = pytest.mark.spark


def executors(application: str) -> list[int]:
    """Their processes."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if application in words and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            found.append(int(process.name))
    return found


def standing(job: RunningJob) -> set[str]:
    """Executors with a task that stands before a row."""
    return {task.executor for each in job.operators() for task in each.tasks if task.stands}


def on_two_executors(folder: str) -> None:
    confs = CONFS | CONTROLLED | {"spark.master": sys.argv[2]}
    with spark_session(Path(folder, "store"), confs) as spark, ThreadPoolExecutor(1) as pool:
        facts(spark, Path(folder))
        job = control(spark)
        for name in ("scan", "python"):
            paused_and_resumed(spark, Path(folder), name)
        running = held_at_start(job, pool, lambda: filtered(spark, Path(folder)), "Filter")
        until(lambda: len(standing(job)) == 2, 30)
        before = standing(job)
        job.break_when("Filter", "count(*) = 77777")
        job.resume()
        until(lambda: job.paused, 60)
        (kept,) = [each for each in job.operators() if each.name == "Filter"]
        assert kept.rows == 77_777 and standing(job) == before
        os.kill(executors(spark.sparkContext.applicationId)[0], signal.SIGKILL)
        until(lambda: standing(job) - before, 120)
        assert job.paused and not running.done()
        job.resume()
        assert running.result(timeout=120) == ALL
    print("same rows")


def test_pauses_of_two_executors(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        done = apart(on_two_executors, tmp_path, master)
    assert "same rows" in done.stdout, done.stderr[-4000:]


MAPS, KEYS = 4, 100


def slowly(value: int) -> int:
    time.sleep(0.05)
    return value


def counted(spark: SparkSession) -> DataFrame:
    """How many ids of each key pass, counted in a second stage that takes its time."""
    rows = spark.range(0, ROWS, 1, MAPS).where(F.col("id") % 10 >= param("low", 9))
    found = rows.groupBy((F.col("id") % KEYS).alias("key")).count()
    return found.select(F.udf(slowly, "long")("key"), "count")


def changed_midway(spark: SparkSession, job: RunningJob, lost: bool) -> float:
    """Executors are lost after a value was changed: while tasks compute with it, and once their rows are being read."""

    def lose() -> None:
        before = set(executors(spark.sparkContext.applicationId))
        os.kill(min(before), signal.SIGKILL)
        until(lambda: set(executors(spark.sparkContext.applicationId)) - before, 120)

    counted(spark)
    job.set("low", 9)
    known = len(job.changes)
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        running = held_at_start(job, pool, lambda: counted(spark), "Range")
        job.break_when("Range", f"count(*) = {ROWS * 2 // 3}")
        job.resume()
        until(lambda: job.paused, 60)
        job.set("low", 5)
        job.break_when("Range", "count(*) = 1000")
        job.resume()
        until(lambda: job.paused, 60)
        if lost:
            lose()
        job.resume()
        until(lambda: any(each.name == "ShuffleRead" and each.tasks for each in job.operators()), 60)
        job.pause(20)
        if lost:
            lose()
        job.resume()
        rows = running.result(timeout=120)
    seconds = time.monotonic() - began
    changes = job.changes[known:]
    first: dict[int, dict[str, int]] = {}
    for each in changes:
        assert not each["reason"]
        first.setdefault(each["partition"], {}).setdefault(each["value"], each["row"])
    expected: Counter[int] = Counter()
    for partition in range(MAPS):
        from_row = first.get(partition, {}).get("5", ROWS)
        for row in range(ROWS // MAPS):
            value = partition * (ROWS // MAPS) + row
            expected[value % KEYS] += value % 10 >= (9 if row + 1 < from_row else 5)
    assert rows == sorted(item for item in expected.items() if item[1])
    assert lost == any(each["replayed"] for each in changes)
    return seconds


def with_and_without_losses(folder: str) -> None:
    more = {"spark.master": sys.argv[2], "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    with spark_session(Path(folder, "store"), CONFS | CONTROLLED | more) as spark:
        job = control(spark)
        changed_midway(spark, job, lost=False)
        seconds = [changed_midway(spark, job, lost) for lost in (False, True)]
    print(f"same rows, in {seconds[0]:.1f} s, and in {seconds[1]:.1f} s with two executors lost")


def test_values_come_again_after_executors_are_lost(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        done = apart(with_and_without_losses, tmp_path, master)
    assert "same rows" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
