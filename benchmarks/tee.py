"""A query that stores in passing, against the plain query and against persist(DISK_ONLY) in the same action.

Every round filters by another remainder, so that each store is a new one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import benchmark_main, paired_ratio, timed
from benchmarks.session import counters, register, sibling, spark_session
from examples import data


def base(spark: SparkSession, remainder: int) -> DataFrame:
    """A join that is worth storing: about 1.5 million rows at scale 1."""
    lines = spark.table("lineitem").where(F.col("l_shipdate") >= "1996-01-01")
    lines = lines.where(F.col("l_orderkey") % 1009 != remainder)
    orders = spark.table("orders")
    return (
        lines.join(orders, lines.l_orderkey == orders.o_orderkey)
        .join(spark.table("part"), F.col("l_partkey") == F.col("p_partkey"))
        .select("o_orderdate", "o_orderpriority", "p_brand", "l_quantity", "l_extendedprice", "l_discount")
    )


def report(lines: DataFrame) -> list[Any]:
    revenue = F.sum(F.col("l_extendedprice") * (1 - F.col("l_discount")))
    return lines.groupBy("p_brand", "o_orderpriority").agg(revenue, F.max("o_orderdate"), F.sum("l_quantity")).collect()


def persisted(lines: DataFrame) -> list[Any]:
    kept = lines.persist(StorageLevel.DISK_ONLY)
    try:
        return report(kept)
    finally:
        kept.unpersist(blocking=True)


def run(scale: float, rounds: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {"plain": [], "tee": [], "disk_only": []}
    tables = data.tpch(scale)
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        with spark_session(Path(folder) / "recycle", {"spark.regions.recycle.strategy": "off"}) as spark:
            register(spark, tables)
            storing = sibling(spark, {"spark.regions.recycle.strategy": "always"})
            register(storing, tables)
            for remainder in (1, 2):
                report(base(spark, remainder))
            before = counters(spark)
            for number in range(rounds):
                remainder = 100 + number
                actions = {
                    "plain": lambda: report(base(spark, remainder)),  # noqa: B023
                    "tee": lambda: report(base(storing, remainder)),  # noqa: B023
                    "disk_only": lambda: persisted(base(spark, remainder)),  # noqa: B023
                }
                names = list(actions)
                for name in names[number % 3 :] + names[: number % 3]:
                    seconds[name].append(timed(actions[name]))
            done = counters(spark) - before
    return {
        "tee_over_plain": paired_ratio(seconds["tee"], seconds["plain"]),
        "tee_over_disk_only": paired_ratio(seconds["tee"], seconds["disk_only"]),
        "disk_only_over_plain": paired_ratio(seconds["disk_only"], seconds["plain"]),
        "stores": done.stores,
        "loads": done.loads,
        "seconds": {name: median(values) for name, values in seconds.items()},
        "seconds_all": seconds,
    }


if __name__ == "__main__":
    benchmark_main("tee", run, default_rounds=6)
