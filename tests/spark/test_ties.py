"""Limits and windows over results that come in another order: plain Spark's rows, read where there are no ties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.harness.session import Fallbacks, NewDecisions, committed, sibling
from tests.spark.test_first_use import ANY, matched, reasons
from tests.spark.test_same_rows import OFF
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

# Adaptive execution coalesces shuffles by their sizes, so that the order of rows is another one with other columns.
ON = {**ANY, "spark.regions.recycle.rowOrder": "plain", "spark.sql.planChangeValidation": "true"}


def groups(frame: DataFrame, of: int) -> DataFrame:
    """Of a number, so that no test reads the groups of another: stored in plain Spark's order, they need no check."""
    return frame.groupBy("k", F.substring("head", 1, 1).alias("first")).agg(
        F.max(F.col("id") + of).alias("m"), F.count("*").alias("rows")
    )


def numbered(frame: DataFrame, of: int, *order: object) -> DataFrame:
    number = F.row_number().over(Window.partitionBy("first").orderBy(*order))  # type: ignore[arg-type]
    return groups(frame, of).drop("rows").withColumn("n", number)


DETERMINED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "limit": lambda frame: groups(frame, 1).orderBy(F.desc("m")).limit(20),
    "limit, by an expression": lambda frame: groups(frame, 2).orderBy(-F.col("m") * 2).limit(20).select("k", "first"),
    "a limit behind which a row raises": lambda frame: (
        frame.withColumn("m", F.col("id") * 2).orderBy("m").limit(5).select(1 / (F.col("id") - 5), "head")
    ),
    "limit below a join": lambda frame: (
        groups(frame, 3).orderBy(F.desc("m")).limit(20).join(frame.select("k").distinct(), "k").orderBy("k", "first")
    ),
    "first numbers": lambda frame: numbered(frame, 4, F.desc("m")).where("n <= 3").orderBy("first", "n"),
    "the first": lambda frame: numbered(frame, 5, "m").where("n = 1 AND m > 5").orderBy("first", "n"),
    "all numbers": lambda frame: numbered(frame, 6, "m").orderBy("n", "first"),
    "the value before": lambda frame: (
        groups(frame, 7)
        .withColumn("before", F.lag("k").over(Window.partitionBy("first").orderBy("m")))
        .orderBy("before", F.desc("m"))
        .limit(30)
    ),
}
TIED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "limit": lambda frame: groups(frame, 8).orderBy(F.col("k") % 7).limit(20),
    "behind the limit": lambda frame: groups(frame, 9).orderBy(F.floor(F.col("m") / 1_000_000)).limit(1),
    "first numbers": lambda frame: numbered(frame, 10, F.col("k") % 10).where("n <= 3").orderBy("first", "n"),
    "behind the first": lambda frame: numbered(frame, 11, F.col("m") % 1).where("n = 1").orderBy("first", "n"),
}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """More than the 8 MB from which on a first use is looked into."""
    place = str(tmp_path_factory.mktemp("ties") / "t")
    rows = sibling(spark, OFF).range(0, 140_000, 1, 2)
    rows.selectExpr("id", "id % 1000 AS k", "sha2(cast(id AS string), 512) AS text").write.parquet(place)
    return place


@pytest.fixture(scope="module")
def stored(spark: SparkSession, folder: str) -> DataFrame:
    """A DataFrame that is stored."""
    frame = matched(sibling(spark, ON), folder)
    for key in ("k", "head"):
        frame.groupBy(key).agg(F.count("*"), F.max("id"), F.max("head"), F.max("k")).orderBy(key).collect()
        committed(frame.sparkSession)
    assert "HELD" in reasons(frame.sparkSession, "store") + reasons(frame.sparkSession, "load")
    return frame


@pytest.fixture(scope="module")
def plain(spark: SparkSession, folder: str) -> DataFrame:
    return matched(sibling(spark, OFF), folder)


@pytest.mark.parametrize("name", DETERMINED)
def test_without_ties_what_is_stored_is_read(stored: DataFrame, plain: DataFrame, name: str) -> None:
    query = DETERMINED[name](stored)
    before, fallbacks = committed(stored.sparkSession), Fallbacks(stored.sparkSession)
    found = outcome(query)
    assert "TieCheck" in query._jdf.queryExecution().executedPlan().toString()
    assert (committed(stored.sparkSession) - before).loads >= 1
    assert fallbacks() == []
    expected = outcome(DETERMINED[name](plain))
    assert difference(expected, found) is None
    assert difference(expected, outcome(query)) is None, "once more"


@pytest.mark.parametrize("name", TIED)
def test_with_ties_the_rows_are_plain_sparks(stored: DataFrame, plain: DataFrame, name: str) -> None:
    expected = outcome(TIED[name](plain))
    before, fallbacks, query = committed(stored.sparkSession), Fallbacks(stored.sparkSession), TIED[name](stored)
    assert difference(expected, outcome(query)) is None
    assert (committed(stored.sparkSession) - before).loads >= 1
    assert fallbacks() == ["TIED"]
    assert difference(expected, outcome(TIED[name](stored))) is None
    assert fallbacks() == ["TIED"], "it is not tried again"


def test_what_no_order_by_asks_for_is_read_in_any_order_where_another_engine_may_compute_it(
    stored: DataFrame, plain: DataFrame
) -> None:
    def by(frame: DataFrame, size: int) -> DataFrame:
        return frame.groupBy((F.col("k") % size).alias("part")).agg(F.max("id"), F.count("*"))

    def read(query: Callable[[DataFrame], DataFrame]) -> bool:
        """Whether the DataFrame, or what is above it, was read; what is below it comes in plain Spark's order."""
        before, found = committed(stored.sparkSession), query(stored)
        assert difference(outcome(query(plain)), outcome(found)) is None
        computed = "REPARTITION_BY_NUM" in found._jdf.queryExecution().executedPlan().toString()
        return (committed(stored.sparkSession) - before).loads == 1 and not computed

    assert not read(lambda frame: by(frame, 50))
    stored.sparkSession.conf.set("spark.regions.platforms", "auto")
    try:
        assert read(lambda frame: by(frame, 51))
        read(lambda frame: by(frame, 52).limit(7))  # which shows it: the rows are compared
    finally:
        stored.sparkSession.conf.set("spark.regions.platforms", "off")


def test_the_first_rows_of_what_was_read_are_read_where_they_are_all_of_a_query(
    spark: SparkSession, folder: str, plain: DataFrame
) -> None:
    """Whatever the order of the rows below a sort without ties, the first of them are one partition in that order."""

    def groups(session: SparkSession) -> DataFrame:
        last = F.max(F.reverse("text")).alias("last")
        return session.read.parquet(folder).groupBy("k").agg(last, F.min("text"), F.max("text"), F.max("id"))

    def first(session: SparkSession) -> DataFrame:
        return groups(session).select("k", "last").orderBy("k", "last").limit(7)

    def kinds() -> list[tuple[object, object]]:
        return [(row["kind"], row["operator"]) for row in decided() if row["kind"] in ("store", "load")]

    confs = {**ON, "spark.regions.recycle.strategy": "always"}
    outcome(groups(sibling(spark, confs)))
    committed(spark)
    for expected in ([("load", "Aggregate"), ("store", "GlobalLimit")], [("load", "GlobalLimit")]):
        decided = NewDecisions(spark)
        session = sibling(spark, confs)
        assert difference(outcome(first(plain.sparkSession)), outcome(first(session))) is None
        committed(session)
        assert kinds() == expected


@pytest.mark.parametrize(("sizes", "loads"), [((30_000, 50_000), 1), ((40_000, 40_000), 0)])
def test_which_file_is_listed_first_matters_where_they_are_equally_long(
    spark: SparkSession, tmp_path: Path, sizes: tuple[int, int], loads: int
) -> None:
    """Spark reads the longest file first; folders list theirs in any order, another one for tomorrow's names."""
    files = [str(tmp_path / name) for name in ("one", "two")]
    plain, begin = sibling(spark, OFF), 1 << 20
    for file, size in zip(files, sizes, strict=True):
        rows = plain.range(begin, begin + size, 1, 1).selectExpr("id", "id % 100 AS k")
        rows.write.option("compression", "none").option("parquet.enable.dictionary", "false").parquet(file)
        begin += size
    lengths = {each.stat().st_size for file in files for each in Path(file).glob("*.parquet")}
    assert (len(lengths) == 1) == (sizes[0] == sizes[1])

    def numbered(session: SparkSession, *listed: str) -> DataFrame:
        order = Window.partitionBy("k").orderBy(F.col("id") % 3)
        return session.read.parquet(*listed).withColumn("n", F.row_number().over(order)).where("n < 9").orderBy("id")

    confs = {**ON, "spark.regions.recycle.strategy": "always"}
    for listed, loaded in ((files, 0), (files[::-1], loads)):
        before, session = committed(spark), sibling(spark, confs)
        assert difference(outcome(numbered(plain, *listed)), outcome(numbered(session, *listed))) is None
        did = committed(spark) - before
        assert (did.loads, did.stores > 0) == (loaded, not loaded)


def test_what_goes_by_the_partitions_of_stored_rows_keeps_its_order(
    spark: SparkSession, folder: str, plain: DataFrame
) -> None:
    """Above a repartition plain Spark groups without another shuffle, and so come the groups."""

    def rows(session: SparkSession) -> DataFrame:
        return matched(session, folder).select("id", "k", F.substring("head", 2, 1).alias("second"))

    def spent(session: SparkSession) -> list[object]:
        return list(rows(session).groupBy("k", "second").agg(F.max("id"), F.count("*")).collect())

    always = {**ON, "spark.regions.recycle.strategy": "always"}
    rows(sibling(spark, always)).collect()
    session = sibling(spark, always)
    seen, start = NewDecisions(session), committed(spark)
    assert spent(session) == spent(plain.sparkSession)
    assert (committed(spark) - start).stores + (committed(spark) - start).loads > 0, "vacuous"
    assert "ROW_ORDER" in [each["code"] for each in seen()]
