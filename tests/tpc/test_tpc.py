"""TPC-H and TPC-DS queries with the plugin, cold and warm, against what plain Spark answers."""

from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from tests.harness import chance
from tests.tpc import golden
from tests.tpc.run import SCALE, summary
from tests.tpc.suite import SUITES, Comparison, compare_suite, routed_suite

pytestmark = pytest.mark.spark


PARTS = 3
"""One in so many queries is asked, drawn by the commit; all are with CHANCE_ALL=1, or by `python -m tests.tpc.run`."""


@dataclass(frozen=True)
class Expected:
    """Shares of the queries asked.

    :param reused: of so many, something is stored and read again
    :param routed: another engine does a part of so many
    """

    reused: float
    routed: float


EXPECTED = {"tpcds": Expected(0.65, 0.7), "tpch": Expected(0.75, 1.0)}


@pytest.fixture(scope="module", params=EXPECTED)
def suite(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def asked(suite: str) -> list[int]:
    names = [f"{suite} {number}" for number in SUITES[suite].queries()]
    return [int(name.split()[1]) for name in chance.drawn(names, PARTS)]


@pytest.fixture(scope="module")
def comparisons(spark: SparkSession, suite: str, asked: list[int]) -> list[Comparison]:
    known = golden.read(suite)
    assert golden.table_digests(SUITES[suite].folder(SCALE)) == known.tables, "the golden answers are of other rows"
    return compare_suite(suite, SCALE, spark, asked, golden=known)


def test_no_query_differs(comparisons: list[Comparison], suite: str, asked: list[int]) -> None:
    assert [each for each in comparisons if each.verdict in ("DIFFERS", "OUTDATED")] == []
    assert [each.query for each in comparisons] == asked
    if suite == "tpch":
        assert [each for each in comparisons if each.error is not None] == []


def test_most_queries_were_stored_and_loaded(comparisons: list[Comparison], suite: str) -> None:
    totals, expected = summary(comparisons), EXPECTED[suite].reused * len(comparisons)
    assert sum(comparison.cold.stores > 0 for comparison in comparisons) >= expected, totals
    assert sum(comparison.warm.loads > 0 for comparison in comparisons) >= expected, totals
    print(totals)


def test_no_query_differs_on_another_engine(spark: SparkSession, suite: str, asked: list[int]) -> None:
    found = routed_suite(suite, SCALE, spark, golden.read(suite), asked)
    assert {number: different for number, (different, _) in found.items() if different} == {}
    assert sum(parts > 0 for _, parts in found.values()) >= EXPECTED[suite].routed * len(asked)
