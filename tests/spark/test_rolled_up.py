"""Aggregates that are made of stored ones with more groups: with the plugin each query gives plain Spark's rows."""

from __future__ import annotations

import math
import os
import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.harness import chance
from tests.harness.session import NewDecisions, committed, decisions, sibling, status
from tests.spark.test_same_rows import OFF, ON
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

RULE = "ROLLED_UP"
ANY = {"spark.regions.recycle.rowOrder": "any"}
FINE = """SELECT k, p, t, {} FROM facts GROUP BY k, p, t"""
PARTS = """sum(i) AS si, sum(l) AS sl, sum(d) AS sd, sum(w) AS sw, count(*) AS n, count(i) AS ni, count(l) AS nl,
 count(d) AS nd, count(w) AS nw, count(x) AS nx, sum(x) AS sx, min(x) AS lx, max(t) AS mt, min(i) AS li, max(d) AS hd,
 bit_and(i) AS ba, bit_or(l) AS bo, bit_xor(l) AS bx, bool_and(b) AS every, bool_or(b) AS some,
 sum(i) FILTER (WHERE b) AS sb, count_if(b) AS cb"""


@pytest.fixture
def facts(spark: SparkSession, tmp_path: Path) -> Path:
    """Keys k, p, t; values of each type, with nulls; 2,000 rows in three files."""
    folder = tmp_path / "facts"
    rows = sibling(spark, OFF).range(0, 2000, 1, 3)
    rows.selectExpr(
        "cast(id % 5 AS int) AS k",
        "CASE WHEN id % 11 = 0 THEN null ELSE cast(id % 3 AS bigint) END AS p",
        "concat('t', id % 4) AS t",
        "CASE WHEN id % 7 = 0 THEN null ELSE cast(id * 13 - 9000 AS int) END AS i",
        "id * 1000003 - 7 AS l",
        "CASE WHEN id % 6 = 0 THEN null ELSE cast(id AS decimal(7,2)) / 8 END AS d0",
        "cast(id * 37 AS decimal(20,4)) / 3 AS w0",
        "CASE WHEN id % 9 = 0 THEN null ELSE sqrt(id) / 3 END AS x",
        "CASE WHEN id % 8 = 0 THEN null ELSE id % 2 = 0 END AS b",
    ).selectExpr("*", "cast(d0 AS decimal(7,2)) AS d", "cast(w0 AS decimal(20,4)) AS w").write.parquet(str(folder))
    return folder


def session(spark: SparkSession, confs: dict[str, str], facts: Path) -> SparkSession:
    made = sibling(spark, confs)
    made.read.parquet(str(facts)).createOrReplaceTempView("facts")
    return made


def rolled_up(found: list[dict[str, object]]) -> int:
    return sum(row["code"] == RULE and row["operator"] == "Aggregate" for row in found)


class Pair:
    """Plain Spark and the plugin over one table; the plugin has the stored aggregates that it is given."""

    def __init__(self, spark: SparkSession, facts: Path, confs: dict[str, str]) -> None:
        self.spark = spark
        self.off, self.on = session(spark, OFF | confs, facts), session(spark, ON | confs, facts)

    def store(self, text: str) -> None:
        before = committed(self.spark)
        self.on.sql(text).collect()
        assert (committed(self.spark) - before).stores > 0, "vacuous: nothing stored"

    def rolls_up(self, text: str, rounded: tuple[str, ...] = ()) -> bool:
        """Assert that the rows are plain Spark's; gives whether they came from groups that were merged."""
        new = NewDecisions(self.spark)
        found = outcome(self.on.sql(text))
        assert difference(outcome(self.off.sql(text)), found, rounded) is None
        return rolled_up(new()) > 0


@pytest.fixture
def pair(spark: SparkSession, facts: Path) -> Pair:
    return Pair(spark, facts, ANY)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_function_that_can_be_merged(spark: SparkSession, facts: Path, ansi: str) -> None:
    pair = Pair(spark, facts, ANY | {"spark.sql.ansi.enabled": ansi})
    pair.store(FINE.format(PARTS))
    assert pair.rolls_up(f"SELECT k, {PARTS} FROM facts GROUP BY k", ("sx",))
    assert pair.rolls_up(f"SELECT {PARTS} FROM facts", ("sx",))
    means = "avg(i) AS ai, avg(d) AS ad, avg(w) AS aw, avg(x) AS ax"
    assert pair.rolls_up(f"SELECT p, t, {means} FROM facts GROUP BY p, t", ("ax",))
    # Without ANSI a sum of bigint wraps around, and an average's state does not.
    assert pair.rolls_up("SELECT t, avg(l) AS al FROM facts GROUP BY t", ("al",)) == (ansi == "true")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, sum(i) AS s FROM facts WHERE p = 1 GROUP BY k",
        "SELECT k, sum(i) AS s FROM facts WHERE p IS NULL AND t LIKE '%3' GROUP BY k",
        "SELECT k, sum(i) AS s FROM facts WHERE k < 3 GROUP BY k HAVING sum(i) > 100",
        "SELECT k + 1 AS k1, upper(t) AS u, sum(i) / count(*) AS m FROM facts GROUP BY k + 1, upper(t)",
        "SELECT DISTINCT p FROM facts",
        "SELECT DISTINCT p, t FROM facts WHERE k = 2",
        "SELECT count(DISTINCT t) AS n, sum(DISTINCT k) AS s, max(k) AS m FROM facts",
        "SELECT p, count(DISTINCT t, k) AS n, min(upper(t)) AS t FROM facts GROUP BY p",
        "SELECT count(*) AS n, sum(i) AS s FROM facts WHERE t = 'none'",
        "SELECT k, count(*) AS n FROM facts WHERE t = 'none' GROUP BY k",
        "SELECT a.k, a.s, b.n FROM (SELECT k, sum(i) AS s FROM facts GROUP BY k) a"
        " JOIN (SELECT k, count(*) AS n FROM facts WHERE p = 1 GROUP BY k) b ON a.k = b.k",
        "SELECT k, sum(i) AS s FROM facts GROUP BY k ORDER BY k LIMIT 2",
    ],
)
def test_filters_and_keys_of_stored_groups(pair: Pair, text: str) -> None:
    pair.store(FINE.format("sum(i) AS si, count(*) AS n"))
    assert pair.rolls_up(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT k, stddev(x) AS s FROM facts GROUP BY k", "NOT_MERGEABLE"),
        ("SELECT k, count(DISTINCT i) AS n FROM facts GROUP BY k", "NOT_COVERED"),
        ("SELECT k, sum(l) AS s FROM facts GROUP BY k", "NOT_COVERED"),
        ("SELECT k, avg(d) AS s FROM facts GROUP BY k", "NOT_COVERED"),
        ("SELECT k, sum(i) AS s FROM facts WHERE l > 5 GROUP BY k", "NOT_COVERED"),
        ("SELECT b, sum(i) AS s FROM facts GROUP BY b", "NOT_COVERED"),
    ],
)
def test_what_stored_groups_cannot_give_is_computed(pair: Pair, text: str, code: str) -> None:
    pair.store(FINE.format("sum(i) AS si, sum(d) AS sd, count(*) AS n"))
    assert not pair.rolls_up(text)
    found = [row for row in decisions(pair.spark) if row["operator"] == "Aggregate"]
    assert code in {row["code"] for row in found[-3:]}


def test_groups_of_other_rows_serve_nothing(pair: Pair) -> None:
    pair.store("SELECT k, p, t, sum(i) AS s FROM facts WHERE l > 1000 GROUP BY k, p, t")
    assert not pair.rolls_up("SELECT k, sum(i) AS s FROM facts GROUP BY k")
    assert pair.rolls_up("SELECT k, sum(i) AS s FROM facts WHERE l > 1000 AND p = 2 GROUP BY k")
    assert not pair.rolls_up("SELECT k, sum(i) AS s FROM facts WHERE l > 1001 GROUP BY k")


def test_groups_cut_off_by_having_are_not_merged(pair: Pair) -> None:
    pair.store("SELECT k, t, n FROM (SELECT k, t, count(*) AS n FROM facts GROUP BY k, t) WHERE n > 100")
    assert not pair.rolls_up("SELECT k, sum(l) AS n FROM facts GROUP BY k")
    pair.rolls_up("SELECT k, count(*) AS n FROM facts GROUP BY k")


def test_one_row_without_keys_makes_no_groups(pair: Pair) -> None:
    pair.store("SELECT count(*) AS n FROM facts WHERE k < 0")
    assert not pair.rolls_up("SELECT 1 AS one, count(*) AS n FROM facts WHERE k < 0 GROUP BY 1")


def test_sums_that_overflow_fail_as_they_do_without_the_plugin(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "large"
    large = sibling(spark, OFF).range(8).selectExpr("cast(id % 2 AS int) AS k", "id AS t", f"{2**61} AS l")
    large.coalesce(1).write.parquet(str(folder))
    for ansi in ("true", "false"):
        pair = Pair(spark, folder, ANY | {"spark.sql.ansi.enabled": ansi})
        pair.store("SELECT k, t, sum(l) AS s FROM facts GROUP BY k, t")
        found = outcome(pair.off.sql("SELECT k, sum(l) AS s FROM facts GROUP BY k"))
        assert (found.error is not None) == (ansi == "true")
        assert pair.rolls_up("SELECT k, sum(l) AS s FROM facts GROUP BY k")


def test_the_order_of_rows_is_plain_sparks(spark: SparkSession, facts: Path) -> None:
    """By default: only where nobody sees another order."""
    pair = Pair(spark, facts, {})
    pair.store(FINE.format("sum(i) AS si, count(*) AS n"))
    seen = "SELECT k, sum(i) AS s FROM facts GROUP BY k"
    assert pair.rolls_up(f"{seen} ORDER BY k")
    assert pair.rolls_up("SELECT sum(i) AS s, count(*) AS n FROM facts WHERE k = 1")
    assert pair.rolls_up(f"SELECT max(s) AS m FROM ({seen})")
    assert not pair.rolls_up(seen)
    assert "ROW_ORDER" in {row["code"] for row in decisions(spark)[-6:]}
    assert pair.on.sql(seen).collect() == pair.off.sql(seen).collect()


def test_without_float_aggregates_sums_of_doubles_are_not_merged(spark: SparkSession, facts: Path) -> None:
    pair = Pair(spark, facts, ANY | {"spark.regions.recycle.floatAggregates": "false"})
    pair.store(FINE.format("sum(i) AS si, count(i) AS ni, min(i) AS li, min(x) AS lx"))
    assert pair.rolls_up("SELECT k, min(i) AS li FROM facts GROUP BY k")
    assert not pair.rolls_up("SELECT k, avg(i) AS ai FROM facts GROUP BY k")
    # 0.0 and -0.0 are equal, and the first that comes is kept.
    assert not pair.rolls_up("SELECT k, min(x) AS lx FROM facts GROUP BY k")


def test_the_same_float_twice_in_a_query_is_the_same(pair: Pair) -> None:
    pair.store(FINE.format("sum(x) AS sx, count(*) AS n"))
    totals = "(SELECT k, sum(x) AS s FROM facts GROUP BY k)"
    text = f"SELECT count(*) AS n FROM {totals} a JOIN {totals} b ON a.k = b.k AND a.s = b.s"
    pair.rolls_up(text)
    assert pair.on.sql(text).collect()[0].n == 5


def fallbacks(spark: SparkSession) -> int:
    return int(status(spark)["counter.fallbacks"])


def test_a_file_that_is_touched_after_planning_is_read_again(pair: Pair, facts: Path) -> None:
    pair.store(FINE.format("sum(i) AS si, count(*) AS n"))
    frame = pair.on.sql("SELECT k, sum(i) AS s, count(*) AS n, max(t) AS t FROM facts GROUP BY k")
    assert "[ROLLED_UP]" in explained(frame)
    rows = sorted(map(tuple, pair.off.sql("SELECT k, sum(i), count(*), max(t) FROM facts GROUP BY k").collect()))
    before = fallbacks(pair.spark)
    for part in facts.glob("*.parquet"):
        os.utime(part, (1_700_000_000, 1_700_000_000))
    assert sorted(map(tuple, frame.collect())) == rows
    assert fallbacks(pair.spark) > before


def explained(frame: DataFrame) -> str:
    return str(frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple"))  # type: ignore[union-attr]


def test_stored_groups_that_are_gone_are_computed(pair: Pair, recycle_dir: Path) -> None:
    pair.store(FINE.format("sum(i) AS si, count(*) AS n"))
    text = "SELECT k, sum(i) AS s, count(*) AS n FROM facts GROUP BY k"
    frame = pair.on.sql(text)
    assert "[ROLLED_UP]" in explained(frame)
    before = fallbacks(pair.spark)
    for manifest in recycle_dir.rglob("_manifest.json"):
        manifest.unlink()
    assert difference(outcome(pair.off.sql(text)), outcome(frame)) is None
    assert fallbacks(pair.spark) > before


# By chance

KEYS = {"a": "int", "b": "string", "c": "date", "e": "boolean", "f": "decimal(5,1)"}
VALUES = {"i": "int", "s": "smallint", "l": "bigint", "d": "decimal(9,3)", "g": "decimal(30,2)", "x": "double"}
FUNCTIONS = ("sum", "count", "min", "max", "avg")
FILTERS = {"a": "a > 0", "b": "b IN ('u', 'v')", "c": "c IS NOT NULL", "e": "e", "f": "f <> 1.5 OR f IS NULL"}


def value(draw: random.Random, kind: str) -> Any:
    if draw.random() < 0.15:
        return None
    return {
        "int": lambda: draw.choice((0, 1, -1, draw.randint(-(2**31), 2**31 - 1))),
        "smallint": lambda: draw.randint(-32768, 32767),
        "bigint": lambda: draw.randint(-(2**50), 2**50),
        "string": lambda: draw.choice("uvwU "),
        "date": lambda: date(2020, 1, draw.randint(1, 3)),
        "boolean": lambda: draw.random() < 0.5,
        "decimal(5,1)": lambda: Decimal(draw.randint(-20, 20)) / 2,
        "decimal(9,3)": lambda: Decimal(draw.randint(-(10**9) + 1, 10**9 - 1)).scaleb(-3),
        "decimal(30,2)": lambda: Decimal(draw.randint(-(10**28), 10**28)).scaleb(-2),
        "double": lambda: draw.choice((math.nan, math.inf, 0.0, -0.0, draw.random(), draw.random() * 1e6)),
    }[kind]()


def test_by_chance(spark: SparkSession, tmp_path: Path) -> None:
    """Random keys and values with nulls and NaN, random groupings, filters and functions, stored and asked."""
    cases = served = 0
    for seed in chance.seeds("rolled_up", at_least=8, seconds=20):
        with chance.trying("rolled_up", seed):
            draw = random.Random(seed)
            folder = tmp_path / str(seed)
            columns = KEYS | VALUES
            schema = StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in columns.items()))
            rows = [[value(draw, kind) for kind in columns.values()] for _ in range(draw.choice((0, 1, 60, 400)))]
            frame = sibling(spark, OFF).createDataFrame(rows, schema)
            frame.repartition(draw.randint(1, 4)).write.parquet(str(folder))
            pair = Pair(spark, folder, ANY | {"spark.sql.ansi.enabled": draw.choice(("true", "false"))})
            fine = draw.sample(sorted(KEYS), draw.randint(2, 4))
            calls = [f"{call}({name})" for name in VALUES for call in FUNCTIONS] + ["count(*)"]
            stored = draw.sample(calls, 12)
            pair.on.sql(grouped(fine, stored, "")).collect()
            committed(spark)
            for _ in range(4):
                coarse = draw.sample(fine, draw.randint(0, len(fine) - 1))
                kept = draw.choice(["", *(FILTERS[key] for key in fine)])
                asked = draw.sample(stored, draw.randint(0 if coarse else 1, 3))
                if draw.random() < 0.25:
                    asked.append(draw.choice(calls))
                text = grouped(coarse, asked, kept)
                doubles = tuple(f"c{n}" for n, call in enumerate(asked) if "avg" in call or "(x)" in call)
                cases += 1
                served += pair.rolls_up(text, doubles)
    print(f"{cases} cases, {served} served")
    assert served > cases / 10


def grouped(keys: list[str], calls: list[str], kept: str) -> str:
    columns = ", ".join([*keys, *(f"{call} AS c{n}" for n, call in enumerate(calls))])
    where = f" WHERE {kept}" if kept else ""
    return f"SELECT {columns} FROM facts{where}" + (f" GROUP BY {', '.join(keys)}" if keys else "")
