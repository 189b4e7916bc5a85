"""Plans that the user cached: what is computed from them is known by their rows, while their files are as they were."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import NewDecisions, committed, settle, sibling
from tests.spark.test_same_rows import OFF, ON, VALIDATED

pytestmark = pytest.mark.spark


@pytest.fixture
def on(spark: SparkSession) -> Iterator[SparkSession]:
    session = sibling(spark, ON)
    yield session
    session.catalog.clearCache()


def write(spark: SparkSession, folder: Path, factor: int) -> None:
    rows = sibling(spark, OFF).range(0, 600, 1, 2)
    rows.selectExpr("id", "id % 7 AS k", f"id * {factor} AS v", "id / 3 AS x").write.parquet(str(folder))


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """A join, and so more than a source."""
    names = spark.range(7).selectExpr("id AS k", "concat('key ', id) AS name")
    return spark.read.parquet(str(folder)).join(names, "k")


def total(frame: DataFrame) -> list[Row]:
    return frame.where("v > 5").agg(F.sum("v"), F.count("*"), F.max("name")).collect()


def refused(frame: DataFrame) -> set[str]:
    """Why what is above the cached plan has no identity; nothing where it has one."""
    answers = spark_regions.why_not(frame).refused
    if not any(node.code == "CHILD_REFUSED" for node in answers):
        return set()
    return {node.code for node in answers if node.code and node.operator == "InMemoryRelation"}


def test_what_is_computed_from_it_is_stored_and_read(spark: SparkSession, on: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", 3)
    expected = total(read(sibling(spark, OFF), tmp_path / "t"))
    cached = read(on, tmp_path / "t").cache()
    start = committed(on)
    assert total(cached) == expected
    between = committed(on)
    assert between.stores > start.stores
    assert total(cached) == expected
    assert committed(on).loads > between.loads
    # Not cached, it is the same.
    cached.unpersist(blocking=True)
    between = committed(on)
    assert total(read(on, tmp_path / "t")) == expected
    assert committed(on).loads > between.loads


def test_what_is_computed_from_a_cached_plan_that_is_read_itself(
    spark: SparkSession, on: SparkSession, tmp_path: Path
) -> None:
    def grouped() -> DataFrame:
        return read(on, tmp_path / "t").groupBy("name").agg(F.sum("v").alias("v"))

    # Spark plans what is cached with settings of its own, and so in an order of its own.
    on.conf.set("spark.regions.recycle.rowOrder", "any")
    write(spark, tmp_path / "t", 3)
    expected = sorted(grouped().collect())
    loads = committed(on).loads
    cached = grouped().cache()
    assert not refused(cached.agg(F.max("v")))
    assert sorted(cached.collect()) == expected
    assert committed(on).loads > loads, "vacuous: what was cached was computed"


@pytest.mark.parametrize("at_once", [True, False])
def test_what_its_operators_took_is_known_where_one_query_ran_all_of_them(
    spark: SparkSession, tmp_path: Path, at_once: bool
) -> None:
    # Adaptive execution computes all of a cached plan before any of it is read.
    plain = {"spark.sql.adaptive.enabled": str(at_once), "spark.regions.recycle.firstUseOverhead": "0"}
    on = sibling(spark, VALIDATED | plain)
    # Other rows: those of one query are the same wherever they are written.
    write(spark, tmp_path / "t", 4 + at_once)

    def grouped() -> DataFrame:
        return read(on, tmp_path / "t").groupBy("id", "name").agg(F.sum("v").alias("v"))

    cached = grouped().cache()
    if not at_once:
        assert len(cached.take(1)) == 1
    assert cached.count() == 600
    settle(spark)
    cached.unpersist(blocking=True)
    decided = NewDecisions(on)
    grouped().collect()
    (code,) = {row["code"] for row in decided() if row["operator"] == "Join"}
    assert (code == "NO_HISTORY") != at_once


def test_rows_of_files_that_were_replaced_stay_what_was_cached(
    spark: SparkSession, on: SparkSession, tmp_path: Path
) -> None:
    write(spark, tmp_path / "t", 3)
    cached = read(on, tmp_path / "t").cache()
    before = total(cached)
    # Not by this application, which would make Spark cache it anew.
    write(spark, tmp_path / "other", 5)
    after = total(read(sibling(spark, OFF), tmp_path / "other"))
    assert before != after
    shutil.rmtree(tmp_path / "t")
    shutil.move(tmp_path / "other", tmp_path / "t")
    start = committed(on)
    assert total(cached) == before
    assert committed(on) == start
    assert refused(cached.agg(F.sum("v"))) == {"INPUT_CHANGED"}
    cached.unpersist(blocking=True)
    assert total(read(on, tmp_path / "t")) == after


def test_rows_that_were_computed_under_other_settings_are_refused(
    spark: SparkSession, on: SparkSession, tmp_path: Path
) -> None:
    write(spark, tmp_path / "t", 3)
    cached = read(on, tmp_path / "t").cache()
    assert not refused(cached.groupBy("name").count())
    on.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert refused(cached.groupBy("name").count()) == {"USER_CACHED"}


def test_random_values_are_refused(spark: SparkSession, on: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", 3)
    cached = read(on, tmp_path / "t").withColumn("r", F.rand()).cache()
    assert cached.agg(F.max("r")).collect() == cached.agg(F.max("r")).collect()
    assert refused(cached.agg(F.max("r"))) == {"USER_CACHED"}


def test_float_aggregates_in_it_count_as_such(spark: SparkSession, on: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", 3)
    cached = read(on, tmp_path / "t").groupBy("k").agg(F.sum("x").alias("x")).cache()
    assert not refused(cached.agg(F.max("x")))
    on.conf.set("spark.regions.recycle.floatAggregates", "false")
    assert refused(cached.agg(F.max("x"))) == {"FLOAT_AGGREGATE"}
