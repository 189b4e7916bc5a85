"""TPC queries with the plugin off and on in one JVM: off, on with an empty store, on again with the store kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from examples import data
from tests.harness.session import Counters, counters, register, sibling
from tests.tpc.rows import Outcome, difference, outcome

CONFS = {"spark.sql.planChangeValidation": "true", "spark.sql.shuffle.partitions": "2"}
OFF = {"spark.regions.recycle.strategy": "off", "spark.regions.persist.enabled": "false"}
ON = {"spark.regions.recycle.strategy": "always"}


@dataclass(frozen=True)
class Suite:
    queries: Callable[[], dict[int, str]]
    folder: Callable[[float], Path]


SUITES = {"tpch": Suite(data.tpch_queries, data.tpch), "tpcds": Suite(data.tpcds_queries, data.tpcds)}


@dataclass(frozen=True)
class Comparison:
    """One query: what the two runs with the plugin did, and how their results differ from plain Spark's.

    :param unstable: two plain runs differ as well, so that there is nothing to compare with
    """

    query: int
    rows: int
    error: str | None
    cold: Counters
    warm: Counters
    difference_cold: str | None
    difference_warm: str | None
    unstable: bool
    seconds_off: float
    seconds_cold: float
    seconds_warm: float

    @property
    def verdict(self) -> str:
        if self.difference_cold or self.difference_warm:
            return "unstable" if self.unstable else "DIFFERS"
        done = (self.cold.stores, self.cold.loads, self.warm.stores, self.warm.loads)
        return "identical" if any(done) else "vacuous"


def compare_suite(
    name: str,
    scale: float,
    application: SparkSession,
    only: Iterable[int] = (),
    plugin: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> list[Comparison]:
    """Compare in sessions of their own inside a running application; without `plugin` all of them are plain."""
    suite = SUITES[name]
    folder = suite.folder(scale)
    wanted = set(only)
    queries = {number: text for number, text in suite.queries().items() if not wanted or number in wanted}
    on_confs = CONFS | (ON if plugin else {})
    spark = sibling(application, CONFS | (OFF if plugin else {}))
    register(spark, folder)
    on = sibling(spark, on_confs)
    register(on, folder)
    off_runs, cold_runs = {}, {}
    for number, text in queries.items():
        off_runs[number] = _timed(spark, text)
        cold_runs[number] = _counted(spark, on, text, plugin)
        report(f"{number}: off {off_runs[number][1]:.2f} s, cold {cold_runs[number][1]:.2f} s")
    warm = sibling(spark, on_confs)
    register(warm, folder)
    comparisons = []
    for number, text in queries.items():
        expected, seconds_off = off_runs[number]
        found_cold, seconds_cold, done_cold = cold_runs[number]
        found_warm, seconds_warm, done_warm = _counted(spark, warm, text, plugin)
        reasons = difference(expected, found_cold), difference(expected, found_warm)
        comparison = Comparison(
            number,
            len(expected.rows),
            expected.error,
            done_cold,
            done_warm,
            *reasons,
            any(reasons) and difference(expected, outcome(spark.sql(text))) is not None,
            seconds_off,
            seconds_cold,
            seconds_warm,
        )
        report(f"{number}: {comparison.verdict} {comparison.difference_cold or ''} {comparison.difference_warm or ''}")
        comparisons.append(comparison)
    return comparisons


def _timed(spark: SparkSession, text: str) -> tuple[Outcome, float]:
    start = time.perf_counter()
    found = outcome(spark.sql(text))
    return found, time.perf_counter() - start


def _counted(spark: SparkSession, on: SparkSession, text: str, plugin: bool) -> tuple[Outcome, float, Counters]:
    before = counters(spark) if plugin else Counters(0, 0)
    found, seconds = _timed(on, text)
    after = counters(spark) if plugin else Counters(0, 0)
    return found, seconds, after - before
