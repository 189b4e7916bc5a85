"""Loops that nobody rewrote: what their iterations have in common is kept, and each has plain Spark's rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_regions.planner.sweeps import FREE
from tests.harness.session import NewDecisions, committed, decisions, settle, sibling
from tests.spark.test_same_rows import OFF
from tests.tpc.rows import difference, outcome

pytestmark = pytest.mark.spark

# Sizes here are small, and a busy machine takes long for nothing: what is asked is whether a loop is known as one.
ON = {
    "spark.sql.planChangeValidation": "true",
    "spark.regions.recycle.rowOrder": "any",
    "spark.regions.recycle.maxBytes": "100g",
    "spark.regions.platforms": "off",
    "spark.regions.workflow.enabled": "false",
}
Query = Callable[[SparkSession, Any], DataFrame]
ROWS = 480_000


@pytest.fixture(scope="module")
def on(spark: SparkSession) -> SparkSession:
    return sibling(spark, ON)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """`t`: id, k and a text that does not compress; new files for every test, of which nothing is known. So many rows
    that what is computed of them is worth keeping on a fast machine, too.
    """
    rows = sibling(spark, OFF).range(0, ROWS, 1, 2)
    rows.selectExpr("id", "id % 1000 AS k", "sha2(cast(id AS string), 512) AS text").write.parquet(str(tmp_path / "t"))
    return tmp_path / "t"


def told(spark: SparkSession) -> list[dict[str, object]]:
    """Decisions about queries that ran."""
    settle(spark)
    return [row for row in decisions(spark) if row["execution"] is not None]


def loop(on: SparkSession, query: Query, values: Sequence[Any]) -> list[list[tuple[str, str, str]]]:
    """Assert that every iteration has plain Spark's rows; kind, code and detail of what was decided in each."""
    rows, found = [], []
    for value in values:
        new = NewDecisions(on)
        rows.append(outcome(query(on, value)))
        committed(on)
        found.append([(str(d["kind"]), str(d["code"]), str(d["detail"])) for d in new()])
    # Afterwards, since what runs without the plugin's actions is observed, too.
    off = sibling(on, OFF)
    for value, ours in zip(values, rows, strict=True):
        assert difference(outcome(query(off, value)), ours) is None, value
    return found


def kept(iterations: Sequence[Sequence[tuple[str, str, str]]]) -> list[int]:
    """Iterations, from 1, in which something was kept since it is a sweep."""
    return [
        number
        for number, found in enumerate(iterations, 1)
        if any(kind in ("store", "persist") and code == "SWEEP" for kind, code, _ in found)
    ]


def reads(iteration: Sequence[tuple[str, str, str]]) -> list[str]:
    """By which rules what is kept was read."""
    return [detail for kind, _, detail in iteration if kind in ("load", "recall")]


def grouped(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder)).groupBy((F.col("id") % 6000).alias("g")).agg(
        F.max(F.sha2(F.concat("text", F.sha2("text", 512)), 512)).alias("most"), F.count("*").alias("n")
    )  # fmt: skip


def over(spark: SparkSession, folder: Path, threshold: str) -> DataFrame:
    """A threshold above an aggregate."""
    first = F.substring("most", 1, 1).alias("first")
    return grouped(spark, folder).where(F.col("most") > threshold).groupBy(first).agg(F.count("*")).orderBy("first")


def test_the_part_below_a_threshold_is_kept(on: SparkSession, folder: Path) -> None:
    iterations = loop(on, lambda spark, at: over(spark, folder, at), ["8", "3", "a", "5", "c"])
    assert kept(iterations)[0] in (2, 3)
    assert ("store", "SWEEP", f"iteration {kept(iterations)[0]}") in iterations[kept(iterations)[0] - 1]
    assert all(reads(each) for each in iterations[kept(iterations)[0] :])


def scaled(pages: Iterator[Any], factor: int) -> Iterator[Any]:
    for page in pages:
        page["n"] = page["n"] * factor
        yield page[["g", "n"]]


def closure(factor: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    return lambda pages: scaled(pages, factor)


def default(factor: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def function(pages: Iterator[Any], times: int = factor) -> Iterator[Any]:
        for page in pages:
            page["n"] = page["n"] * times
            yield page[["g", "n"]]

    return function


def partial(factor: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    return functools.partial(scaled, factor=factor)


@pytest.mark.parametrize("captured", [closure, default, partial])
def test_the_input_of_a_function_with_another_constant_is_kept(
    on: SparkSession, folder: Path, captured: Callable[[int], Any]
) -> None:
    def query(spark: SparkSession, factor: int) -> DataFrame:
        return grouped(spark, folder).mapInPandas(captured(factor), "g long, n long").agg(F.sum("n"), F.max("g"))

    iterations = loop(on, query, [2, 3, 5, 7])
    assert reads(iterations[-1]), iterations


def test_a_function_that_reads_the_world_is_called_every_time(on: SparkSession, folder: Path, tmp_path: Path) -> None:
    note = tmp_path / "note"

    def query(spark: SparkSession, factor: int) -> DataFrame:
        def read(pages: Iterator[Any]) -> Iterator[Any]:
            for page in pages:
                page["n"] = page["n"] * factor + int(note.read_text())
                yield page[["g", "n"]]

        return grouped(spark, folder).mapInPandas(read, "g long, n long").agg(F.sum("n"))

    sums = []
    for factor in range(1, 5):
        note.write_text(str(factor))
        sums.append(query(on, factor).collect()[0][0])
        committed(on)
    assert sums == [factor * (ROWS + 6000) for factor in range(1, 5)]
    assert not any("MapInPandas" in str(d["operator"]) for d in told(on) if d["kind"] in ("store", "load"))


PUSHED = "SELECT a.k, count(*) AS n, max(a.id) AS last FROM t a JOIN t b ON a.text = b.text WHERE a.id {} GROUP BY a.k"


def pushed(folder: Path, comparison: str) -> Query:
    def query(spark: SparkSession, value: Any) -> DataFrame:
        spark.read.parquet(str(folder)).createOrReplaceTempView("t")
        return spark.sql(PUSHED.format(comparison.format(value)))

    return query


def test_a_filter_that_lets_less_pass_each_time_is_served_by_what_it_was(on: SparkSession, folder: Path) -> None:
    iterations = loop(on, pushed(folder, "> {}"), range(0, ROWS // 2, ROWS // 12))
    assert kept(iterations)
    # What is quicker, by how long it took here, is kept: the rows of an earlier filter, or those without any.
    assert {"IMPLIED", "FILTERED"} & set(reads(iterations[-1])), iterations


def test_without_a_filter_that_was_pushed_below_a_join(on: SparkSession, folder: Path) -> None:
    """Any of them lets most rows pass: to join all takes little more."""
    iterations = loop(on, pushed(folder, "> {} AND a.id IS NOT NULL"), range(ROWS // 13, 0, -ROWS // 120))
    assert kept(iterations)
    assert "FILTERED" in [rule for each in iterations for rule in reads(each)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM g ORDER BY most LIMIT {}",
        "SELECT count(*), max(g) FROM g TABLESAMPLE ({} PERCENT) REPEATABLE (7)",
        "SELECT g, sum(n) OVER (ORDER BY g ROWS {} PRECEDING) AS s FROM g",
        "SELECT g, n FROM g WHERE n > {} AND g IN (SELECT g FROM g WHERE n < {} + 100)",
        "SELECT round(sum(g) / {}, 3) AS s FROM g",
        "SELECT count(*) FROM g WHERE rand({}) < 2",
        "SELECT g % {} AS r, count(*) AS n FROM g GROUP BY 1",
    ],
)
def test_wherever_the_value_stands_rows_are_plain_sparks(on: SparkSession, folder: Path, text: str) -> None:
    def query(spark: SparkSession, value: int) -> DataFrame:
        grouped(spark, folder).createOrReplaceTempView("g")
        return spark.sql(text.format(*[value] * text.count("{}")))

    loop(on, query, [3, 5, 2, 9])


def test_a_loop_over_tables_is_no_sweep(on: SparkSession, folder: Path, tmp_path: Path) -> None:
    for number in range(4):
        rows = sibling(on, OFF).range(0, 60_000 + number, 1, 2)
        rows.selectExpr("id", "sha2(cast(id AS string), 512) AS text").write.parquet(str(tmp_path / f"t{number}"))
    iterations = loop(on, lambda spark, n: over(spark, tmp_path / f"t{n}", str(n)), range(4))
    assert not kept(iterations)


def test_nor_is_the_same_query_again(on: SparkSession, folder: Path) -> None:
    assert not kept(loop(on, lambda spark, at: over(spark, folder, at), ["8"] * 4))


def test_the_conf_switches_it_off(spark: SparkSession, folder: Path) -> None:
    off = sibling(spark, ON | {"spark.regions.sweeps.enabled": "false"})
    assert not kept(loop(off, lambda spark, at: over(spark, folder, at), ["8", "3", "a", "5"]))


def test_of_a_loop_that_has_nothing_of_it_not_all_iterations_are_decided_on(on: SparkSession, folder: Path) -> None:
    def query(spark: SparkSession, value: int) -> DataFrame:
        rows = spark.read.parquet(str(folder))
        return rows.where(F.col("id") % 97 != value).groupBy(F.col("k") % 10).agg(F.stddev("k"), F.count("*"))

    iterations = loop(on, query, range(40))
    rested = [n for n, found in enumerate(iterations) if ("refused", "IN_VAIN") in [each[:2] for each in found]]
    assert rested, iterations
    assert min(rested) >= FREE
    assert max(set(range(40)) - set(rested)) > min(rested), "later ones are decided on again"


def test_what_is_only_explained_is_always_decided_on(on: SparkSession, folder: Path) -> None:
    def query(value: int) -> DataFrame:
        rows = on.read.parquet(str(folder))
        return rows.where(F.col("id") % 89 != value).groupBy(F.col("k") % 10).agg(F.stddev("k"), F.count("*"))

    for value in range(FREE + 3):
        query(value).collect()
    new = NewDecisions(on)
    query(FREE + 3).explain()
    query(FREE + 4).collect()
    asked, rested = new(), "IN_VAIN"
    assert [d["code"] for d in asked if d["kind"] == "refused"] == [rested], asked


def test_what_takes_long_to_write_waits_for_the_third_iteration(on: SparkSession, folder: Path) -> None:
    """The second one may be the last."""

    def query(spark: SparkSession, least: int) -> DataFrame:
        rows = spark.read.parquet(str(folder))
        texts = [F.sha2(F.concat("text", F.lit(str(n))), 512).alias(f"text{n}") for n in range(4)]
        wide = rows.groupBy("id").agg(
            F.max("k").alias("k"), *[F.max(each).alias(f"m{n}") for n, each in enumerate(texts)]
        )
        longest = F.greatest(*[F.max(F.length(f"m{n}")) for n in range(4)])
        return wide.where(F.col("k") + F.length("m0") > least).agg(F.count("*"), longest, F.max("m1"))

    iterations = loop(on, query, [200, 300])
    assert not kept(iterations)
    assert any(code in ("YOUNG_SWEEP", "TOO_CHEAP") for _, code, _ in iterations[1])
