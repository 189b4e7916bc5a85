"""Sessions of the tests of skew; each module has `tables` of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tables: Path) -> SparkSession:
    """Without the plugin's repairs, and without its recycling."""
    from tests.spark.test_skew import PLAIN, session_of

    return session_of(spark, tables, PLAIN)


@pytest.fixture(scope="module")
def always(spark: SparkSession, tables: Path) -> SparkSession:
    """With every repair that is allowed."""
    from tests.spark.test_skew import ALWAYS, session_of

    return session_of(spark, tables, ALWAYS)
