"""Sorts, windows over whole partitions and hand-salted keys: what is done to their skewed stages keeps the rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.harness import chance
from tests.harness.session import decisions, settle, sibling
from tests.spark.test_skew import ALWAYS, KEYS, explained, kinds, repairs, same, seen, session_of, write
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skewed")
    for seed in (1, 2):  # in two and three files
        write(spark, folder, seed)
    return folder


def told(spark: SparkSession, before: int) -> set[str]:
    """Codes of what was decided on stages of queries after that one."""
    settle(spark)
    return {str(each["code"]) for each in decisions(spark) if each["query"] > before and each["node"] is None}


# ---- Windows ---------------------------------------------------------------------------------------------------------

VALUES = (
    "sum(v)",
    "sum(n)",
    "sum(CAST(n AS DECIMAL(7, 2)))",
    "sum(CAST(n AS DECIMAL(25, 3)))",
    "count(*)",
    "count(k_double)",
    "min(padding)",
    "max(n)",
    "min(k_decimal)",
    "avg(int(v))",
    "avg(CAST(v AS SMALLINT))",
    "avg(CAST(n AS DECIMAL(12, 2)))",
    "bit_xor(n)",
    "max(named_struct('a', v, 'b', k_int))",
    "bool_or(v = 3)",
    "count_if(v > 7)",
)
KEPT = {
    "sum(k_double)": "FLOAT_AGGREGATE",
    "avg(n)": "FLOAT_AGGREGATE",
    "stddev(v)": "FLOAT_AGGREGATE",
    "max(k_double)": "ORDER_DEPENDENT",
    "min(k_text)": "ORDER_DEPENDENT",
    "sum(CAST(n AS DECIMAL(38, 2)))": "ORDER_DEPENDENT",
    "try_sum(n)": "ORDER_DEPENDENT",
    "first(n)": "ORDER_DEPENDENT",
    "collect_list(n)": "ORDER_DEPENDENT",
}


def a_window(seed: int) -> str:
    """A query with one to three values over whole partitions by some keys, by chance."""
    chance = random.Random(seed)
    kinds_of_keys = sorted(set(KEYS) - {"text"})
    keys = [f"k_{kind}" for kind in chance.sample(kinds_of_keys, chance.choice([1, 1, 2]))]
    over = f"OVER (PARTITION BY {', '.join(keys)})"
    if chance.random() < 0.2:
        over = f"{over[:-1]} ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    values = chance.sample(VALUES, chance.choice([1, 2, 3]))
    some = chance.choice(["TRUE", "TRUE", "n % 3 <> 0", "k_int IS NOT NULL", "FALSE"])
    columns = ", ".join(f"{value} {over} AS w{at}" for at, value in enumerate(values))
    inner = f"SELECT n, v, padding, {', '.join(keys)}, {columns} FROM heavy{chance.choice([1, 2])} WHERE {some}"
    top = chance.choice(["rows", "rows", "group", "ranked", "join"])
    if top == "group":
        return f"SELECT {keys[0]}, count(*) AS c, max(w0) AS most FROM ({inner}) GROUP BY {keys[0]}"
    if top == "ranked":
        return f"SELECT *, row_number() OVER (PARTITION BY {keys[0]} ORDER BY n) AS r FROM ({inner})"
    if top == "join":
        return f"SELECT a.*, b.n AS m FROM ({inner}) a LEFT JOIN light1 b ON a.{keys[0]} = b.{keys[0]}"
    return inner


def test_windows_by_chance(spark: SparkSession, plain: SparkSession, always: SparkSession) -> None:
    before, start, tried = repairs(spark), seen(spark), 0
    for seed in chance.seeds("windows", at_least=8, seconds=45):
        with chance.trying("windows", seed):
            same(plain, always, a_window(seed))
        tried += 1
    assert repairs(spark) - before >= 0.4 * tried, f"vacuous: hardly any stage of {tried} was changed"
    assert "TWO_PHASES" in told(spark, start)


def test_every_value_over_a_heavy_partition(spark: SparkSession, plain: SparkSession, always: SparkSession) -> None:
    start = seen(spark)
    values = ", ".join(f"{value} OVER (PARTITION BY k_double) AS w{at}" for at, value in enumerate(VALUES))
    same(plain, always, f"SELECT n, k_double, {values} FROM heavy2")
    assert "TWO_PHASES" in told(spark, start)


def test_values_that_cannot_be_merged(spark: SparkSession, always: SparkSession) -> None:
    start = seen(spark)
    for value in KEPT:
        always.sql(f"SELECT n, k_int, {value} OVER (PARTITION BY k_int) AS w FROM heavy1 WHERE n < 300").collect()
    settle(spark)
    found = {(str(each["code"]), str(each["detail"]).partition(" ")[0]) for each in decisions(spark)[start:]}
    assert found >= {(code, value.partition("(")[0]) for value, code in KEPT.items()}
    assert "TWO_PHASES" not in told(spark, start)


@pytest.mark.parametrize(
    ("big", "fails"),
    [
        # Positive and negative, so that both halves and their carry count; no order of the rows overflows.
        ("(n * 7919 % 401 - 200) * 150000000000000", False),
        ("-9000000000000000000 - n", True),
    ],
)
def test_sums_of_bigint_overflow_only_as_a_whole(
    spark: SparkSession, plain: SparkSession, always: SparkSession, big: str, fails: bool
) -> None:
    start = seen(spark)
    rows = f"(SELECT n, IF(n < 200, 1, n % 12) AS k, {big} AS big FROM heavy2 WHERE n < 300)"
    text = f"SELECT n, sum(big) OVER (PARTITION BY k) AS w FROM {rows}"
    same(plain, always, text)
    assert (outcome(always.sql(text)).error is not None) == fails
    assert "TWO_PHASES" in told(spark, start)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT n, k_text, count(*) OVER (PARTITION BY k_text) AS c FROM heavy1", "EQUAL_BUT_DIFFERENT"),
        ("SELECT n, sum(v) OVER (PARTITION BY k_int ORDER BY n) AS s FROM heavy1", "NOT_MERGEABLE"),
        (
            "SELECT * FROM (SELECT n, row_number() OVER (PARTITION BY k_int ORDER BY n) AS r FROM heavy1) WHERE r < 4",
            "GROUP_LIMITED",
        ),
        ("SELECT k_int, sort_array(collect_set(v)) AS all FROM heavy1 GROUP BY k_int", "STATE_AS_LARGE"),
        ("SELECT k_int, percentile(n, 0.5) AS middle FROM heavy1 GROUP BY k_int", "STATE_AS_LARGE"),
        ("SELECT k_int, approx_percentile(n, 0.5, 10000) AS middle FROM heavy1 GROUP BY k_int", "NOT_MERGEABLE"),
    ],
)
def test_what_stays_together_has_a_reason(
    spark: SparkSession, plain: SparkSession, always: SparkSession, text: str, code: str
) -> None:
    start = seen(spark)
    same(plain, always, text)
    codes = told(spark, start)
    assert code in codes
    assert "TWO_PHASES" not in codes


def test_explain_shows_both_phases_of_a_window(spark: SparkSession, always: SparkSession) -> None:
    text = explained(always, "SELECT n, k_int, sum(v) OVER (PARTITION BY k_int) AS s FROM heavy1")
    assert "two_phases at Window [TWO_PHASES]: predicted" in text
    assert "Copied" in text


# ---- Sorts -----------------------------------------------------------------------------------------------------------

ORDERS = {
    "int": "k_int",
    "double": "k_double",
    "decimal": "k_decimal",
    "text": "k_text",
    "record": "k_record",
    "few": "v",
    "two": "k_int, v",
}


def a_sort(seed: int) -> tuple[str, str]:
    """A query that ends with a sort, and the columns that it sorts by."""
    chance = random.Random(seed)
    order = ORDERS[chance.choice(sorted(ORDERS))]
    how = ", ".join(
        f"{key} {chance.choice(['ASC', 'DESC'])} NULLS {chance.choice(['FIRST', 'LAST'])}" for key in order.split(", ")
    )
    number = chance.choice([1, 2])
    source = chance.choice(
        [
            f"heavy{number} WHERE {chance.choice(['TRUE', 'TRUE', 'n % 5 <> 1', 'FALSE'])}",
            f"(SELECT h.* FROM heavy{number} h LEFT JOIN light1 l ON h.k_int = l.k_int AND l.n % 7 = 0)",
            f"(SELECT *, count(*) OVER (PARTITION BY k_int) AS c FROM heavy{number})",
        ]
    )
    return f"SELECT * FROM {source} ORDER BY {how}", order


def keys_in_order(table: DataFrame, order: str) -> list[str]:
    """The sorted columns, as the sort compares them."""
    rows = table.collect()
    names = order.split(", ")
    return [" ".join(str(row[name]) for name in names).lower().replace("-0.0", "0.0") for row in rows]


def test_sorts_by_chance(spark: SparkSession, plain: SparkSession, always: SparkSession) -> None:
    tried, changed = 0, 0
    for seed in chance.seeds("sorts", at_least=8, seconds=45):
        start = seen(spark)
        text, order = a_sort(seed)

        def both(text: str = text) -> list[DataFrame]:
            return [plain.sql(text), always.sql(text)]

        with chance.trying("sorts", seed):
            expected, found = both()
            assert keys_in_order(found, order) == keys_in_order(expected, order), text
            # Strings that a collation takes for equal are ties, whichever bytes they have; their order is compared
            # above.
            rows = [replace(outcome(table), sorting=None) if order == "k_text" else outcome(table) for table in both()]
            assert difference(*rows) is None, text
        tried += 1
        changed += "TIES_SPREAD" in told(spark, start)
    assert changed >= 0.4 * tried, f"vacuous: hardly any of {tried} sorts was changed"


def test_a_heavy_value_fills_several_files(spark: SparkSession, always: SparkSession, tmp_path: Path) -> None:
    """Files of a sorted table come in the order of its ranges; most rows have one value."""
    session = sibling(spark, ALWAYS | {"spark.sql.adaptive.coalescePartitions.enabled": "false"})
    table = always.range(0, 20000, 1, 8).selectExpr("IF(id % 10 < 7, 50, id % 100) AS k", "id AS n")
    table.write.parquet(str(tmp_path / "in"))
    session.read.parquet(*map(str, sorted((tmp_path / "in").glob("*.parquet")))).createOrReplaceTempView("ties")
    session.conf.set("spark.sql.files.openCostInBytes", "64k")  # a map task for each file
    start = seen(spark)
    session.table("ties").orderBy("k").write.parquet(str(tmp_path / "out"))
    assert "TIES_SPREAD" in told(spark, start)
    written = session.read.parquet(str(tmp_path / "out")).withColumn("file", F.input_file_name())
    files = written.groupBy("file").agg(F.count("*").alias("c"), F.min("k"), F.max("k")).orderBy("file").collect()
    assert [row[2] for row in files] == sorted(row[2] for row in files)
    assert all(before[3] <= after[2] for before, after in zip(files, files[1:], strict=False))
    assert sum(row.c for row in files) == 20000
    assert max(row.c for row in files) < 0.4 * 20000
    assert len([row for row in files if row[2] <= 50 <= row[3]]) >= 4


LIMITED = {"spark.sql.execution.topKSortFallbackThreshold": "2"}
LEFT: dict[str, tuple[Callable[[SparkSession], object], str]] = {
    "read as an RDD": (lambda s: s.table("heavy1").sort("k_int").rdd.glom().count(), "PARTITIONS_VISIBLE"),
    "limited": (lambda s: s.table("heavy1").sort("k_int").limit(100).collect(), "LIMIT_WITHOUT_TOTAL_ORDER"),
    "collected again": (
        lambda s: s.sql("SELECT collect_list(n) FROM (SELECT * FROM heavy1 ORDER BY k_int)").collect(),
        "ORDER_DEPENDENT",
    ),
    "numbered": (
        lambda s: s.table("heavy1").sort("k_int").select("*", F.monotonically_increasing_id()).collect(),
        "ORDER_DEPENDENT",
    ),
    "given to a function": (
        lambda s: s.table("heavy1").select("n").sort("n").mapInPandas(lambda parts: parts, "n long").collect(),
        "ORDER_DEPENDENT",
    ),
    "ranges of the user's": (
        lambda s: s.table("heavy1").repartitionByRange(5, "k_int").sort("k_int").collect(),
        "REPARTITION",
    ),
    "only observed": (lambda s: s.table("heavy1").sort("k_int").collect(), "OBSERVE_ONLY"),
}


@pytest.mark.parametrize("name", LEFT)
def test_sorts_that_are_left_alone(spark: SparkSession, tables: Path, name: str) -> None:
    session = session_of(spark, tables, ALWAYS | LIMITED)
    if name == "only observed":
        session.conf.set("spark.regions.mode", "observe")
    run, code = LEFT[name]
    start = seen(spark)
    run(session)
    codes = told(spark, start)
    assert code in codes and "TIES_SPREAD" not in codes


def test_a_sort_of_little_is_not_asked_about(spark: SparkSession, tables: Path) -> None:
    session = session_of(spark, tables, ALWAYS | {"spark.regions.skew.strategy": "cost"})
    start = seen(spark)
    session.table("heavy1").sort("k_int").collect()
    assert told(spark, start) == set()


def test_equal_keys_that_another_operator_relies_on(
    spark: SparkSession, plain: SparkSession, always: SparkSession
) -> None:
    """A cached sort is read by a group-by on its key, which needs an exchange then."""
    query = "SELECT k_int, n FROM heavy1 ORDER BY k_int"
    always.sql(f"CACHE TABLE sorted_rows AS {query}")
    try:
        grouped = "SELECT k_int, count(*) AS c, max(n) AS m FROM {} GROUP BY k_int"
        expected = outcome(plain.sql(grouped.format("heavy1")))
        assert difference(expected, outcome(always.sql(grouped.format("sorted_rows")))) is None
    finally:
        always.sql("UNCACHE TABLE sorted_rows")


# ---- Salts -----------------------------------------------------------------------------------------------------------

SMALL = "(SELECT *, explode(sequence(0, 3)) AS salt FROM light1)"
SALTED = {
    "a random number": "SELECT a.n, b.n FROM (SELECT *, int(rand() * 4) AS salt FROM heavy1) a "
    f"JOIN {SMALL} b ON a.k_int = b.k_int AND a.salt = b.salt",
    "part of the key": "SELECT a.n, b.n FROM (SELECT n, concat(k_int, '_', int(rand() * 4)) AS k FROM heavy1) a "
    f"JOIN (SELECT n, concat(k_int, '_', salt) AS k FROM {SMALL}) b ON a.k = b.k",
    "a remainder": f"SELECT a.n, b.n FROM heavy1 a JOIN {SMALL} b "
    "ON a.k_int = b.k_int AND pmod(xxhash64(a.n), 4) = b.salt",
    "an aggregate": "SELECT k_int, pmod(hash(n), 4) AS salt, collect_list(n) AS all FROM heavy1 "
    "GROUP BY k_int, pmod(hash(n), 4)",
}
NOT_SALTED = {
    "a remainder of a number": "SELECT k_int, v % 4 AS q, collect_list(n) AS all FROM heavy1 GROUP BY k_int, v % 4",
    "an exploded key alone": "SELECT a.n, b.n FROM heavy1 a "
    "JOIN (SELECT n, explode(sequence(0, 3)) AS k FROM light1) b ON a.k_int = b.k",
    "a random column beside": "SELECT a.n, a.r > 2 AS r, b.n FROM (SELECT *, rand() AS r FROM heavy1) a "
    "JOIN light1 b ON a.k_int = b.k_int",
    "a random choice": "SELECT a.n, b.n FROM (SELECT n, IF(rand() < 2, k_int, 0) AS k FROM heavy1) a "
    "JOIN light1 b ON a.k = b.k_int",
    "a hash that is the key": "SELECT pmod(hash(k_int), 100) AS h, collect_list(n) AS all FROM heavy1 "
    "GROUP BY pmod(hash(k_int), 100)",
}


@pytest.mark.parametrize("name", [*SALTED, *NOT_SALTED])
def test_salts_are_recognized(spark: SparkSession, plain: SparkSession, always: SparkSession, name: str) -> None:
    start, before = seen(spark), repairs(spark)
    text = (SALTED | NOT_SALTED)[name]
    expected, found = plain.sql(text).count(), len(always.sql(text).collect())
    assert found == expected
    codes = told(spark, start)
    assert ("HAND_SALTED" in codes) == (name in SALTED)
    assert (repairs(spark) == before) == (name in SALTED)


def test_the_kinds_are_told_apart(spark: SparkSession, always: SparkSession) -> None:
    before = seen(spark)
    always.sql("SELECT k_int, row_number() OVER (PARTITION BY k_int ORDER BY n) AS r FROM heavy1").collect()
    assert ("Window", "order") in kinds(spark, before)
