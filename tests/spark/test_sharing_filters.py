"""Places of one query with other filters over one subplan: computed once where that is sound, with the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.harness.session import decisions, sibling
from tests.spark.test_same_rows import OFF
from tests.spark.test_sharing import ALWAYS, session_of, shared
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

TOTALS = """WITH base AS (
  SELECT c.id, c.name, d.year, d.month, sum(s.amount) AS total, count(s.note) AS notes
  FROM sales s JOIN days d ON s.day = d.day JOIN customers c ON s.customer = c.id WHERE s.amount <> {salt}
  GROUP BY c.id, c.name, d.year, d.month)
"""
ROWS = """WITH base AS (
  SELECT s.customer, s.day, s.amount, s.note, d.year, d.month
  FROM sales s LEFT JOIN days d ON s.day = d.day WHERE s.amount <> {salt} OR s.amount IS NULL)
"""
# Name to query, and how many places share at least.
QUERIES: dict[str, tuple[str, int]] = {
    "two years": (
        TOTALS
        + """SELECT a.name, a.total, b.total AS later FROM base a JOIN base b ON a.id = b.id AND a.month = b.month
        WHERE a.year = 2001 AND b.year = 2002""",
        2,
    ),
    "a filter on the aggregate in one place": (
        TOTALS
        + """SELECT a.name, a.total, b.notes FROM base a JOIN base b ON a.id = b.id
        WHERE a.year = 2001 AND a.total > 50 AND b.year = 2002""",
        2,
    ),
    "no filter in one place": (
        TOTALS + """SELECT name, total FROM base WHERE year = 2001 UNION ALL SELECT name, notes FROM base""",
        2,
    ),
    "three places, two with the same filter": (
        TOTALS
        + """SELECT name, total FROM base WHERE year = 2001 UNION ALL SELECT name, notes FROM base WHERE year = 2001
        UNION ALL SELECT name, max(total) FROM base WHERE year = 2003 OR year IS NULL GROUP BY name""",
        3,
    ),
    "several columns filtered": (
        TOTALS
        + """SELECT name, total FROM base WHERE year = 2001 AND month IN (1, 2)
        UNION ALL SELECT name, total FROM base WHERE month = 3 AND name LIKE 'n1%'""",
        2,
    ),
    "a filter that no row passes": (
        TOTALS
        + """SELECT a.name, a.total, b.total AS later FROM base a LEFT JOIN base b ON a.id = b.id AND b.year = 1900
        WHERE a.year = 2001""",
        2,
    ),
    "nulls in what is filtered": (
        ROWS
        + """SELECT count(*), sum(amount) FROM base WHERE amount > 5 UNION ALL SELECT count(*), count(note) FROM base
        WHERE amount IS NULL UNION ALL SELECT count(*), count(day) FROM base WHERE NOT (amount > 5)""",
        3,
    ),
    "the optional side of an outer join": (
        ROWS
        + """SELECT customer, month FROM base WHERE year = 2001 UNION ALL SELECT customer, year FROM base
        WHERE month = 3 UNION ALL SELECT customer, day FROM base WHERE year IS NULL""",
        # What is null-extended is filtered above the join, except where the filter makes it an inner join.
        0,
    ),
    "the preserved side of an outer join": (
        ROWS
        + """SELECT customer, year FROM base WHERE note = 'n1' UNION ALL SELECT customer, month FROM base
        WHERE note = 'n2' OR note IS NULL""",
        2,
    ),
    "joined with itself by an outer join": (
        TOTALS
        + """SELECT a.name, a.total, b.total AS later FROM (SELECT * FROM base WHERE year = 2001) a
        FULL JOIN (SELECT * FROM base WHERE year = 2002) b ON a.id = b.id AND a.month = b.month""",
        2,
    ),
    "under a window": (
        TOTALS
        + """SELECT name, rank() OVER (PARTITION BY month ORDER BY total, id) FROM base WHERE year = 2001
        UNION ALL SELECT name, sum(notes) OVER (PARTITION BY id) FROM base WHERE year = 2002""",
        2,
    ),
    "a collated filter": (
        TOTALS
        + """SELECT name, total FROM base WHERE name COLLATE UTF8_LCASE = 'N1' UNION ALL
        SELECT name, notes FROM base WHERE name = 'n2'""",
        2,
    ),
    "a filter by a subquery": (
        TOTALS
        + """SELECT name, total FROM base WHERE id IN (SELECT customer FROM sales WHERE note = 'n3') AND year = 2001
        UNION ALL SELECT name, notes FROM base WHERE year = 2002""",
        0,
    ),
    "a filter below what is not grouped by": (
        """WITH base AS (SELECT s.customer, d.year, s.amount FROM sales s JOIN days d ON s.day = d.day
        WHERE s.amount <> {salt})
        SELECT customer, sum(amount) AS s FROM base WHERE year = 2001 GROUP BY customer
        UNION ALL SELECT customer, sum(amount) FROM base WHERE year = 2002 GROUP BY customer""",
        2,
    ),
}


@pytest.fixture(scope="module")
def sales(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sales")
    session = sibling(spark, OFF)
    sold = session.range(0, 2000, 1, 2).selectExpr(
        "id % 50 AS customer", "if(id % 19 = 0, null, id % 400) AS day",
        "if(id % 11 = 0, null, cast(id % 97 AS decimal(12, 2)) / 4) AS amount", "concat('n', id % 7) AS note",
    )  # fmt: skip
    sold.write.parquet(str(folder / "sales"))
    days = session.range(0, 390).selectExpr(
        "id AS day", "cast(if(id % 23 = 0, null, 2001 + id DIV 100) AS int) AS year", "cast(id % 5 AS int) AS month"
    )
    days.write.parquet(str(folder / "days"))
    session.range(0, 45).selectExpr("id", "concat('n', id % 9) AS name").write.parquet(str(folder / "customers"))
    return folder


def with_tables(spark: SparkSession, confs: dict[str, str], folder: Path) -> SparkSession:
    session = session_of(spark, confs, folder / "sales")
    for name in ("sales", "days", "customers"):
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


def compared(spark: SparkSession, sales: Path, build: Callable[[SparkSession], DataFrame], **confs: str) -> int:
    """The places that shared, after a comparison of the rows."""
    plain = outcome(build(with_tables(spark, OFF | confs, sales)))
    before = shared(spark)
    found = outcome(build(with_tables(spark, ALWAYS | {"spark.regions.recycle.maxBytes": "0"} | confs, sales)))
    assert difference(plain, found) is None
    return shared(spark) - before


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("name", QUERIES)
def test_same_rows(spark: SparkSession, sales: Path, name: str, adaptive: str) -> None:
    text, least = QUERIES[name]
    text = text.format(salt=9999 if adaptive == "true" else 9998)
    places = compared(spark, sales, lambda session: session.sql(text), **{"spark.sql.adaptive.enabled": adaptive})
    assert places >= least, "vacuous: nothing was shared"


def test_one_computation_is_left(spark: SparkSession, sales: Path) -> None:
    text = QUERIES["two years"][0].format(salt=1)
    confs = ALWAYS | {"spark.sql.adaptive.enabled": "false", "spark.regions.recycle.maxBytes": "0"}
    plan = with_tables(spark, confs, sales).sql(text)._jdf.queryExecution().executedPlan().toString()
    assert "ReusedExchange" in plan
    assert plan.count("Scan parquet") == 3


def test_built_from_dataframes(spark: SparkSession, sales: Path) -> None:
    def build(session: SparkSession) -> DataFrame:
        joined = session.table("sales").join(session.table("days"), "day").where("amount <> 3")
        totals = joined.groupBy("customer", "year").agg(F.sum("amount").alias("total"), F.max("note").alias("note"))
        first, second = totals.where("year = 2001"), totals.where("year = 2002").select("customer", "total")
        pairs = first.alias("a").join(second.alias("b"), "customer").selectExpr("customer", "a.total", "b.total")
        return pairs.unionAll(totals.where("year = 2003").selectExpr("customer", "total", "total"))

    assert compared(spark, sales, build) == 3


# Under ANSI rules each of these fails on a row that only the other place has.
FAILING = {
    "a column of one place": """SELECT customer, 100 / (month - 3) AS x FROM base WHERE month = 1
        UNION ALL SELECT customer, amount FROM base WHERE month = 3""",
    "a filter behind another": """SELECT customer, amount FROM base WHERE month <> 3 AND 100 / (month - 3) > 1
        UNION ALL SELECT customer, day FROM base WHERE month = 3 AND amount > 2""",
    "a filter in both places behind others": """
        SELECT customer, amount FROM base WHERE month < 3 AND 100 / (month - 3) < 1
        UNION ALL SELECT customer, day FROM base WHERE month > 3 AND 100 / (month - 3) < 1000""",
    "a sum in one place": """
        SELECT month, sum(cast(100 / (month - 3) AS int)) AS x FROM base WHERE month = 1 GROUP BY month
        UNION ALL SELECT month, count(*) FROM base WHERE month = 3 GROUP BY month""",
    "a cast in one place": """SELECT customer, cast(substr(note, month, 1) AS int) AS x FROM base WHERE month = 2
        UNION ALL SELECT customer, amount FROM base WHERE month = 1""",
}


@pytest.mark.parametrize("name", FAILING)
def test_no_error_that_plain_spark_does_not_raise(spark: SparkSession, sales: Path, name: str) -> None:
    base = """WITH base AS (SELECT s.customer, s.day, s.amount, s.note, d.year, d.month
        FROM sales s JOIN days d ON s.day = d.day WHERE s.customer <> 7)"""

    def build(session: SparkSession) -> DataFrame:
        return session.sql(base + FAILING[name])

    confs = {"spark.sql.ansi.enabled": "true"}
    assert outcome(build(with_tables(spark, OFF | confs, sales))).error is None, "the case is about a query that works"
    compared(spark, sales, build, **confs)


def test_an_error_stays_an_error(spark: SparkSession, sales: Path) -> None:
    text = (TOTALS + "SELECT 1 / (total - total), year FROM base WHERE year = 2001 UNION ALL "
            "SELECT total, month FROM base WHERE year = 2002").format(salt=2)  # fmt: skip
    compared(spark, sales, lambda session: session.sql(text), **{"spark.sql.ansi.enabled": "true"})


def test_it_is_explained(spark: SparkSession, sales: Path) -> None:
    text = QUERIES["two years"][0].format(salt=4)
    assert compared(spark, sales, lambda session: session.sql(text)) == 2
    reasons = [d["code"] for d in decisions(spark) if d["kind"] == "share"]
    assert reasons[-2:] == ["ALWAYS", "ALWAYS"]


def test_why_two_places_are_kept_apart(spark: SparkSession, sales: Path) -> None:
    text = (TOTALS + """SELECT name, total FROM base WHERE year = 2001 AND 10 / month > 1 UNION ALL
        SELECT name, notes FROM base WHERE year = 2002""").format(salt=6)  # fmt: skip
    compared(spark, sales, lambda session: session.sql(text), **{"spark.sql.ansi.enabled": "true"})
    assert "MAY_FAIL" in {d["code"] for d in decisions(spark)}
