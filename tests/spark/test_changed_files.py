"""Source files that change, with and without their time telling it: each query gives plain Spark's rows."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, orc, parquet
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tests.harness.session import Counters, committed, decisions, sibling
from tests.spark.test_same_rows import OFF, ON
from tests.tpc.rows import Outcome, difference, outcome

pytestmark = pytest.mark.spark

ROWS = 200
RACY = "spark.regions.sources.racySeconds"
RACY_SECONDS = 2  # the default, which the session of the tests has switched off
PATIENT = 600  # for tests in which a file has to be young, however slow the machine is
OLD = 1_700_000_000  # a time that is long past
MODES = ("listing", "footer")
WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": lambda table, file: parquet.write_table(table, file, compression="none", use_dictionary=False),
    "orc": lambda table, file: orc.write_table(table, file, compression="uncompressed"),
    "csv": lambda table, file: csv.write_csv(table, file),
    "json": lambda table, file: lines(file, [f'{{"k":{k},"v":{v}}}' for k, v in rows_of(table)]),
    "text": lambda table, file: lines(file, [f"{k},{v}" for k, v in rows_of(table)]),
}


def rows_of(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))


def lines(file: Path, texts: list[str]) -> None:
    file.write_text("".join(f"{text}\n" for text in texts), encoding="ascii")


def write(file: Path, first: int, at: float | None = OLD, kind: str = "parquet") -> Path:
    """`ROWS` rows of k (7 keys) and v (four digits, from `first` on), as long whatever `first` is; `at`: its time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"k": [i % 7 for i in range(ROWS)], "v": list(range(first, first + ROWS))})
    fresh = file.parent / f".{file.name}"
    WRITERS[kind](table, fresh)
    if at is not None:
        os.utime(fresh, (at, at))
    # In one step, as whoever replaces a file that others read should do it.
    fresh.replace(file)
    return file


def sums(spark: SparkSession, folder: Path, kind: str = "parquet") -> DataFrame:
    if kind == "text":
        parts = F.split("value", ",")
        rows = spark.read.text(str(folder)).select(parts[0].alias("k"), parts[1].cast("int").alias("v"))
    elif kind in ("csv", "json"):
        rows = spark.read.schema("k INT, v INT").format(kind).option("header", kind == "csv").load(str(folder))
    else:
        rows = spark.read.format(kind).load(str(folder))
    return rows.groupBy("k").agg(F.sum("v").alias("v"), F.count("*").alias("n"))


@dataclass(frozen=True)
class Sides:
    """A plain session and one that stores and loads wherever it may."""

    off: SparkSession
    on: SparkSession

    def same(self, query: Callable[[SparkSession], DataFrame]) -> Counters:
        """Assert that the rows are plain Spark's; gives what was stored and loaded for them."""
        start = committed(self.off)
        found = outcome(query(self.on))
        assert difference(outcome(query(self.off)), found) is None
        return committed(self.off) - start

    def stored_and_loaded(self, query: Callable[[SparkSession], DataFrame]) -> None:
        """Two runs: what the first stores the second loads."""
        first, second = self.same(query), self.same(query)
        assert first.stores > 0 and first.loads == 0, first
        assert second.loads > 0, second

    def untouched(self, query: Callable[[SparkSession], DataFrame]) -> None:
        did = self.same(query)
        assert (did.stores, did.loads) == (0, 0), did

    def settle(self, file: Path) -> None:
        """Wait until the file is older than the least age there is, and let that be the one asked for."""
        time.sleep(max(0.0, file.stat().st_mtime + 1.1 - time.time()))
        self.on.conf.set(RACY, "1")

    def racy(self) -> int:
        """Decisions that left something alone because a file was young."""
        return sum("RACY_INPUT" in str(row) for row in decisions(self.off))


def sides_of(spark: SparkSession, verify: str = "listing", racy: int = PATIENT) -> Sides:
    confs = {"spark.regions.sources.verify": verify, RACY: str(racy)}
    return Sides(sibling(spark, OFF), sibling(spark, ON | confs))


@pytest.fixture(params=MODES)
def sides(spark: SparkSession, request: pytest.FixtureRequest) -> Sides:
    return sides_of(spark, request.param)


# Young files


def test_a_young_file_is_stored_from_when_it_has_settled(spark: SparkSession, tmp_path: Path) -> None:
    """By the default, and by the clock."""
    sides = sides_of(spark, racy=RACY_SECONDS)
    sides.stored_and_loaded(lambda spark: sums(spark, write(tmp_path / "old" / "a.parquet", 1000).parent))
    for number in range(30):
        before = sides.racy()
        file = write(tmp_path / f"t{number}" / "a.parquet", 1000, at=None)
        did = sides.same(lambda spark, file=file: sums(spark, file.parent))
        if sides.racy() > before:
            break
        # On a slow machine it was old before the query was planned.
        assert time.time() - file.stat().st_mtime > RACY_SECONDS and did.stores > 0
    else:
        pytest.fail("the machine is too slow for this test")
    assert (did.stores, did.loads) == (0, 0)
    time.sleep(max(0.0, file.stat().st_mtime + RACY_SECONDS + 0.1 - time.time()))
    sides.stored_and_loaded(lambda spark: sums(spark, file.parent))


def replaced_at_once(sides: Sides, file: Path) -> tuple[Counters, list[Outcome]]:
    """A file that is replaced under its own length and time right after a query: what was done, and the rows."""
    start = committed(sides.off)
    first = write(file, 1000, at=None).stat()
    found = [outcome(sums(sides.on, file.parent))]
    committed(sides.off)
    write(file, 5000, at=None)
    os.utime(file, ns=(first.st_mtime_ns, first.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (first.st_size, first.st_mtime_ns)
    found.append(outcome(sums(sides.on, file.parent)))
    return committed(sides.off) - start, found


def test_replaced_within_the_time_of_the_file(sides: Sides, tmp_path: Path) -> None:
    file = tmp_path / "t" / "a.parquet"
    did, found = replaced_at_once(sides, file)
    assert difference(outcome(sums(sides.off, file.parent)), found[1]) is None
    assert difference(found[0], found[1]) is not None
    assert (did.stores, did.loads) == (0, 0)
    sides.settle(file)
    sides.stored_and_loaded(lambda spark: sums(spark, file.parent))


def test_that_would_be_stale_if_young_files_were_stored(spark: SparkSession, tmp_path: Path) -> None:
    """The test above tests something: without the rule the same steps serve the first file's rows."""
    did, found = replaced_at_once(sides_of(spark, racy=0), tmp_path / "t" / "a.parquet")
    assert did.loads > 0
    assert difference(found[0], found[1]) is None


def test_writes_that_race_with_queries(sides: Sides, tmp_path: Path) -> None:
    """A file system that counts whole minutes, and a file that is written again and again."""
    file = tmp_path / "t" / "a.parquet"
    stamps = []
    for number in range(5):
        write(file, 1000 + number, at=time.time() // 60 * 60)
        stamps.append((file.stat().st_size, file.stat().st_mtime_ns))
        sides.untouched(lambda spark: sums(spark, file.parent))
    assert len(set(stamps)) < len(stamps), "no two writes under one time: nothing raced"
    sides.settle(file)
    sides.stored_and_loaded(lambda spark: sums(spark, file.parent))


def test_a_time_in_the_future_is_young(sides: Sides, tmp_path: Path) -> None:
    file = write(tmp_path / "t" / "a.parquet", 1000, at=time.time() + 3600)
    for _ in range(2):
        sides.untouched(lambda spark: sums(spark, file.parent))
    sides.on.conf.set(RACY, "1")
    sides.untouched(lambda spark: sums(spark, file.parent))
    write(file, 2000)
    sides.stored_and_loaded(lambda spark: sums(spark, file.parent))


def test_one_young_file_among_old_ones(sides: Sides, tmp_path: Path) -> None:
    """Of a join, only what stands above the young side waits."""
    old, young = tmp_path / "old", tmp_path / "young"
    write(old / "a.parquet", 1000)
    file = write(young / "a.parquet", 3000, at=None)

    def joined(spark: SparkSession) -> DataFrame:
        return sums(spark, old).join(sums(spark, young).withColumnRenamed("v", "w"), "k").select("k", "v", "w")

    sides.stored_and_loaded(joined)
    sides.untouched(lambda spark: sums(spark, young))
    write(file, 4000, at=file.stat().st_mtime)
    again = sides.same(joined)
    assert again.loads > 0 and again.stores == 0, again
    sides.settle(file)
    sides.stored_and_loaded(lambda spark: sums(spark, young))


# Changes that show in the listing


def added(folder: Path) -> None:
    write(folder / "b.parquet", 3000)


def appended(folder: Path) -> None:
    table = pa.table({"k": [1] * 999, "v": [7] * 999})
    os.chmod(folder / "a.parquet", 0o600)
    parquet.write_table(pa.concat_tables([parquet.read_table(folder / "a.parquet"), table]), folder / "a.parquet")
    os.utime(folder / "a.parquet", (OLD, OLD))


def deleted(folder: Path) -> None:
    (folder / "z.parquet").unlink()


def touched(folder: Path) -> None:
    os.utime(folder / "a.parquet", (OLD + 100, OLD + 100))


def linked(folder: Path) -> None:
    other = write(folder.parent / "elsewhere" / "x.parquet", 8000, at=OLD + 1)
    (folder / "a.parquet").unlink()
    (folder / "a.parquet").symlink_to(other)


def renamed(folder: Path) -> None:
    write(folder.parent / "elsewhere" / "x.parquet", 8000, at=OLD + 1).replace(folder / "a.parquet")


@pytest.mark.parametrize("change", [added, appended, deleted, touched, linked, renamed], ids=lambda f: f.__name__)
def test_changes_are_seen(sides: Sides, tmp_path: Path, change: Callable[[Path], None]) -> None:
    folder = tmp_path / "t"
    write(folder / "a.parquet", 1000)
    write(folder / "z.parquet", 2000)
    sides.stored_and_loaded(lambda spark: sums(spark, folder))
    change(folder)
    sides.stored_and_loaded(lambda spark: sums(spark, folder))


def test_partitions(sides: Sides, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for day in (1, 2):
        write(folder / f"day={day}" / "a.parquet", 1000 * day)

    def query(spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(folder)).groupBy("day").agg(F.sum("v").alias("v"))

    sides.stored_and_loaded(query)
    write(folder / "day=3" / "a.parquet", 3000)
    sides.stored_and_loaded(query)
    shutil.move(folder / "day=3", folder / "day=4")
    sides.stored_and_loaded(query)
    shutil.rmtree(folder / "day=1")
    sides.stored_and_loaded(query)
    sides.on.conf.set(RACY, PATIENT)
    young = write(folder / "day=5" / "a.parquet", 5000, at=None)
    sides.untouched(query)
    sides.settle(young)
    sides.stored_and_loaded(query)


@pytest.mark.parametrize("partitioned", [False, True])
def test_tables_of_the_catalog(sides: Sides, partitioned: bool) -> None:
    name = f"changed_{sides.on.conf.get('spark.regions.sources.verify')}_{partitioned}".lower()
    rows = sides.off.range(1000).selectExpr("id % 7 AS k", "cast(id AS int) AS v", "id % 3 AS p")
    writer = rows.coalesce(1).write.mode("overwrite").format("parquet")
    (writer.partitionBy("p") if partitioned else writer).saveAsTable(name)

    def query(spark: SparkSession) -> DataFrame:
        return spark.table(name).groupBy("k").agg(F.sum("v").alias("v"))

    def settle() -> None:
        files = [Path(uri.removeprefix("file://")) for uri in sides.off.table(name).inputFiles()]
        sides.settle(max(files, key=lambda file: file.stat().st_mtime))

    sides.untouched(query)
    settle()
    sides.stored_and_loaded(query)
    sides.on.conf.set(RACY, PATIENT)
    sides.off.sql(f"INSERT INTO {name} SELECT id, id, id % 3 FROM range(100)")
    sides.on.catalog.refreshTable(name)
    sides.untouched(query)
    settle()
    sides.stored_and_loaded(query)
    sides.off.sql(f"DROP TABLE {name}")


# Changes that do not


def replace_old(file: Path, kind: str, how: str) -> None:
    """Another content under the same path, length and time."""
    before = file.stat()
    if how == "copied":
        write(file, 5000, kind=kind)
    else:
        other = write(file.parent.parent / "elsewhere" / file.name, 5000, kind=kind)
        file.unlink()
        file.symlink_to(other)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.parametrize(("kind", "how"), [(kind, "copied") for kind in WRITERS] + [("parquet", "linked")])
def test_replaced_under_length_and_time(spark: SparkSession, tmp_path: Path, kind: str, how: str) -> None:
    """As docs/refusals.md has it: a listing does not see it, and gives the old rows; a footer or the content does."""
    for verify in MODES:
        sides = sides_of(spark, verify)
        file = write(tmp_path / verify / "t" / f"a.{kind}", 1000, kind=kind)
        sides.stored_and_loaded(lambda spark, file=file: sums(spark, file.parent, kind))
        before = outcome(sums(sides.on, file.parent, kind))
        replace_old(file, kind, how)
        plain = outcome(sums(sides.off, file.parent, kind))
        assert difference(plain, before) is not None
        if verify == "listing":
            assert difference(before, outcome(sums(sides.on, file.parent, kind))) is None
        else:
            sides.stored_and_loaded(lambda spark, file=file: sums(spark, file.parent, kind))


def test_a_planned_load_looks_at_footers_again(spark: SparkSession, tmp_path: Path) -> None:
    sides = sides_of(spark, "footer")
    file = write(tmp_path / "t" / "a.parquet", 1000)
    sides.stored_and_loaded(lambda spark: sums(spark, file.parent))
    start = committed(sides.off)
    frame = sums(sides.on, file.parent)
    before = outcome(frame)
    assert (committed(sides.off) - start).loads > 0
    replace_old(file, "parquet", "copied")
    after = outcome(frame)
    assert difference(outcome(sums(sides.off, file.parent)), after) is None
    assert difference(before, after) is not None


def test_a_commit_looks_at_footers_again(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is replaced while the query runs, after it was read."""
    sides = sides_of(spark, "footer")
    keys = write(tmp_path / "keys" / "k.parquet", 9000)
    folder = tmp_path / "t"
    for name in ("a", "b"):
        write(folder / f"{name}.parquet", 1000)

    def query(spark: SparkSession) -> DataFrame:
        names = spark.read.parquet(str(keys)).selectExpr("k", "v AS w").where("w < 9007")
        return spark.read.parquet(str(folder)).join(F.broadcast(names), "k")

    def read(rows: Iterator[Row]) -> None:
        count = len(list(rows))
        (tmp_path / f"read-{os.getpid()}-{count}-{time.time_ns()}").touch()
        while not (tmp_path / "replaced").exists():
            time.sleep(0.05)

    start = committed(sides.off)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(query(sides.on).foreachPartition, read)
        while len(list(tmp_path.glob("read-*"))) < 2 and not running.done():
            time.sleep(0.05)
        for name in ("a", "b"):
            replace_old(folder / f"{name}.parquet", "parquet", "copied")
        (tmp_path / "replaced").touch()
        running.result()
    assert (committed(sides.off) - start).stores == 0
    ended = [row for row in decisions(sides.off) if row["kind"] in ("committed", "abandoned")]
    assert ended[-1]["code"] == "INPUT_CHANGED", ended[-1]
    sides.stored_and_loaded(query)
