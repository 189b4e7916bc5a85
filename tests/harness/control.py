"""Kinds of work in which a pause has to be quick, and queries that are commanded while they run."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_regions import RunningJob, param
from tests.platforms.test_engine import until

CONTROLLED = {
    "spark.regions.control.enabled": "true",
    "spark.regions.platforms": "off",
    "spark.regions.recycle.strategy": "off",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Where ours does not compile, Spark would go on without any generated code.
    "spark.sql.codegen.fallback": "false",
}
ROWS = 400_000
MAPS, KEYS = 4, 100


def slowly(value: int) -> int:
    time.sleep(0.0005)
    return value + 1


def grouped(frame: Any) -> Any:
    time.sleep(0.02)
    return frame.assign(id=frame["id"] + 1)


def kinds(spark: SparkSession, folder: Path) -> dict[str, Callable[[], DataFrame]]:
    """The ten kinds of work in which a pause has to be quick."""
    facts = spark.read.parquet(str(folder / "facts"))
    small = facts.where("id % 100 = 0")

    def cached() -> DataFrame:
        held = facts.selectExpr("id", "sha2(string(id), 256) AS text").cache()
        return held.groupBy(F.substring("text", 1, 1).alias("k")).count()

    def written() -> DataFrame:
        facts.selectExpr("*", "sha2(string(id), 256) AS text").write.mode("overwrite").parquet(str(folder / "out"))
        return spark.read.parquet(str(folder / "out")).selectExpr("count(*)", "sum(id)")

    return {
        "scan": lambda: facts.where("sha2(string(id), 512) LIKE 'a%'").groupBy("k").agg(F.sum("id")),
        "hash_build": lambda: facts.hint("shuffle_hash").join(small.select("id"), "id").selectExpr("sum(k)"),
        "sort": lambda: (
            facts.selectExpr("id", "sha2(string(id), 256) AS t").orderBy("t").limit(ROWS).selectExpr("count(t)")
        ),
        "window": lambda: facts.selectExpr("sum(id) OVER (PARTITION BY k % 2 ORDER BY id) AS s").selectExpr(
            "sum(s % 97)"
        ),
        "shuffle": lambda: facts.repartition(7, "id").selectExpr("sum(id)"),
        "python": lambda: small.repartition(2).select(F.udf(slowly, "long")("id").alias("v")).selectExpr("sum(v)"),
        "grouped": lambda: small.groupBy("k").applyInPandas(grouped, facts.schema).selectExpr("sum(id)"),
        "exploding": lambda: small.select("id", F.explode(F.sequence(F.lit(0), F.lit(2000)))).selectExpr("sum(id % 7)"),
        "caching": cached,
        "writing": written,
    }


def facts(spark: SparkSession, folder: Path) -> None:
    spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 20 AS k").write.parquet(str(folder / "facts"))


def started(pool: ThreadPoolExecutor, make: Callable[[], DataFrame]) -> Future[Any]:
    return pool.submit(lambda: sorted(map(tuple, make().collect())))


def held_at_start(job: RunningJob, pool: ThreadPoolExecutor, make: Callable[[], DataFrame], name: str) -> Future[Any]:
    """A query that stands before its first row."""
    job.pause()
    running = started(pool, make)
    until(lambda: any(each.name == name and each.tasks for each in job.operators()), 30)
    return running


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


def counted(spark: SparkSession, ids: int, seconds: float) -> DataFrame:
    """How many ids of each key pass, counted in a second stage that takes so long for each key."""

    def kept(key: int) -> int:
        time.sleep(seconds)
        return key

    rows = spark.range(0, ids, 1, MAPS).where(F.col("id") % 10 >= param("low", 9))
    found = rows.groupBy((F.col("id") % KEYS).alias("key")).count()
    return found.select(F.udf(kept, "long")("key"), "count")


def changed_midway(
    spark: SparkSession, job: RunningJob, lost: bool, ids: int = ROWS, seconds: float = 0.05, wait: float = 120
) -> float:
    """Executors are lost after a value was changed: while tasks compute with it, and once their rows are being read.

    Gives the seconds from the start to the rows, which are looked at.
    """

    def lose() -> None:
        before = set(executors(spark.sparkContext.applicationId))
        os.kill(min(before), signal.SIGKILL)
        until(lambda: set(executors(spark.sparkContext.applicationId)) - before, 120)

    counted(spark, ids, seconds)
    job.set("low", 9)
    known = len(job.changes)
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        running = held_at_start(job, pool, lambda: counted(spark, ids, seconds), "Range")
        job.break_when("Range", f"count(*) = {ids * 2 // 3}")
        job.resume()
        until(lambda: job.paused, 60)
        job.set("low", 5)
        job.break_when("Range", "count(*) = 1000")
        job.resume()
        until(lambda: job.paused, 60)
        if lost:
            lose()
        job.resume()
        until(lambda: running.done() or any(each.name == "ShuffleRead" and each.tasks for each in job.operators()), 60)
        job.pause(20)
        if lost:
            lose()
        job.resume()
        rows = running.result(timeout=wait)
    took = time.monotonic() - began
    changes = job.changes[known:]
    first: dict[int, dict[str, int]] = {}
    for each in changes:
        assert not each["reason"]
        first.setdefault(each["partition"], {}).setdefault(each["value"], each["row"])
    expected: Counter[int] = Counter()
    for partition in range(MAPS):
        changed_at = first.get(partition, {}).get("5", ids)
        for number in range(ids // MAPS):
            value = partition * (ids // MAPS) + number
            expected[value % KEYS] += value % 10 >= (9 if number + 1 < changed_at else 5)
    assert rows == sorted(item for item in expected.items() if item[1])
    assert lost == any(each["replayed"] for each in changes)
    return took
