"""Aggregates whose last digits depend on the order of rows: stored, and one value wherever a query has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import committed, sibling
from tests.spark.test_same_rows import OFF, ON, Counters, Query
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

ANY = {"spark.regions.recycle.rowOrder": "any"}
# Sums in another order.
SMALL_PARTITIONS = {"spark.sql.files.maxPartitionBytes": "20k", "spark.sql.files.openCostInBytes": "1"}
REPEATED = "REPEATED_FLOAT_AGGREGATE"
GROUPED = """SELECT k, sum(x) AS total, avg(x) AS mean, stddev(x) AS spread, var_pop(x) AS variance,
 corr(x, y) AS related, covar_samp(x, y) AS common, skewness(x) AS skew, avg(id) AS middle FROM facts GROUP BY k"""
REVENUE = "WITH revenue AS (SELECT k, sum(x) AS total FROM facts WHERE id % 10 < {} GROUP BY k) "
# TPC-H Q15 has its revenue as doubles here.
Q15 = REVENUE + "SELECT name, total FROM keys JOIN revenue USING (k) WHERE total = (SELECT max(total) FROM revenue)"
SELF_JOIN = REVENUE + "SELECT a.k, b.total FROM revenue a JOIN revenue b ON a.total = b.total AND a.k <= b.k"


@pytest.fixture
def facts(spark: SparkSession, tmp_path: Path) -> Path:
    """Doubles of all sizes in four files, some thousand to a key: their sums differ with the order."""
    folder = tmp_path / "facts"
    rows = sibling(spark, OFF).range(0, 40_000, 1, 4)
    rows.selectExpr("id", "id % 13 AS k", "exp(id % 37) / 7 AS x", "sqrt(id) + 0.1 AS y").write.parquet(str(folder))
    keys = sibling(spark, OFF).range(13).selectExpr("id AS k", "concat('key ', id) AS name")
    keys.coalesce(1).write.parquet(str(tmp_path / "keys"))
    return folder


def session(spark: SparkSession, confs: dict[str, str], facts: Path) -> SparkSession:
    made = sibling(spark, confs)
    for path in (facts, facts.parent / "keys"):
        made.read.parquet(str(path)).createOrReplaceTempView(path.name)
    return made


def ran(session: SparkSession, query: Query) -> tuple[DataFrame, Counters]:
    """The frame, which has run, and what came of the run."""
    before = committed(session)
    frame = query(session)
    frame.collect()
    return frame, committed(session) - before


def same(spark: SparkSession, facts: Path, query: Query, rounded: tuple[str, ...]) -> tuple[Counters, Counters]:
    """Assert that plain, cold and warm runs agree: exactly, and `rounded` columns to twelve digits."""
    expected = outcome(query(session(spark, OFF, facts)))
    assert expected.rows, "vacuous: no rows"
    on = session(spark, ON, facts)
    found = []
    for _ in range(2):
        before = committed(spark)
        rows = outcome(query(on))
        found.append(committed(spark) - before)
        assert difference(expected, rows, rounded) is None
    return found[0], found[1]


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        (GROUPED, ("total", "mean", "spread", "variance", "related", "common", "skew", "middle")),
        ("SELECT sum(x) AS total, avg(float(y)) AS mean, try_sum(x) AS tried FROM facts", ("total", "mean", "tried")),
        ("SELECT k, sum(x) AS total FROM facts GROUP BY k HAVING sum(y) > 3000", ("total",)),
        ("SELECT id, sum(x) OVER (PARTITION BY k) AS total FROM facts", ("total",)),
        ("SELECT k, total, rank() OVER (ORDER BY total) AS r FROM (SELECT k, sum(x) AS total FROM facts GROUP BY k)",
         ("total",)),
        ("SELECT max(total) AS most FROM (SELECT k, sum(x) AS total FROM facts GROUP BY k)", ("most",)),
    ],
)  # fmt: skip
def test_float_aggregates_are_stored_and_read(
    spark: SparkSession, facts: Path, text: str, rounded: tuple[str, ...]
) -> None:
    cold, warm = same(spark, facts, lambda s: s.sql(text), rounded)
    assert cold.stores > 0
    assert warm.loads > 0


def test_what_is_read_has_the_bits_that_were_stored(spark: SparkSession, facts: Path) -> None:
    on = session(spark, ON, facts)
    first = outcome(on.sql(GROUPED))
    assert committed(spark).stores > 0
    _, warm = ran(on, lambda s: s.sql(GROUPED))
    assert warm.loads > 0
    # Other partitions of the input, and so sums in another order, were they computed.
    other = session(spark, ON | ANY | SMALL_PARTITIONS, facts)
    before = committed(spark)
    assert difference(first, outcome(other.sql(GROUPED))) is None
    assert (committed(spark) - before).loads > 0
    plain = outcome(session(spark, OFF | SMALL_PARTITIONS, facts).sql(GROUPED))
    assert difference(first, plain) is not None, "vacuous: all orders give the same bits"


def test_switched_off(spark: SparkSession, facts: Path) -> None:
    off = session(spark, ON | {"spark.regions.recycle.floatAggregates": "false"}, facts)
    for _ in range(2):
        _, counted = ran(off, lambda s: s.sql(GROUPED))
        assert counted.loads == 0
    codes = {decline["code"] for decline in spark_regions.decisions(off, 1)[-1]["declines"]}
    assert "FLOAT_AGGREGATE" in codes
    # Nor is anything read that others stored.
    ran(session(spark, ON, facts), lambda s: s.sql(GROUPED))
    assert ran(off, lambda s: s.sql(GROUPED))[1].loads == 0


@pytest.mark.parametrize("text", [Q15, SELF_JOIN], ids=["Q15", "self join"])
def test_two_places_of_a_query_agree(spark: SparkSession, facts: Path, text: str) -> None:
    """A sum stored by another query, over other partitions, is not read for one of two places that are compared."""
    revenue = (REVENUE + "SELECT k, total FROM revenue").format(10)
    most = (REVENUE + "SELECT max(total) AS most FROM revenue").format(10)
    stores = session(spark, ON | ANY, facts)
    for stored in (revenue, most):
        ran(stores, lambda s, stored=stored: s.sql(stored))  # type: ignore[misc]
    reads = session(spark, ON | ANY | SMALL_PARTITIONS, facts)
    assert ran(reads, lambda s: s.sql(revenue))[1].loads > 0
    plain = outcome(session(spark, OFF | SMALL_PARTITIONS, facts).sql(text.format(10)))
    assert plain.rows, "vacuous: no place agrees with itself in plain Spark"
    for _ in range(2):
        assert difference(plain, outcome(reads.sql(text.format(10))), ("total",)) is None
        committed(spark)


def test_a_query_with_two_places_is_read_as_a_whole_only(spark: SparkSession, facts: Path) -> None:
    text = Q15.format(9)
    on = session(spark, ON, facts)
    ran(on, lambda s: s.sql((REVENUE + "SELECT k, total FROM revenue").format(9)))
    frame, cold = ran(on, lambda s: s.sql(text))
    assert cold.loads == 0
    assert REPEATED in str(spark_regions.why_not(frame))
    declined = [decline for decision in spark_regions.decisions(on, 4) for decline in decision["declines"]]
    assert REPEATED in {decline["code"] for decline in declined}
    warm, counted = ran(on, lambda s: s.sql(text))
    assert counted.loads > 0
    assert "Scan parquet" not in warm._jdf.queryExecution().executedPlan().toString()


def test_both_places_are_computed_once(spark: SparkSession, facts: Path) -> None:
    # Without a store, all that is left to do is to compute once.
    on = session(spark, ON | ANY | {"spark.regions.recycle.maxBytes": "0"}, facts)
    text = (REVENUE + "SELECT a.k, b.total FROM revenue a JOIN revenue b ON a.total = b.total").format(8)
    _, cold = ran(on, lambda s: s.sql(text))
    kinds = {action["kind"] for decision in spark_regions.decisions(on, 3) for action in decision["actions"]}
    assert "share" in kinds, (kinds, cold)
    expected = outcome(session(spark, OFF, facts).sql(text))
    assert difference(expected, outcome(on.sql(text)), ("total",)) is None


def test_a_dataframe_joined_with_itself(spark: SparkSession, facts: Path) -> None:
    """The program's own DataFrame, which other queries have stored by then."""

    def query(s: SparkSession) -> DataFrame:
        totals = s.table("facts").groupBy("k").agg(F.sum("x").alias("total"))
        totals.count()
        totals.collect()
        best = totals.agg(F.max("total").alias("total"))
        return totals.join(best, "total")

    same(spark, facts, query, ("total",))


def test_a_subquery_alone_leaves_its_aggregate_to_spark(spark: SparkSession, facts: Path) -> None:
    """Whether the query around it has the same one is not known when it is decided; the query as a whole is read."""
    text = "SELECT id FROM facts WHERE x > (SELECT avg(x) FROM facts) AND k < 4"
    cold, warm = same(spark, facts, lambda s: s.sql(text), ())
    assert cold.stores > 0
    assert warm.loads == 1


def test_a_subquery_with_a_limit_counts_as_a_place(spark: SparkSession, facts: Path) -> None:
    text = (
        REVENUE
        + "SELECT k, total FROM revenue WHERE total = (SELECT total FROM revenue ORDER BY total DESC, k LIMIT 1)"
    ).format(7)
    on = session(spark, ON, facts)
    ran(on, lambda s: s.sql((REVENUE + "SELECT k, total FROM revenue").format(7)))
    expected = outcome(session(spark, OFF, facts).sql(text))
    frame, counted = ran(on, lambda s: s.sql(text))
    assert counted.loads == 0, frame._jdf.queryExecution().executedPlan().toString()
    assert difference(expected, outcome(frame), ("total",)) is None
