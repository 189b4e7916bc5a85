"""What data science asks of Spark: a cell of `operators.txt` is stored and read with plain Spark's rows, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import sibling
from tests.spark.test_same_rows import OFF, ON, Sides
from tests.udf.cells import cells

pytestmark = pytest.mark.spark
OPERATORS = cells("../fixtures/operators.txt")


@pytest.fixture
def sides(spark: SparkSession) -> Sides:
    return Sides(sibling(spark, OFF), sibling(spark, ON))


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """1,000 rows in two files: id, k (7 keys), v, text; and a name for each key."""
    session = sibling(spark, OFF)
    rows = session.range(0, 1000, 1, 2).selectExpr(
        "id", "id % 7 AS k", "cast(id * 3 AS int) AS v", "concat('t', id % 13) AS text"
    )
    rows.write.parquet(str(tmp_path / "t"))
    session.range(7).selectExpr("id AS k", "concat('key ', id) AS name").coalesce(1).write.parquet(
        str(tmp_path / "keys")
    )
    return tmp_path


def made(spark: SparkSession, folder: Path, source: str) -> dict[str, Any]:
    """What the cell makes: `found`, and `refused` where it says so."""
    tables = {name: spark.read.parquet(str(folder / name)) for name in ("t", "keys")}
    space = {"__name__": "__main__", "spark": spark, "F": F, "Window": Window, "pd": pd, **tables}
    exec(compile(source, "cell.py", "exec"), space)
    return space


@pytest.mark.parametrize("title", [title for title, source in OPERATORS.items() if "\nrefused" not in source])
def test_is_stored_and_read(sides: Sides, folder: Path, title: str) -> None:
    def query(spark: SparkSession) -> DataFrame:
        found: DataFrame = made(spark, folder, OPERATORS[title])["found"]
        return found

    sides.reused(query)


@pytest.mark.parametrize("title", [title for title, source in OPERATORS.items() if "\nrefused" in source])
def test_is_refused(sides: Sides, folder: Path, title: str) -> None:
    space = made(sides.on, folder, OPERATORS[title])
    refused = {node.code for node in spark_regions.why_not(space["found"]).refused}
    assert space["refused"] in refused
