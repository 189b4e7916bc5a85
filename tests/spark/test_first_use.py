"""DataFrames that the program holds are stored while the first query built on them runs; others are not."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tests.harness.session import NewDecisions, committed, decisions, sibling
from tests.spark.test_same_rows import OFF
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark


# Adaptive execution coalesces by sizes, so that a wider DataFrame is not shown to come in the same order.
# And a quarter of the budget is reserved for it, which other tests of the session may have taken.
# On a busy machine the write may well take a tenth of the query; what is given up has a test and a share of its own.
ANY = {
    "spark.regions.recycle.rowOrder": "any",
    "spark.regions.recycle.maxBytes": "100g",
    "spark.regions.recycle.firstUseOverhead": "1",
}


@pytest.fixture(scope="module")
def on(spark: SparkSession) -> SparkSession:
    return sibling(spark, {"spark.sql.planChangeValidation": "true"} | ANY)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> str:
    """More than the 8 MB from which on a first use is looked into: id, k, and a text that does not compress."""
    rows = sibling(spark, OFF).range(0, 250_000, 1, 2)
    rows.selectExpr("id", "id % 1000 AS k", "sha2(cast(id AS string), 512) AS text").write.parquet(str(tmp_path / "t"))
    return str(tmp_path / "t")


def matched(session: SparkSession, folder: str) -> DataFrame:
    left = session.read.parquet(folder)
    right = session.read.parquet(folder).select(F.col("id").alias("other"), F.col("text").alias("text2"))
    return (
        left.join(right, F.reverse("text") == F.reverse("text2"), "left")
        .repartition(4, "k")
        .select("id", "k", F.length("text2").alias("length"), F.substring("text", 1, 20).alias("head"))
    )


def by_key(frame: DataFrame) -> DataFrame:
    return frame.groupBy("k").agg(F.count("*").alias("rows"), F.max("id").alias("largest"))


def heads(frame: DataFrame) -> DataFrame:
    return frame.where("id < 50000").groupBy(F.substring("head", 1, 1).alias("first")).agg(F.max("head").alias("last"))


def reasons(session: SparkSession, kind: str) -> list[object]:
    return [decision["code"] for decision in decisions(session) if decision["kind"] == kind]


def held_stores(new: NewDecisions) -> int:
    """How many DataFrames were stored since they are held; the rows at the top of a query are stored besides."""
    return [row["code"] for row in new() if row["kind"] == "store"].count("HELD")


def test_the_second_query_over_a_held_frame_reads_what_the_first_one_left(on: SparkSession, folder: str) -> None:
    held = matched(on, folder)
    start, new = committed(on), NewDecisions(on)
    first = outcome(by_key(held))
    between = committed(on)
    assert held_stores(new) == 1
    second = outcome(heads(held))
    end = committed(on)
    assert (between - start).stores == 2
    assert (end - between).loads == 1
    # Afterwards, since what runs without the plugin's actions is observed too, and then it is known.
    plain = sibling(on, OFF)
    assert difference(outcome(by_key(matched(plain, folder))), first) is None
    assert difference(outcome(heads(matched(plain, folder))), second) is None


def test_a_frame_that_nobody_holds_waits_for_its_second_use(on: SparkSession, folder: str) -> None:
    new = NewDecisions(on)
    result = by_key(matched(on, folder))
    # The gateway's objects are cyclic garbage, and are freed up to a second after Python's collector found them.
    gc.collect()
    time.sleep(1.5)
    assert len(result.collect()) == 1000
    committed(on)
    assert held_stores(new) == 0
    assert reasons(on, "store")[-1] == "SMALL_RESULT"


def test_what_is_below_a_cached_frame_is_not_offered(spark: SparkSession, folder: str) -> None:
    session = sibling(spark, OFF)
    frame = matched(session, folder)
    frames = spark._jvm.org.apache.spark.sql.regions.rules.SharedDataFrames  # type: ignore[union-attr]

    def offered() -> int:
        query = by_key(frame)._jdf.queryExecution()
        return int(frames.of(query.normalized(), query.withCachedData()).size())

    assert offered() > 1
    frame.persist()
    try:
        assert offered() == 0
    finally:
        frame.unpersist()


@pytest.mark.parametrize("cached", [False, True])
def test_what_the_program_caches_is_not_stored_at_its_first_use(
    on: SparkSession, spark: SparkSession, folder: str, cached: bool
) -> None:
    held = matched(on, folder)
    new = NewDecisions(on)
    if cached:
        held.persist()
    try:
        found = outcome(by_key(held)), outcome(heads(held))
    finally:
        held.unpersist(blocking=True)
    committed(on)
    assert held_stores(new) == (not cached)
    plain = matched(sibling(spark, OFF), folder)
    assert difference(outcome(by_key(plain)), found[0]) is None
    assert difference(outcome(heads(plain)), found[1]) is None


def test_the_conf_switches_it_off(spark: SparkSession, folder: str) -> None:
    off = sibling(spark, {"spark.regions.recycle.firstUseOverhead": "0"})
    held = matched(off, folder)
    start = committed(off)
    assert by_key(held).count() == 1000
    assert (committed(off) - start).stores == 0


def test_a_python_function_that_the_query_does_not_need_is_not_called_for_it(on: SparkSession, folder: str) -> None:
    @F.udf(LongType())
    def slow(value: int) -> int:
        return value + 1

    held = matched(on, folder).withColumn("more", slow("id"))
    new = NewDecisions(on)
    assert len(by_key(held).collect()) == 1000
    committed(on)
    assert held_stores(new) == 0
    assert len(held.groupBy("k").agg(F.max("more").alias("more")).collect()) == 1000


def test_what_takes_longer_to_write_than_to_compute_is_given_up(spark: SparkSession, folder: str) -> None:
    """The share is so small that any write exceeds it once its grace is over."""
    narrow = sibling(spark, ANY | {"spark.regions.recycle.firstUseOverhead": "0.001"})
    texts = [F.concat("text", F.lit(str(i))).alias(f"c{i}") for i in range(12)]
    held = narrow.read.parquet(folder).select("k", *texts).distinct()
    start = committed(narrow)
    largest = [F.max(f"c{i}").alias(f"c{i}") for i in range(6)]
    rows = held.groupBy("k").agg(F.count("*").alias("rows"), *largest).collect()
    assert sum(row["rows"] for row in rows) == 250_000
    assert (committed(narrow) - start).stores == 1
    assert sorted(map(str, reasons(narrow, "store")[-2:])) == ["HELD", "SMALL_RESULT"]
    assert reasons(narrow, "abandoned")[-1] == "NOT_WORTH_WRITING"


def test_of_a_frame_with_many_columns_those_are_stored_that_queries_read(
    on: SparkSession, spark: SparkSession, folder: str, recycle_dir: Path
) -> None:
    def wide(session: SparkSession) -> DataFrame:
        left = session.read.parquet(folder)
        right = left.select(F.col("id").alias("other"), F.sha2("text", 256).alias("digest"))
        derived = (F.concat(F.col("digest"), F.lit(str(n))).alias(f"c{n}") for n in range(60))
        return left.join(right, F.col("id") == F.col("other")).select("id", "k", *derived)

    def asked(frame: DataFrame, *columns: str) -> DataFrame:
        return frame.groupBy("k").agg(*(F.max(column).alias(column) for column in columns))

    def widths() -> dict[Path, int]:
        files = recycle_dir.rglob("_manifest.json")
        return {file: len(json.loads(file.read_text())["columns"]) for file in files}

    held = wide(on)
    before, start = widths(), committed(on)
    found = {}
    for columns in (("c1",), ("c2",), ("c3",), ("c1", "c3"), ("c2", "c59"), ("c1", "c2"), ("c3", "c2")):
        found[columns] = outcome(asked(held, *columns))
        committed(on)
    after = widths()
    stored = [after[file] for file in after.keys() - before.keys()]
    assert [width for width in stored if 2 < width < 20], f"vacuous: {stored}"
    assert not [width for width in stored if width >= 60]
    assert committed(on).loads - start.loads >= 2, "vacuous: nothing was read back"
    # Afterwards: what was measured of the same queries without the plugin would be known to it.
    plain = wide(sibling(spark, OFF))
    for columns, rows in found.items():
        assert difference(outcome(asked(plain, *columns)), rows) is None
