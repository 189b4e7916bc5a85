"""Inputs to which files were added: stored results are brought up to date, and the rows are plain Spark's."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.harness import chance
from tests.harness.session import Counters, NewDecisions, committed, decisions, settle_writes, sibling
from tests.spark.test_same_rows import OFF, ON
from tests.tpc.rows import FAILURES, difference, outcome

pytestmark = pytest.mark.spark

RULE = "REFRESHED"
ANY = {"spark.regions.recycle.rowOrder": "any"}
CALLS = "sum(v) AS sv, count(v) AS nv, avg(v) AS av, count(*) AS n, min(t) AS lt, max(x) AS hx, sum(x) AS sx"
TOTALS = f"SELECT k, {CALLS} FROM facts GROUP BY k"
ROUNDED = ("hx", "sx", "av")


class Table:
    """Facts in files that are added one by one, and keys that stay; plain Spark and the plugin over both."""

    def __init__(self, spark: SparkSession, folder: Path, confs: dict[str, str], partitioned: bool = False) -> None:
        self.spark, self.folder, self.partitioned = spark, folder, partitioned
        self.off, self.on = sibling(spark, OFF | confs), sibling(spark, ON | confs)
        keys = self.off.range(7).selectExpr("cast(id AS int) AS k", "concat('key ', id) AS name")
        keys.coalesce(1).write.parquet(str(folder / "keys"))
        self.files = 0
        self.add()
        self.add()

    @property
    def facts(self) -> Path:
        return self.folder / "facts"

    def add(self, rows: int = 300, session: SparkSession | None = None) -> None:
        start = self.files * 1000
        frame = (
            (session or self.off)
            .range(start, start + rows, 1, 1)
            .selectExpr(
                "cast(id % 7 AS int) AS k",
                "CASE WHEN id % 5 = 0 THEN null ELSE cast(id AS int) END AS v",
                "concat('t', id % 13) AS t",
                "CASE WHEN id % 9 = 0 THEN double('NaN') ELSE sqrt(id) / 3 END AS x",
                f"cast({self.files} AS int) AS day",
            )
        )
        writer = frame.write.mode("append")
        (writer.partitionBy("day") if self.partitioned else writer).parquet(str(self.facts))
        self.files += 1

    def views(self) -> None:
        for session in (self.off, self.on):
            for name in ("facts", "keys"):
                session.read.parquet(str(self.folder / name)).createOrReplaceTempView(name)

    def asked(self, text: str) -> tuple[Counters, bool]:
        """Assert that the rows are plain Spark's; gives what was stored and loaded, and whether it was refreshed."""
        self.views()
        start, new = committed(self.spark), NewDecisions(self.spark)
        found = outcome(self.on.sql(text))
        did = committed(self.spark) - start
        assert difference(outcome(self.off.sql(text)), found, ROUNDED) is None
        return did, refreshed(new()) > 0


def refreshed(found: list[dict[str, object]]) -> int:
    return sum(row["code"] == RULE and row["kind"] == "load" for row in found)


def codes(spark: SparkSession) -> list[str]:
    return [str(row["code"]) for row in decisions(spark)]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path, ANY)


JOINED = (
    "SELECT name, sum(v) AS sv, count(*) AS n FROM facts {} JOIN keys USING (k) WHERE v > 3 OR t = 't1' GROUP BY name"
)


@pytest.mark.parametrize(
    "text",
    [
        TOTALS,
        f"SELECT {CALLS} FROM facts",
        "SELECT k, v % 3 AS r, count(*) AS n FROM facts WHERE t <> 't5' GROUP BY k, v % 3",
        JOINED.format(""),
        JOINED.format("LEFT"),
        "SELECT k, count(*) AS n FROM facts LEFT ANTI JOIN (SELECT k FROM keys WHERE k < 2) USING (k) GROUP BY k",
        "SELECT DISTINCT t FROM facts",
        "SELECT k, sum(v) AS sv, count(*) AS n FROM facts GROUP BY k ORDER BY k",
    ],
)
def test_new_files_are_added_to_what_is_stored(table: Table, text: str) -> None:
    did, _ = table.asked(text)
    assert did.stores > 0, "vacuous: nothing stored"
    for _ in range(2):
        table.add()
        did, refreshed = table.asked(text)
        assert refreshed
        assert did.stores > 0, "what was refreshed is stored"
        did, refreshed = table.asked(text)
        assert did.loads > 0 and did.stores == 0 and not refreshed, "it is read as it is"


ROWS = [
    "SELECT v * 2 AS w, upper(t) AS t, k, x FROM facts WHERE v > 3 OR t = 't1'",
    "SELECT name, v, v AS again, concat(t, name) AS u FROM facts JOIN keys USING (k)",
    "SELECT name, v, x FROM facts LEFT JOIN keys USING (k) WHERE t <> 't5'",
    "SELECT k, t FROM facts LEFT ANTI JOIN (SELECT k FROM keys WHERE k < 2) USING (k)",
    "SELECT v, n FROM facts JOIN (SELECT k, count(*) AS n FROM keys GROUP BY k) USING (k)",
]


@pytest.mark.parametrize("text", ROWS)
def test_rows_of_new_files_are_added_to_what_is_stored(table: Table, text: str) -> None:
    did, _ = table.asked(text)
    assert did.stores > 0, "vacuous: nothing stored"
    for _ in range(3):
        table.add()
        did, refreshed = table.asked(text)
        assert refreshed
    # So few of them are not written again for a few more.
    assert table.asked(text)[0].loads > 0


def test_a_frame_with_a_python_function_that_the_program_holds(table: Table) -> None:
    def frame(session: SparkSession) -> DataFrame:
        graded = F.udf(lambda text, number: f"{text[-1]}{number % 10}", "string")
        facts = session.read.parquet(str(table.facts)).where("v > 3")
        return facts.select("k", "v", graded("t", "v").alias("grade"))

    for number in range(3):
        new = NewDecisions(table.spark)
        held = frame(table.on)
        found = outcome(held)
        committed(table.spark)
        assert difference(outcome(frame(table.off)), found) is None
        assert (refreshed(new()) > 0) == (number > 0)
        table.add()


def test_what_rounds_beside_the_rows_is_not_computed_for_new_ones_alone(table: Table) -> None:
    text = "SELECT v, m FROM facts JOIN (SELECT k, avg(x) AS m FROM {} GROUP BY k) USING (k)"
    table.off.read.parquet(str(table.facts)).write.parquet(str(table.folder / "before"))
    for session in (table.off, table.on):
        session.read.parquet(str(table.folder / "before")).createOrReplaceTempView("before")
    assert table.asked(text.format("before"))[0].stores > 0, "vacuous: nothing stored"
    table.add()
    assert not table.asked(text.format("before"))[1]


def test_new_partitions_are_added_and_dropped_ones_are_computed_again(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path, ANY, partitioned=True)
    text = "SELECT day, k, sum(v) AS sv, count(*) AS n FROM facts GROUP BY day, k"
    table.asked(text)
    table.add()
    assert table.asked(text)[1]
    shutil.rmtree(table.facts / "day=1")
    assert not table.asked(text)[1]
    assert "NOT_GROWN" in codes(spark)


def test_an_append_that_the_plugin_knows_is_found_as_well(table: Table) -> None:
    table.add(session=table.on)
    settle_writes(table.spark)
    assert table.asked(TOTALS)[0].stores > 0
    table.add(session=table.on)
    settle_writes(table.spark)
    assert table.asked(TOTALS)[1]


def touch(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        os.utime(file, (1_700_000_000, 1_700_000_000))


def replace(folder: Path) -> None:
    files = sorted(folder.glob("*.parquet"))
    shutil.copyfile(files[0], files[1])


def drop(folder: Path) -> None:
    sorted(folder.glob("*.parquet"))[0].unlink()


@pytest.mark.parametrize("change", [touch, replace, drop])
def test_files_that_changed_are_computed_again(table: Table, change: Callable[[Path], None]) -> None:
    table.asked(TOTALS)
    for crc in table.facts.glob(".*.crc"):
        crc.unlink()
    change(table.facts)
    table.add()
    assert not table.asked(TOTALS)[1]
    assert codes(table.spark)[-20:].count("NOT_GROWN") > 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.k, count(*) AS n FROM facts a JOIN facts b ON a.k = b.k AND a.v = b.v GROUP BY a.k",
        "SELECT k, count(*) AS n FROM (SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM facts) WHERE r < 9"
        " GROUP BY k",
        "SELECT name, count(*) AS n FROM keys LEFT JOIN facts USING (k) GROUP BY name",
        "SELECT t, rank() OVER (PARTITION BY k ORDER BY v, t) AS r FROM facts WHERE v > 3",
        "SELECT k, stddev(v) AS s FROM facts GROUP BY k",
        "SELECT k, count(DISTINCT v) AS n FROM facts GROUP BY k",
        "SELECT k, avg(v) AS av FROM facts GROUP BY k",
        "SELECT k, count(*) AS n FROM facts WHERE v > (SELECT avg(v) FROM facts) GROUP BY k",
    ],
)
def test_what_new_files_alone_do_not_give_is_computed(table: Table, text: str) -> None:
    table.asked(text)
    table.add()
    assert not table.asked(text)[1]


def test_both_relations_grew(table: Table) -> None:
    text = JOINED.format("")
    table.asked(text)
    table.add()
    more = table.off.range(7, 9).selectExpr("cast(id AS int) AS k", "concat('key ', id) AS name")
    more.coalesce(1).write.mode("append").parquet(str(table.folder / "keys"))
    assert not table.asked(text)[1]


def test_rows_in_plain_sparks_order_are_not_refreshed_where_that_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path, {})
    for text in (TOTALS, f"SELECT * FROM ({TOTALS}) ORDER BY k", f"SELECT {CALLS} FROM facts"):
        table.asked(text)
    table.add()
    table.views()
    exact = "SELECT k, sum(v) AS sv, count(*) AS n FROM facts GROUP BY k"
    assert table.on.sql(exact).collect() == table.off.sql(exact).collect()
    assert not table.asked(TOTALS)[1]


def test_files_that_are_young_are_not_taken_for_settled(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path, ANY)
    table.asked(TOTALS)
    table.on.conf.set("spark.regions.sources.racySeconds", "60")
    table.add()
    did, refreshed = table.asked(TOTALS)
    assert (did.stores, refreshed) == (0, False)


def test_files_that_change_between_planning_and_running(table: Table) -> None:
    table.asked(TOTALS)
    table.add()
    table.views()
    frame = table.on.sql(TOTALS)
    new = NewDecisions(table.spark)
    frame._jdf.queryExecution().executedPlan()
    assert refreshed(new()) > 0
    start = committed(table.spark)
    touch(table.facts)
    assert difference(outcome(table.off.sql(TOTALS)), outcome(frame), ROUNDED) is None
    assert (committed(table.spark) - start).stores == 0


def test_a_refresh_that_fails_leaves_nothing(table: Table) -> None:
    table.asked(TOTALS)
    broken = table.facts / "part-99999-broken.parquet"
    broken.write_bytes(b"PAR1" * 100)
    table.views()
    start = committed(table.spark)
    with pytest.raises(FAILURES):
        table.on.sql(TOTALS).collect()
    assert (committed(table.spark) - start).stores == 0
    broken.unlink()
    table.add()
    did, refreshed = table.asked(TOTALS)
    assert refreshed and did.stores > 0


def test_two_queries_at_once(table: Table) -> None:
    table.asked(TOTALS)
    table.add()
    table.views()
    expected = outcome(table.off.sql(TOTALS))
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: outcome(table.on.sql(TOTALS)), range(2)):
            assert difference(expected, found, ROUNDED) is None
    committed(table.spark)
    did, refreshed = table.asked(TOTALS)
    assert did.loads > 0 and not refreshed


def test_by_chance(spark: SparkSession, tmp_path: Path) -> None:
    """Random rows in random files, columns or groupings, filters and joins, and files added between the queries."""
    cases = served = 0
    for seed in chance.seeds("growing", at_least=4, seconds=15):
        with chance.trying("growing", seed):
            draw = random.Random(seed)
            (tmp_path / str(seed)).mkdir()
            table = Table(spark, tmp_path / str(seed), ANY, partitioned=draw.random() < 0.5)
            keys = draw.sample(["k", "t", "day", "v % 3", "name"], draw.randint(0, 3))
            calls = [*draw.sample([f"{f}({c})" for f in ("sum", "count", "min", "max") for c in "vx"], 3), "count(*)"]
            columns = ", ".join(
                [
                    *(f"{key} AS k{n}" for n, key in enumerate(keys)),
                    *(f"{call} AS c{n}" for n, call in enumerate(calls)),
                ]
            )
            source = "facts JOIN keys USING (k)" if "name" in keys or draw.random() < 0.3 else "facts"
            kept = draw.choice(["true", "v > 500", "t IN ('t1', 't2')", "x IS NOT NULL"])
            text = f"SELECT {columns} FROM {source} WHERE {kept}" + (f" GROUP BY {', '.join(keys)}" if keys else "")
            if draw.random() < 0.4:
                wanted = draw.sample([*keys, "v", "x * 2 AS y", "upper(t) AS u", "v + k AS w"], 2)
                text = f"SELECT {', '.join(wanted)} FROM {source} WHERE {kept}"
            rounded = {f"c{n}" for n, call in enumerate(calls) if "(x)" in call}
            for _ in range(3):
                table.views()
                new = NewDecisions(spark)
                found = outcome(table.on.sql(text))
                committed(spark)
                assert difference(outcome(table.off.sql(text)), found, rounded) is None
                cases += 1
                served += refreshed(new()) > 0
                for _ in range(draw.randint(0, 2)):
                    table.add(draw.choice((1, 50, 300)))
    print(f"{cases} cases, {served} refreshed")
    assert served > cases / 5
