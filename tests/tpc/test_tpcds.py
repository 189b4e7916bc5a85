"""All 99 TPC-DS queries, plugin off against on, cold and warm."""

import pytest
from pyspark.sql import SparkSession

from tests.tpc.run import summary
from tests.tpc.suite import Comparison, compare_suite

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCALE = 0.01


@pytest.fixture(scope="module")
def comparisons(spark: SparkSession) -> list[Comparison]:
    return compare_suite("tpcds", SCALE, spark)


def test_no_query_differs(comparisons: list[Comparison]) -> None:
    differing = [comparison for comparison in comparisons if comparison.verdict == "DIFFERS"]
    assert not differing
    assert len(comparisons) == 99


def test_most_queries_were_stored_and_loaded(comparisons: list[Comparison]) -> None:
    totals = summary(comparisons)
    vacuous = [comparison.query for comparison in comparisons if comparison.verdict == "vacuous"]
    assert len(vacuous) <= 10, f"nothing was done for {vacuous}: {totals}"
    assert sum(comparison.cold.stores for comparison in comparisons) >= 80, totals
    assert sum(comparison.warm.loads > 0 for comparison in comparisons) >= 80, totals
