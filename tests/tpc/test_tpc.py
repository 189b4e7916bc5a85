"""All 22 TPC-H and all 99 TPC-DS queries with the plugin, cold and warm, against what plain Spark answers."""

from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from tests.tpc import golden
from tests.tpc.run import SCALE, summary
from tests.tpc.suite import SUITES, Comparison, compare_suite, routed_suite

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Expected:
    """:param vacuous: at most so many, for which nothing was done; of the others' results `reused` at least are read;
    another engine does a part of `routed` at least
    """

    queries: int
    errors: int | None
    vacuous: int
    reused: int
    routed: int


EXPECTED = {"tpcds": Expected(99, None, 10, 80, 85), "tpch": Expected(22, 0, 2, 20, 22)}


@pytest.fixture(scope="module", params=EXPECTED)
def suite(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def comparisons(spark: SparkSession, suite: str) -> list[Comparison]:
    known = golden.read(suite)
    assert golden.table_digests(SUITES[suite].folder(SCALE)) == known.tables, "the golden answers are of other rows"
    return compare_suite(suite, SCALE, spark, golden=known)


def test_no_query_differs(comparisons: list[Comparison], suite: str) -> None:
    assert [each for each in comparisons if each.verdict in ("DIFFERS", "OUTDATED")] == []
    assert len(comparisons) == EXPECTED[suite].queries
    assert EXPECTED[suite].errors in (None, sum(each.error is not None for each in comparisons))


def test_most_queries_were_stored_and_loaded(comparisons: list[Comparison], suite: str) -> None:
    totals, expected = summary(comparisons), EXPECTED[suite]
    vacuous = [comparison.query for comparison in comparisons if comparison.verdict == "vacuous"]
    assert len(vacuous) <= expected.vacuous, f"nothing was done for {vacuous}: {totals}"
    assert sum(comparison.cold.stores for comparison in comparisons) >= expected.reused, totals
    assert sum(comparison.warm.loads > 0 for comparison in comparisons) >= expected.reused, totals
    print(totals)


def test_no_query_differs_on_another_engine(spark: SparkSession, suite: str) -> None:
    found = routed_suite(suite, SCALE, spark, golden.read(suite))
    assert {number: different for number, (different, _) in found.items() if different} == {}
    assert sum(parts > 0 for _, parts in found.values()) >= EXPECTED[suite].routed
