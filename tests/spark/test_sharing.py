"""Subplans that stand in several places of a query are computed once, and the rows stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from tests.harness.session import decisions, settle, sibling, status
from tests.spark.test_same_rows import OFF
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

# Acts on every repeated subplan, without a history.
# What is computed once comes in another order than plain Spark's.
ANY = {"spark.regions.recycle.rowOrder": "any"}
ALWAYS = {"spark.sql.planChangeValidation": "true", "spark.regions.recycle.strategy": "always"}

BASE = """WITH base AS (
  SELECT l.id, l.k, l.v, l.text, r.v AS other, map(l.k, l.v) AS pairs
  FROM facts l JOIN facts r ON l.id = r.id + 1 WHERE l.v % 5 <> 0)
"""
QUERIES = {
    "other columns in each place": """
        SELECT k, sum(v) AS s FROM base GROUP BY k UNION ALL SELECT length(text), max(other) FROM base GROUP BY 1""",
    "one place has all columns": """
        SELECT max(v) AS a, max(text) AS b FROM base UNION ALL SELECT v, text FROM base""",
    "joined with itself": """
        SELECT a.k, count(b.text) AS n FROM base a FULL JOIN base b ON a.id = b.other GROUP BY a.k""",
    "joined by an outer join, and null-extended": """
        SELECT a.id, b.text FROM base a LEFT JOIN base b ON a.id = b.v + coalesce(b.other, 1)""",
    "three times, aggregated in two": """
        SELECT k, count(*) AS n FROM base GROUP BY k
        UNION ALL SELECT k, count(DISTINCT text) FROM base GROUP BY k
        UNION ALL SELECT k, v FROM base""",
    "a type that cannot be hashed": """
        SELECT k, pairs[k] AS p, map_keys(pairs) AS m FROM base
        UNION ALL SELECT v, element_at(pairs, v), map_values(pairs) FROM base""",
    "under a window": """
        SELECT k, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM base
        UNION ALL SELECT k, sum(v) OVER (PARTITION BY text) FROM base""",
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts") / "t"
    rows = sibling(spark, OFF).range(0, 1000, 1, 2)
    rows.selectExpr(
        "id", "cast(id % 7 AS int) AS k", "cast(id * 3 AS int) AS v", "concat('t', id % 13) AS text"
    ).write.parquet(str(folder))
    return folder


def session_of(spark: SparkSession, confs: dict[str, str], facts: Path) -> SparkSession:
    session = sibling(spark, ANY | confs)
    session.read.parquet(str(facts)).createOrReplaceTempView("facts")
    return session


def shared(spark: SparkSession) -> int:
    settle(spark)
    return int(status(spark)["counter.shares"])


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("name", QUERIES)
def test_same_rows(spark: SparkSession, facts: Path, name: str, adaptive: str) -> None:
    # A name of its own for each case, or the other case's stored result would be loaded.
    text = (BASE + QUERIES[name]).replace("% 5 <> 0", f"% 5 <> {1 if adaptive == 'true' else 2}")
    plain = outcome(session_of(spark, OFF, facts).sql(text))
    before = shared(spark)
    found = outcome(session_of(spark, ALWAYS | {"spark.sql.adaptive.enabled": adaptive}, facts).sql(text))
    assert difference(plain, found) is None
    assert shared(spark) - before >= 2, "vacuous: nothing was shared"


def test_the_exchange_is_reused(spark: SparkSession, facts: Path) -> None:
    confs = ALWAYS | {"spark.sql.adaptive.enabled": "false"}
    text = (BASE + QUERIES["other columns in each place"]).replace("% 5 <> 0", "% 5 <> 3")
    plan = session_of(spark, confs, facts).sql(text)._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ReusedExchange") == 1
    assert plan.count("SortMergeJoin") + plan.count("BroadcastHashJoin") == 1


def both(frame: DataFrame) -> DataFrame:
    left = frame.groupBy("k").agg(F.max("slow").alias("m"))
    return left.union(frame.groupBy(F.col("v") % 3).agg(F.min("slow")))


def test_it_takes_a_run_to_know_that_it_pays(spark: SparkSession, facts: Path) -> None:
    """Nothing may be stored here, so that only sharing can help."""

    @F.udf(StringType())
    def slow(text: str) -> str:
        import hashlib

        for _ in range(2000):
            text = hashlib.sha256(text.encode()).hexdigest()
        return text

    def query(session: SparkSession) -> DataFrame:
        frame = session.table("facts")
        joined = frame.join(frame.select(F.col("id").alias("other")), F.col("id") == F.col("other") + 2)
        return both(joined.withColumn("slow", slow("text")))

    session = session_of(spark, {"spark.regions.recycle.maxBytes": "0"}, facts)
    before = shared(spark)
    first = outcome(query(session))
    assert shared(spark) == before
    second = outcome(query(session))
    assert shared(spark) - before == 2
    assert [d["code"] for d in decisions(spark) if d["kind"] == "share"][-2:] == ["SHARED", "SHARED"]
    third = outcome(query(session))
    assert shared(spark) - before == 4, "what was shared is not forgotten to be worth it"
    plain = outcome(query(session_of(spark, OFF, facts)))
    assert [difference(plain, each) for each in (first, second, third)] == [None] * 3


def test_the_conf_switches_it_off(spark: SparkSession, facts: Path) -> None:
    text = (BASE + QUERIES["other columns in each place"]).replace("% 5 <> 0", "% 5 <> 4")
    before = shared(spark)
    session_of(spark, ALWAYS | {"spark.regions.sharing.enabled": "false"}, facts).sql(text).collect()
    assert shared(spark) == before


@pytest.mark.parametrize(("top", "least"), [("SELECT * FROM ({})", 0), ("SELECT count(*) FROM ({})", 2)])
def test_nothing_is_shared_where_somebody_sees_the_order(
    spark: SparkSession, facts: Path, top: str, least: int
) -> None:
    query = QUERIES["other columns in each place"]
    text = top.format((BASE + query).replace("% 5 <> 0", f"% 5 <> {5 + least}"))
    before = shared(spark)
    ordered = session_of(spark, ALWAYS | {"spark.regions.recycle.rowOrder": "plain"}, facts)
    plain = session_of(spark, OFF, facts)
    assert ordered.sql(text).collect() == plain.sql(text).collect()
    assert shared(spark) - before == least
