"""Queries by this commit's chance, another engine against plain Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness.chance import seed_of
from tests.platforms.generated import compared

pytestmark = pytest.mark.spark
QUERIES = 250
SECONDS = 75.0
"""For as many of them as fit."""


def test_queries_of_this_commit(spark: SparkSession, tmp_path: Path) -> None:
    first = seed_of("generated queries")
    totals = compared(spark, tmp_path, iter(range(first, first + QUERIES)), time.monotonic() + SECONDS)
    assert totals.differing == []
    assert totals.routed - totals.fallbacks > totals.queries / 3 > 5, totals
