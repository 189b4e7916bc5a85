"""Queries of a standalone cluster, paused on two executors; one of them is killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spark_regions import RunningJob, control
from tests.cluster.test_standalone import CONFS
from tests.harness.control import CONTROLLED, changed_midway, executors, facts, held_at_start
from tests.harness.daemons import standalone_cluster
from tests.harness.session import spark_session
from tests.platforms.test_engine import until
from tests.spark.control_cases import ALL, filtered, paused_and_resumed
from tests.spark.test_platforms import apart

pytestmark = pytest.mark.spark


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
