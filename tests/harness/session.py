"""Spark sessions with plain Spark and with spark_regions side by side in one JVM, and what the plugin counted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from examples.data import tables
from examples.demo import plugin_confs

BASE = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # What a suite reads it has often just written; the rule for young files has tests of its own.
    "spark.regions.sources.racySeconds": "0",
}


ENGINE = {
    "spark.regions.platforms": "duckdb",
    "spark.regions.recycle.enabled": "false",
    "spark.regions.persist.enabled": "false",
    "spark.regions.sharing.enabled": "false",
}
"""Another engine wherever it can be, and nothing else of ours: a stored result would be read in its place."""


@dataclass(frozen=True)
class Counters:
    """Running totals of a session's application: entries committed, entries read."""

    stores: int
    loads: int

    def __sub__(self, before: Counters) -> Counters:
        return Counters(self.stores - before.stores, self.loads - before.loads)


@contextmanager
def spark_session(recycle_dir: Path | None, confs: Mapping[str, str] = {}) -> Iterator[SparkSession]:
    """A classic session of its own JVM, with spark_regions if there is a `recycle_dir`; stopped at the end."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    builder = SparkSession.builder.appName("spark_regions suite")
    for key, value in (BASE | (plugin_confs(recycle_dir) if recycle_dir else {}) | dict(confs)).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    try:
        yield spark
    finally:
        spark.stop()


def sibling(spark: SparkSession, confs: Mapping[str, str]) -> SparkSession:
    """A session of the same application with confs of its own."""
    session = spark.newSession()
    for key, value in confs.items():
        session.conf.set(key, value)
    return session


def register(spark: SparkSession, folder: Path) -> None:
    """A temporary view for every table of a folder, replacing earlier ones."""
    for name, file in tables(folder).items():
        spark.read.parquet(str(file)).createOrReplaceTempView(name)


def status(spark: SparkSession) -> dict[str, str]:
    """What `spark_regions_status()` says."""
    return dict(map(tuple, spark.sql("SELECT * FROM spark_regions_status()").collect()))


def decisions(spark: SparkSession) -> list[dict[str, object]]:
    """What `spark_regions_decisions()` says."""
    return [row.asDict() for row in spark.sql("SELECT * FROM spark_regions_decisions()").collect()]


class NewDecisions:
    """What was decided since this was made; the application keeps the last 1,000 decisions, so that a count of all of
    them may stay the same."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._before = max((int(str(row["query"])) for row in decisions(spark)), default=-1)

    def __call__(self) -> list[dict[str, object]]:
        return [row for row in decisions(self._spark) if int(str(row["query"])) > self._before]


class Fallbacks:
    """Why queries that were decided since this was made fell back."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._new = spark, NewDecisions(spark)

    def __call__(self) -> list[object]:
        settle(self._spark)
        return [each["code"] for each in self._new() if each["kind"] == "fallback"]


def settle(spark: SparkSession) -> None:
    """Wait until every listener has seen what happened so far: stores are counted there."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


def settle_writes(spark: SparkSession) -> None:
    """Wait until what was written is registered or given up, which a thread of its own does."""
    settle(spark)
    runtime = spark.sparkContext._jvm.org.apache.spark.sql.regions.RegionsRuntime.current().get()  # type: ignore[union-attr]
    assert runtime.recycling().written().settle(20_000)


def routes(spark: SparkSession) -> int:
    """How many parts of queries another engine was given so far."""
    settle(spark)
    return int(status(spark)["counter.routes"])


def counters(spark: SparkSession) -> Counters:
    settle(spark)
    found = status(spark)
    return Counters(int(found["counter.commits"]), int(found["counter.loads"]))


def committed(spark: SparkSession) -> Counters:
    """The counters when every finished query's stores are committed or given up, which a thread of its own does."""
    jvm: Any = spark.sparkContext._jvm
    assert jvm.org.apache.spark.sql.regions.exec.Stores.awaitCommits(20_000)
    return counters(spark)
