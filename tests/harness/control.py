"""Kinds of work in which a pause has to be quick."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

CONTROLLED = {
    "spark.regions.control.enabled": "true",
    "spark.regions.platforms": "off",
    "spark.regions.recycle.strategy": "off",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Where ours does not compile, Spark would go on without any generated code.
    "spark.sql.codegen.fallback": "false",
}
ROWS = 400_000


def slowly(value: int) -> int:
    time.sleep(0.0005)
    return value + 1


def grouped(frame: Any) -> Any:
    time.sleep(0.02)
    return frame.assign(id=frame["id"] + 1)


def kinds(spark: SparkSession, folder: Path) -> dict[str, Callable[[], DataFrame]]:
    """The ten kinds of work in which a pause has to be quick."""
    facts = spark.read.parquet(str(folder / "facts"))
    small = facts.where("id % 100 = 0")

    def cached() -> DataFrame:
        held = facts.selectExpr("id", "sha2(string(id), 256) AS text").cache()
        return held.groupBy(F.substring("text", 1, 1).alias("k")).count()

    def written() -> DataFrame:
        facts.selectExpr("*", "sha2(string(id), 256) AS text").write.mode("overwrite").parquet(str(folder / "out"))
        return spark.read.parquet(str(folder / "out")).selectExpr("count(*)", "sum(id)")

    return {
        "scan": lambda: facts.where("sha2(string(id), 512) LIKE 'a%'").groupBy("k").agg(F.sum("id")),
        "hash_build": lambda: facts.hint("shuffle_hash").join(small.select("id"), "id").selectExpr("sum(k)"),
        "sort": lambda: (
            facts.selectExpr("id", "sha2(string(id), 256) AS t").orderBy("t").limit(ROWS).selectExpr("count(t)")
        ),
        "window": lambda: facts.selectExpr("sum(id) OVER (PARTITION BY k % 2 ORDER BY id) AS s").selectExpr(
            "sum(s % 97)"
        ),
        "shuffle": lambda: facts.repartition(7, "id").selectExpr("sum(id)"),
        "python": lambda: small.repartition(2).select(F.udf(slowly, "long")("id").alias("v")).selectExpr("sum(v)"),
        "grouped": lambda: small.groupBy("k").applyInPandas(grouped, facts.schema).selectExpr("sum(id)"),
        "exploding": lambda: small.select("id", F.explode(F.sequence(F.lit(0), F.lit(2000)))).selectExpr("sum(id % 7)"),
        "caching": cached,
        "writing": written,
    }


def facts(spark: SparkSession, folder: Path) -> None:
    spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 20 AS k").write.parquet(str(folder / "facts"))
