"""The second run of a job is planned as a whole: kept at the first use, released after the last; rows stay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_regions
from spark_regions.errors import BatchError
from tests.harness.session import sibling
from tests.spark.test_same_rows import OFF

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]


def days(spark: SparkSession, folder: Path) -> tuple[str, str]:
    """The same table on two days, with other rows."""
    plain = sibling(spark, OFF)
    found = []
    for day, rows in (("monday", 60_000), ("tuesday", 70_000)):
        frame = plain.range(0, rows, 1, 2).select("id", (F.col("id") % 5000).alias("k"))
        frame.withColumn("text", F.sha2(F.col("id").cast("string"), 512)).write.parquet(str(folder / day))
        found.append(str(folder / day))
    return found[0], found[1]


def job(*arguments: str) -> dict[str, Any]:
    script = str(ROOT / "tests" / "spark" / "workflow_job.py")
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, timeout=600, cwd=ROOT, check=False,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(results) == 1, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(results[0].removeprefix("RESULT "))
    return found


def test_the_second_run_over_other_data_is_planned_and_a_batch_in_its_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    monday, tuesday = days(spark, tmp_path)
    store = str(tmp_path / "store")
    plain = job(tuesday, "")
    first = job(monday, store)
    assert first["persists"] == "0"
    second = job(tuesday, store)
    assert second["rows"] == plain["rows"]
    assert first["rows"] != plain["rows"]
    kinds = [tuple(each) for each in second["kinds"]]
    assert ("persist", "PLANNED") in kinds
    assert ("recall", "BENEFIT") in kinds
    assert int(second["recalls"]) >= 2
    assert ("unpersisted", "LAST_USE") in kinds or ("unpersist", "LAST_USE") in kinds
    assert second["held"] == 0
    assert {"p1"} < set(second["read"]), "the DataFrame kept in the sixth query reads the one kept in the first"
    assert "region 1 (rank 1)" in second["explained"]
    batch = job(tuesday, str(tmp_path / "empty store"), "batch")
    assert batch["rows"] == plain["rows"]
    assert int(batch["persists"]) >= 1
    assert int(batch["recalls"]) >= 3
    assert batch["held"] == 0


def test_results_of_a_batch_come_in_the_given_order_and_functions_take_part(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(10)
    path = str(tmp_path / "written")
    found = spark_regions.run(
        [
            spark_regions.later(frame).count(),
            lambda: "called",
            spark_regions.later(frame.where("id < 3")).collect(),
            spark_regions.later(frame).write.mode("overwrite").parquet(path),
            spark_regions.later(frame).select("id").toPandas(),
        ]
    )
    assert found[:2] == [10, "called"]
    assert [row.id for row in found[2]] == [0, 1, 2]
    assert found[3] is None
    assert list(found[4].id) == list(range(10))
    assert spark.read.parquet(path).count() == 10
    assert spark_regions.run([]) == []


def test_the_error_of_an_action_is_raised_and_what_is_no_action_is_refused(spark: SparkSession) -> None:
    frame = spark.range(3)
    broken = frame.select(F.raise_error(F.lit("on purpose")))
    with pytest.raises(Exception, match="on purpose"):
        spark_regions.run([spark_regions.later(frame).count(), spark_regions.later(broken).collect()])
    for wrong in (frame, 3, spark_regions.later(frame), spark_regions.later(frame).select("id"), "SELECT 1"):
        with pytest.raises(BatchError, match="expected later"):
            spark_regions.run([wrong])  # type: ignore[list-item]
