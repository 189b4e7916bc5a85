"""Files that a query writes are known by the rows written when they are read back: with the plugin each read gives
plain Spark's rows, and a later run finds what an earlier one stored although every file is new."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import Counters, committed, decisions, settle_writes, sibling
from tests.spark.test_same_rows import OFF, ON
from tests.tpc.rows import FAILURES, difference, outcome

pytestmark = pytest.mark.spark

ROWS = 400
OLD = 1_700_000_000
Frame = Callable[[SparkSession], DataFrame]


def source(spark: SparkSession, folder: Path) -> DataFrame:
    """k (7 keys), v, t, p (3 keys): files of this test alone, which it has for its first read."""
    target = folder / "source"
    if not target.exists():
        plain = sibling(spark, OFF)
        rows = plain.range(0, ROWS, 1, 2).selectExpr(
            "cast(id % 7 AS int) AS k", "id AS v", "concat('t', id % 13) AS t", "cast(id % 3 AS int) AS p"
        )
        rows.write.parquet(str(target))
        for file in target.iterdir():
            os.utime(file, (OLD, OLD))
    return spark.read.parquet(str(target))


def told(spark: SparkSession) -> list[str]:
    """What became of the writes of the application so far, the newest last."""
    settle_writes(spark)
    found = [row for row in decisions(spark) if row["code"] in ("REGISTERED", "NOT_REGISTERED")]
    return [f"{row['code']}: {row['detail']}" for row in found]


@dataclass(frozen=True)
class Days:
    """Plain Spark, and one session for each day: they share a store."""

    off: SparkSession
    first: SparkSession
    second: SparkSession

    def run(self, session: SparkSession, job: Frame) -> Counters:
        """Assert that the rows are plain Spark's; gives what was stored and loaded for the read."""
        start = committed(self.off)
        frame = job(session)
        found = outcome(frame)
        did = committed(self.off) - start
        assert difference(outcome(sums_of(self.off, frame)), found) is None
        return did

    def reused(self, write: Callable[[SparkSession, str], str]) -> None:
        """What is computed from the files of the first day serves those of the second."""
        first = self.run(self.first, lambda spark: sums(spark.read.format("parquet").load(write(spark, "first"))))
        assert first.stores > 0, first
        second = self.run(self.second, lambda spark: sums(spark.read.format("parquet").load(write(spark, "second"))))
        assert second.loads > 0, second


def sums(frame: DataFrame) -> DataFrame:
    return (
        frame.groupBy("k")
        .agg(F.sum("v").alias("v"), F.count("*").alias("n"))
        .groupBy()
        .agg(F.sum("v").alias("v"), F.sum("n").alias("n"), F.max("k").alias("k"))
    )


def sums_of(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The same over the same files, in another session."""
    files = frame.inputFiles()
    root = os.path.commonpath([file.removeprefix("file://") for file in files])
    folder = root if os.path.isdir(root) else os.path.dirname(root)
    while "=" in os.path.basename(folder):
        folder = os.path.dirname(folder)
    kind = "orc" if files[0].endswith(".orc") else "parquet"
    return sums(spark.read.format(kind).load(folder))


@pytest.fixture
def days(spark: SparkSession) -> Days:
    return Days(*(sibling(spark, confs) for confs in (OFF, ON, ON)))


@pytest.fixture
def rows(tmp_path: Path) -> Frame:
    """What is written: the same rows in every session, and not the source's own."""
    return lambda spark: source(spark, tmp_path).where("v >= 10").withColumn("v", F.col("v") * 2)


def written(rows: Frame, folder: Path) -> Callable[[SparkSession, str], str]:
    def write(spark: SparkSession, day: str) -> str:
        target = str(folder / f"{day}-{len(list(folder.iterdir()))}")
        rows(spark).write.parquet(target)
        settle_writes(spark)
        return target

    return write


# What is found again


def test_tomorrows_files_are_known_by_their_rows(days: Days, rows: Frame, tmp_path: Path) -> None:
    days.reused(written(rows, tmp_path))
    assert told(days.off)[-1].startswith("REGISTERED: 2 files in")


def test_the_order_of_rows_stays_where_it_is_seen(days: Days, rows: Frame, tmp_path: Path) -> None:
    """Equal files, byte for byte, are read in an equal order; files that were cut otherwise are not."""
    write = written(rows, tmp_path)

    def totals(spark: SparkSession, target: str) -> DataFrame:
        return spark.read.parquet(target).groupBy("k").agg(F.sum("v").alias("v"))

    seen: list[list[Row]] = []
    for session, loads in ((days.first, False), (days.second, True)):
        target = write(session, "day")
        told(days.off)
        start = committed(days.off)
        seen.append(totals(session, target).collect())
        did = committed(days.off) - start
        assert (did.loads > 0) == loads, did
        assert totals(days.off, target).collect() == seen[-1]
    other = str(tmp_path / "other")
    rows(days.second).coalesce(1).write.parquet(other)
    told(days.off)
    assert totals(days.second, other).collect() == totals(days.off, other).collect()


def test_a_chain_of_writes(days: Days, rows: Frame, tmp_path: Path) -> None:
    def gold(spark: SparkSession, day: str) -> str:
        silver = str(tmp_path / f"{day}-silver")
        bronze = written(rows, tmp_path)(spark, day)
        spark.read.parquet(bronze).groupBy("k", "p").agg(F.sum("v").alias("v")).write.parquet(silver)
        settle_writes(spark)
        return silver

    days.reused(gold)


@pytest.mark.parametrize("by", ["p", "t"])
def test_partitioned(days: Days, rows: Frame, tmp_path: Path, by: str) -> None:
    def write(spark: SparkSession, day: str) -> str:
        rows(spark).write.partitionBy(by).parquet(str(tmp_path / day))
        settle_writes(spark)
        return str(tmp_path / day)

    days.reused(write)


def test_orc(days: Days, rows: Frame, tmp_path: Path) -> None:
    for session in (days.first, days.second):
        target = str(tmp_path / f"day-{len(list(tmp_path.iterdir()))}")
        rows(session).write.orc(target)
        told(days.off)
        did = days.run(session, lambda spark, target=target: sums(spark.read.orc(target)))
    assert did.loads > 0, did


def test_appended(days: Days, rows: Frame, tmp_path: Path) -> None:
    def write(spark: SparkSession, day: str) -> str:
        target = str(tmp_path / day)
        rows(spark).where("k < 3").write.parquet(target)
        rows(spark).where("k >= 3").write.mode("append").parquet(target)
        settle_writes(spark)
        return target

    days.reused(write)


def test_one_partition_is_replaced(days: Days, rows: Frame, tmp_path: Path) -> None:
    """Where what stays was once all that there was, it is known; else it is known by the listing."""

    def write(spark: SparkSession, day: str) -> str:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        target = str(tmp_path / day)
        for only in ("p = 0", "p = 1", "p = 1 AND v < 300"):
            rows(spark).where(only).write.mode("overwrite").partitionBy("p").parquet(target)
        settle_writes(spark)
        return target

    days.reused(write)


@pytest.mark.parametrize("partitioned", [False, True])
def test_tables(days: Days, rows: Frame, tmp_path: Path, partitioned: bool) -> None:
    """`saveAsTable`, `insertInto` and CTAS are writes to the table's folder."""
    for number, session in enumerate((days.first, days.second)):
        for how in ("save", "insert", "ctas"):
            name = f"t_{how}_{number}_{partitioned}".lower()
            rows(session).createOrReplaceTempView("rows_of_it")
            by = "PARTITIONED BY (p)" if partitioned else ""
            if how == "save":
                writer = rows(session).write.format("parquet")
                (writer.partitionBy("p") if partitioned else writer).saveAsTable(name)
            elif how == "ctas":
                session.sql(f"CREATE TABLE {name} USING parquet {by} AS SELECT * FROM rows_of_it")
            else:
                session.sql(f"CREATE TABLE {name} (k INT, v BIGINT, t STRING, p INT) USING parquet {by}")
                rows(session).write.insertInto(name)
            try:
                assert told(days.off)[-1].startswith("REGISTERED"), told(days.off)[-1]
                start = committed(days.off)
                found = outcome(sums(session.table(name)))
                did = committed(days.off) - start
                assert difference(outcome(sums(days.off.table(name))), found) is None
                assert (did.loads > 0) or number == 0, (how, did)
            finally:
                session.sql(f"DROP TABLE {name}")


def rounded(spark: SparkSession, folder: Path) -> DataFrame:
    """An average whose last digits depend on the order of rows, and what is computed of it."""
    shares = (
        source(spark, folder).groupBy("k").agg(F.avg(F.col("v") / F.lit(7.0)).alias("mean"), F.count("*").alias("n"))
    )
    return shares.where("n > 3").withColumn("twice", F.col("mean") * 2)


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_with_floating_point_aggregates_are_known_where_they_are_stored_or_read(
    days: Days, tmp_path: Path, ordered: bool
) -> None:
    """The first day computes and stores them; what later days write is the same, to the last digit. Behind a shuffle,
    tasks of the first day might write others than those that were stored."""
    seen = []
    for day in range(4):
        target = str(tmp_path / f"day-{day}")
        rows = rounded(days.second, tmp_path)
        start = committed(days.off)
        (rows.orderBy("n", "k") if ordered else rows).write.parquet(target)
        middle, what = committed(days.off), told(days.off)[-1]
        read = lambda spark, target=target: (  # noqa: E731
            spark.read.parquet(target).groupBy("n").agg(F.max("twice").alias("twice"))
        )
        found = outcome(read(days.second))
        assert difference(outcome(read(days.off)), found) is None
        assert difference(outcome(rounded(days.off, tmp_path)), outcome(days.off.read.parquet(target))) is None
        seen.append((what[:10], (middle - start).loads > 0, (committed(days.off) - middle).loads > 0))
    assert seen[0] == ("NOT_REGIST" if ordered else "REGISTERED", False, False)
    assert seen[1] == ("REGISTERED", True, not ordered)
    assert seen[2:] == [("REGISTERED", True, True)] * 2


def test_what_is_computed_again_in_place_of_an_entry_is_not_known_by_it(
    days: Days, recycle_dir: Path, tmp_path: Path
) -> None:
    """The write clears away the entry's own files after it was planned to read them. (Where it writes is no place of
    its own, so that nothing is left to be read there.)"""
    rounded(days.second, tmp_path).write.parquet(str(tmp_path / "day"))
    committed(days.off)
    stored = [row["entry"] for row in decisions(days.off) if row["kind"] == "committed"][-1]
    (entry,) = recycle_dir.glob(f"v1/*/data/{stored}")
    rounded(days.second, tmp_path).write.mode("overwrite").parquet(str(entry))
    assert told(days.off)[-1].startswith("NOT_REGISTERED: ENTRY_"), told(days.off)[-1]


# Applications

SCRIPT = Path(__file__).with_name("written_job.py")
ROOT = Path(__file__).resolve().parents[2]


def job(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=600, cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(results) == 1, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(results[0].removeprefix("RESULT "))
    return found


def test_another_application_and_a_catalog_that_lost_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    source(spark, tmp_path)
    given, store = str(tmp_path / "source"), tmp_path / "store"
    plain = job("", given, str(tmp_path / "plain"), "write")
    first = job(str(store), given, str(tmp_path / "monday"), "write")
    assert (first["rows"], first["loads"], first["registered"]) == (plain["rows"], 0, 2)
    second = job(str(store), given, str(tmp_path / "tuesday"), "write")
    assert (second["rows"], second["registered"]) == (plain["rows"], 2)
    assert second["loads"] >= 2, (first, second)
    read = job(str(store), given, str(tmp_path / "tuesday"), "read")
    assert read["rows"] == plain["rows"] and read["loads"] == 1
    assert "known by the rows that were written" in read["source"]
    (catalog,) = store.rglob("catalog.sqlite")
    with sqlite3.connect(catalog) as connection:
        assert connection.execute("DELETE FROM written").rowcount >= 4
    lost = job(str(store), given, str(tmp_path / "tuesday"), "read")
    assert lost["rows"] == plain["rows"] and lost["loads"] == 0
    assert "no write of just these files is known" in lost["source"]


# What is not taken for what was written


def changed(days: Days, rows: Frame, folder: Path, change: Callable[[Path], object]) -> list[str]:
    """Files that are no longer as they were registered: rows are plain Spark's. Gives what is said of the source."""
    write = written(rows, folder)
    days.reused(write)
    target = Path(write(days.second, "changed"))
    told(days.off)
    change(target)
    days.second.catalog.refreshByPath(str(target))
    read = lambda spark: sums(spark.read.parquet(str(target)))  # noqa: E731
    assert difference(outcome(read(days.off)), outcome(read(days.second))) is None
    return [str(node) for node in spark_regions.why_not(read(days.second)).nodes if "listing" in str(node)]


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*"))


def add(target: Path) -> None:
    shutil.copyfile(data_files(target)[0], target / "part-99999.parquet")


def replace(target: Path) -> None:
    file, by = data_files(target)
    shutil.copyfile(by, file)
    shutil.copyfile(by.with_name(f".{by.name}.crc"), file.with_name(f".{file.name}.crc"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "added": add,
    "removed": lambda target: data_files(target)[0].unlink(),
    "touched": lambda target: os.utime(data_files(target)[0], (OLD, OLD)),
    "replaced": replace,
}


@pytest.mark.parametrize("how", CHANGES)
def test_files_that_change_behind_the_jobs_back(days: Days, rows: Frame, tmp_path: Path, how: str) -> None:
    said = changed(days, rows, tmp_path, CHANGES[how])
    # No write of Spark's gives a file a name like that of the one added.
    assert len(said) == (how != "added"), said


def test_a_file_that_is_cut_off(days: Days, rows: Frame, tmp_path: Path) -> None:
    target = Path(written(rows, tmp_path)(days.first, "cut"))
    told(days.off)
    schema = days.off.read.parquet(str(target)).schema
    file = data_files(target)[0]
    file.write_bytes(file.read_bytes()[:-10])
    read = lambda spark: sums(spark.read.schema(schema).parquet(str(target)))  # noqa: E731
    assert outcome(read(days.first)).error is not None
    assert outcome(read(days.first)).error == outcome(read(days.off)).error


def test_a_path_that_is_a_link(days: Days, rows: Frame, tmp_path: Path) -> None:
    link = tmp_path / "link"
    days.reused(written(rows, tmp_path))
    for condition in ("v < 100", "v >= 100"):
        real = tmp_path / condition[2:4].strip()
        rows(days.first).where(condition).write.parquet(str(real))
        told(days.off)
        link.unlink(missing_ok=True)
        link.symlink_to(real)
        read = lambda spark: sums(spark.read.parquet(str(link)))  # noqa: E731
        assert difference(outcome(read(days.off)), outcome(read(days.first))) is None


def test_two_jobs_that_write_one_path_at_once(days: Days, rows: Frame, tmp_path: Path) -> None:
    target = tmp_path / "both"

    def append(session: SparkSession, condition: str) -> bool:
        try:
            rows(session).where(condition).write.mode("append").parquet(str(target))
        except FAILURES:  # The committer of the one clears away what the other has not committed yet.
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        wrote = list(pool.map(append, (days.first, days.second), ("k < 3", "k >= 3")))
    assert any(wrote)
    for what in told(days.off)[-sum(wrote) :]:
        assert what.startswith("REGISTERED") or "INPUT_CHANGED" in what, what
    read = lambda spark: sums(spark.read.parquet(str(target)))  # noqa: E731
    assert difference(outcome(read(days.off)), outcome(read(days.first))) is None


def test_a_table_that_is_replaced_dropped_or_renamed(days: Days, rows: Frame, tmp_path: Path) -> None:
    spark = days.first

    def same(name: str) -> None:
        expected = outcome(sums(sibling(spark, OFF).table(name)))
        assert difference(expected, outcome(sums(spark.table(name)))) is None

    rows(spark).write.format("parquet").saveAsTable("moving")
    same("moving")
    rows(spark).where("k = 1").write.mode("overwrite").format("parquet").saveAsTable("moving")
    same("moving")
    spark.sql("ALTER TABLE moving RENAME TO moved")
    same("moved")
    spark.sql("DROP TABLE moved")
    rows(spark).where("k = 2").write.format("parquet").saveAsTable("moving")
    same("moving")
    spark.sql("DROP TABLE moving")


@pytest.mark.parametrize("mode", ["ignore", "error"])
def test_a_write_that_does_not_happen(days: Days, rows: Frame, tmp_path: Path, mode: str) -> None:
    target = Path(written(rows, tmp_path)(days.first, "there"))
    before = told(days.off)
    try:
        rows(days.first).where("k = 1").write.mode(mode).parquet(str(target))
    except Exception as error:
        assert "PATH_ALREADY_EXISTS" in str(error)
    assert told(days.off) == before
    days.run(days.first, lambda spark: sums(spark.read.parquet(str(target))))


def test_declined_with_its_reason(days: Days, rows: Frame, tmp_path: Path) -> None:
    def why(write: Callable[[SparkSession], object]) -> str:
        write(days.first)
        return told(days.off)[-1]

    target = str(tmp_path / "x")
    found = {
        "csv": why(lambda spark: rows(spark).write.csv(f"{target}-csv")),
        "random": why(lambda spark: rows(spark).withColumn("r", F.rand()).write.parquet(f"{target}-random")),
        "float": why(
            lambda spark: (
                rows(spark)
                .groupBy("k")
                .agg(F.sum(F.col("v").cast("double")))
                .orderBy("k")
                .write.parquet(f"{target}-float")
            )
        ),
        "orc": why(lambda spark: rows(spark).withColumn("v", F.col("v").cast("float")).write.orc(f"{target}-orc")),
        "rdd": why(
            lambda spark: spark.createDataFrame(
                rows(spark).rdd.map(tuple), "k INT, v BIGINT, t STRING, p INT"
            ).write.parquet(f"{target}-rdd")
        ),
        "checkpoint": why(lambda spark: rows(spark).localCheckpoint().write.parquet(f"{target}-checkpoint")),
        "plain": why(lambda spark: unplanned(spark, rows(spark), f"{target}-unplanned")),
    }
    codes = {"csv": "UNKNOWN_SOURCE", "random": "NONDETERMINISTIC", "float": "FLOAT_AGGREGATE", "rdd": "RDD_SOURCE"}
    codes |= {"checkpoint": "RDD_SOURCE", "plain": "UNKNOWN_OPERATOR", "orc": "UNPROVEN_TYPE"}
    assert {name: text.split(": ")[:2] for name, text in found.items()} == {
        name: ["NOT_REGISTERED", code] for name, code in codes.items()
    }


def unplanned(spark: SparkSession, frame: DataFrame, target: str) -> None:
    spark.conf.set("spark.sql.optimizer.plannedWrite.enabled", "false")
    try:
        frame.write.parquet(target)
    finally:
        spark.conf.unset("spark.sql.optimizer.plannedWrite.enabled")


def test_the_schema_that_is_asked_for_counts(days: Days, rows: Frame, tmp_path: Path) -> None:
    target = written(rows, tmp_path)(days.first, "schemas")
    told(days.off)
    for schema in ("k INT, v BIGINT", "k INT, t STRING", "v BIGINT, k INT, missing INT"):
        read = lambda spark, schema=schema: (  # noqa: E731
            spark.read.schema(schema).parquet(target).groupBy().agg(*(F.max(c) for c in ("k", schema.split()[0])))
        )
        assert difference(outcome(read(days.off)), outcome(read(days.first))) is None


def test_switched_off(days: Days, rows: Frame, tmp_path: Path) -> None:
    days.second.conf.set("spark.regions.sources.written", "false")
    before = told(days.off)
    target = written(rows, tmp_path)(days.second, "off")
    assert told(days.off) == before
    days.run(days.second, lambda spark: sums(spark.read.parquet(target)))
