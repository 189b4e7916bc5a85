"""Queries by this commit's chance, another engine against plain Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness.chance import seed_of
from tests.platforms.generated import Pair, Totals, compared

pytestmark = pytest.mark.spark
QUERIES = 250
SECONDS = 75.0
"""For as many of them as fit."""


def test_queries_of_this_commit(spark: SparkSession, tmp_path: Path) -> None:
    first = seed_of("generated queries")
    totals = compared(spark, tmp_path, iter(range(first, first + QUERIES)), time.monotonic() + SECONDS)
    assert totals.differing == []
    assert totals.routed - totals.fallbacks > totals.queries / 3 > 5, totals


def test_a_subquery_that_became_the_side_of_a_join_has_its_size(spark: SparkSession, tmp_path: Path) -> None:
    """Else the join is not by broadcast as in plain Spark, and computes casts of rows that have no partner."""
    totals = Totals()
    Pair(spark, tmp_path, 2011, ansi=True).compare(
        "SELECT * FROM (SELECT * FROM (SELECT 0.00BD AS zero, CAST(s AS INT) > 0 AS positive FROM mild) a"
        " LEFT JOIN (SELECT s AS text, m AS amount FROM mild) o ON a.zero = o.amount AND positive) both"
        " WHERE EXISTS (SELECT 1 FROM (SELECT s AS other FROM mild) e WHERE e.other = both.text)",
        totals,
    )
    assert totals.differing == [] and totals.failed == 0
