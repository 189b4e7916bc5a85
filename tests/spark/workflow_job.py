"""A job of seven queries over three DataFrames; prints what it found and what the plugin did, as one line of JSON.

workflow_job.py <data> <store, or nothing for plain Spark> [batch]
"""

from __future__ import annotations

import json
import re
import sys
import time

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import decisions


def queries(spark: SparkSession, data: str) -> dict[str, DataFrame]:
    rows = spark.read.parquet(data)
    base = rows.withColumn("digest", _heavy("text")).where("id % 7 <> 0").repartition(3, "k")
    totals = base.groupBy("k").agg(F.count("*").alias("rows"), F.max("digest").alias("last"))
    details = base.join(totals.select("k", "rows"), "k").withColumn("more", _heavy("digest", 300))
    return {
        "firsts": base.groupBy(F.substring("digest", 1, 1).alias("first")).count(),
        "totals": totals.where("rows > 1").orderBy("k"),
        "odd": base.where("k % 2 = 1").agg(F.min("digest").alias("least"), F.sum("id").alias("sum")),
        "large": totals.where("rows > 5").agg(F.max("last").alias("last")),
        "ids": base.select(F.max("id").alias("largest")),
        "endings": details.groupBy(F.substring("more", 1, 1).alias("first")).count(),
        "latest": details.agg(F.max("more").alias("last"), F.max("k").alias("k")),
    }


def _heavy(column: str, times: int = 100) -> Column:
    """About a third of a microsecond a row, so many times."""
    return F.sha2(F.repeat(column, times), 512)


def main() -> None:
    data, store = sys.argv[1], sys.argv[2]
    builder = (
        SparkSession.builder.appName("workflow test")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.planChangeValidation", "true")
    )
    if store:
        options = {"planner_deadline": "60s", "recycle_max_bytes": "0", "persist_max_bytes": "100m"}
        options["sources_racy_seconds"] = "0"
        builder = spark_regions.configure(builder, recycle_dir=store, strict=True, recycle_row_order="any", **options)
    spark = builder.getOrCreate()
    frames = queries(spark, data)
    if "batch" in sys.argv:
        collected = spark_regions.run([spark_regions.later(frame).collect() for frame in frames.values()])
        rows = dict(zip(frames, (sorted(map(str, each)) for each in collected), strict=True))
    else:
        rows = {name: sorted(map(str, frame.collect())) for name, frame in frames.items()}
    ran = frames["endings"]._jdf.queryExecution().executedPlan().toString()
    explained = ""
    kinds: list[list[object]] = []
    counters: dict[str, str] = {}
    if store:
        _settle(spark)
        kinds = [[d["kind"], d["code"]] for d in decisions(spark)]
        counters = {row.key: row.value for row in spark.sql("SELECT * FROM spark_regions_status()").collect()}
        explained = (
            queries(spark, data)["totals"]
            ._jdf.queryExecution()
            .explainString(
                spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("simple")  # type: ignore[union-attr]
            )
        )
    held = spark.sparkContext._jsc.sc().getRDDStorageInfo()  # type: ignore[attr-defined]
    print("RESULT " + json.dumps({
        "rows": rows,
        "read": sorted(set(re.findall(r"MaterializedRead (\w+)", ran))),
        "kinds": kinds, "persists": counters.get("counter.persists"),
        "recalls": counters.get("counter.recalls"), "held": len(list(held)), "explained": explained,
    }))  # fmt: skip
    spark.stop()


def _settle(spark: SparkSession) -> None:
    """Until what the last query read has been released, by the listener's thread."""
    end = time.monotonic() + 20
    while time.monotonic() < end and list(spark.sparkContext._jsc.sc().getRDDStorageInfo()):  # type: ignore[attr-defined]
        time.sleep(0.1)


if __name__ == "__main__":
    main()
