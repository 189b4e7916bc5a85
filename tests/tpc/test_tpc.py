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
    """At most so many queries of a suite, and no larger share of those asked.

    :param vacuous: for which nothing was done
    :param unused: of which nothing is stored, or nothing read again
    :param unrouted: of which another engine does no part
    """

    vacuous: int
    unused: tuple[int, float]
    unrouted: tuple[int, float]


EXPECTED = {"tpcds": Expected(10, (19, 0.35), (14, 0.3)), "tpch": Expected(2, (2, 0.25), (0, 0.0))}


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
    totals, expected = summary(comparisons), EXPECTED[suite]
    vacuous = [comparison.query for comparison in comparisons if comparison.verdict == "vacuous"]
    assert len(vacuous) <= expected.vacuous, f"nothing was done for {vacuous}: {totals}"
    asked = len(comparisons)
    assert few(asked - sum(each.cold.stores for each in comparisons), asked, expected.unused), totals
    assert few([each.warm.loads for each in comparisons].count(0), asked, expected.unused), totals
    print(totals)


def test_no_query_differs_on_another_engine(spark: SparkSession, suite: str, asked: list[int]) -> None:
    found = routed_suite(suite, SCALE, spark, golden.read(suite), asked)
    assert {number: different for number, (different, _) in found.items() if different} == {}
    parts = [parts for _, parts in found.values()]
    assert few(parts.count(0), len(asked), EXPECTED[suite].unrouted)


def few(found: int, asked: int, at_most: tuple[int, float]) -> bool:
    most, share = at_most
    return found <= min(most, share * asked)
