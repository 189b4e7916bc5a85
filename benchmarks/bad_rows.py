"""Rows that fail: jobs with three culprits end, and what the handling costs where none fails.

Each job runs on plain Spark and with `onBadRow=quarantine` alternately, over rows without culprits, which are Parquet
or CSV; then once with three of them.

python -m benchmarks.bad_rows [--scale 1] [--rounds 7]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from benchmarks.measure import Options, benchmark_main, paired_ratio, timed
from tests.harness.session import sibling, spark_session

ROWS_AT_SCALE_1 = 10_000_000
PLAIN = {
    "spark.regions.mode": "observe",
    "spark.regions.recycle.enabled": "false",
    "spark.regions.persist.enabled": "false",
    "spark.regions.platforms": "off",
}


def parsed(text: str) -> int:
    """What a Python function usually does: some work on a string."""
    return sum(int(digit) for digit in text.split("-"))


def parsed_column(text: pd.Series) -> pd.Series:
    return text.str.slice(0, 3).astype("int64")


def parsed_table(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        yield pd.DataFrame({"id": batch["id"], "n": batch["text"].str.slice(0, 3).astype("int64")})


def table(session: SparkSession, folder: Path, kind: str) -> DataFrame:
    return session.read.parquet(str(folder / kind))


JOBS: dict[str, Callable[[SparkSession, Path, str], DataFrame]] = {
    "python_pickled": lambda session, folder, kind: table(session, folder, kind).select(
        "id", F.udf(parsed, "long", useArrow=False)("text").alias("n")
    ),
    "python_arrow": lambda session, folder, kind: table(session, folder, kind).select(
        "id", F.udf(parsed, "long", useArrow=True)("text").alias("n")
    ),
    "pandas": lambda session, folder, kind: table(session, folder, kind).select(
        "id",
        F.pandas_udf(parsed_column, "long")("text").alias("n"),  # type: ignore[attr-defined]
    ),
    "map_in_pandas": lambda session, folder, kind: (
        table(session, folder, kind).select("id", "text").mapInPandas(parsed_table, "id long, n long")
    ),
    "ansi_cast": lambda session, folder, kind: table(session, folder, kind).selectExpr(
        "id", "CAST(number AS INT) AS n"
    ),
    "csv": lambda session, folder, kind: (
        session.read.schema("id LONG, text STRING, n INT")
        .option("mode", "FAILFAST")
        .csv(str(folder / f"{kind}_csv"))
        .select("id", "n")
    ),
}


def summed(frame: DataFrame) -> tuple[Any, ...]:
    """All rows take part; the sum of hashes tells whether they are the same."""
    return tuple(frame.select(F.count("*"), F.sum(F.xxhash64("id", "n") % 1_000_003)).collect()[0])


def write(session: SparkSession, folder: Path, rows: int) -> set[int]:
    """The tables `good` and `bad`, and the culprits of the latter."""
    culprits = {rows // 7, rows // 2, rows - 1}
    good = session.range(0, rows, 1, 8).selectExpr(
        "id", "concat(100 + id % 900, '-', id % 7, '-', id) AS text", "CAST(id % 1000000 AS STRING) AS number"
    )
    is_bad = F.col("id").isin(*culprits)
    bad = good.select("id", *(F.when(is_bad, "x").otherwise(F.col(c)).alias(c) for c in ("text", "number")))
    for name, frame in (("good", good), ("bad", bad)):
        frame.write.mode("overwrite").parquet(str(folder / name))
        frame.write.mode("overwrite").csv(str(folder / f"{name}_csv"))
    return culprits


def run(options: Options) -> dict[str, Any]:
    rows = int(ROWS_AT_SCALE_1 * options.scale)
    found: dict[str, Any] = {"rows": rows, "jobs": {}, "differing": []}
    with tempfile.TemporaryDirectory() as home, spark_session(Path(home) / "store") as spark:
        folder = Path(home)
        plain = sibling(spark, PLAIN)
        culprits = write(plain, folder, rows)
        handling = {"control.onBadRow": "quarantine", "control.splitBatches": "true", "mode": "apply"}
        handled = sibling(spark, PLAIN | {f"spark.regions.{key}": value for key, value in handling.items()})
        for name, job in JOBS.items():
            if summed(job(plain, folder, "good")) != summed(job(handled, folder, "good")):
                found["differing"].append(name)
            pairs = []
            for number in range(options.rounds):
                both = [plain, handled] if number % 2 == 0 else [handled, plain]
                took = {session: timed(partial(summed, job(session, folder, "good"))) for session in both}
                pairs.append((took[handled], took[plain]))
            before = spark_regions.bad_rows(handled).count()
            rest = job(plain, folder, "good").where(~F.col("id").isin(*culprits))
            if summed(job(handled, folder, "bad")) != summed(rest):
                found["differing"].append(f"{name}, with culprits")
            above, below = zip(*pairs, strict=True)
            found["jobs"][name] = {
                "plain_seconds": round(median(below), 3),
                "handled_seconds": round(median(above), 3),
                "ratio": round(paired_ratio(above, below), 4),
                "quarantined": spark_regions.bad_rows(handled).count() - before,
            }
            print(name, found["jobs"][name], file=sys.stderr)
        jobs = found["jobs"].values()
        found["handled_over_plain"] = round(geometric_mean(job["ratio"] for job in jobs), 4)
        found["quarantined"] = sum(job["quarantined"] for job in jobs)
    return found


if __name__ == "__main__":
    benchmark_main("bad_rows", run, default_rounds=7)
