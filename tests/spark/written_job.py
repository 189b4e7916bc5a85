"""An application of its own: it writes a chain of files, or reads one, and tells what it did.

written_job.py <store, or empty> <source> <folder of the day> write|read
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_regions
from tests.harness.session import counters, decisions, settle_writes, spark_session

ALWAYS = {
    "spark.regions.recycle.strategy": "always",
    "spark.regions.planner.deadline": "10s",
    # What a second run keeps by its plan is not loaded.
    "spark.regions.workflow.enabled": "false",
}


def read(spark: SparkSession, folder: str) -> DataFrame:
    rows = spark.read.parquet(f"{folder}/silver")
    return rows.groupBy("p").agg(F.sum("v").alias("v"), F.max("n").alias("n"))


def main() -> None:
    store, source, folder, what = sys.argv[1:]
    with spark_session(Path(store) if store else None, ALWAYS if store else {}) as spark:
        if what == "write":
            bronze = spark.read.parquet(source).where("v >= 100").withColumn("v", F.col("v") * 2)
            bronze.write.parquet(f"{folder}/bronze")
            if store:
                settle_writes(spark)
            grouped = spark.read.parquet(f"{folder}/bronze").groupBy("k", "p")
            grouped.agg(F.sum("v").alias("v"), F.count("*").alias("n")).write.parquet(f"{folder}/silver")
            if store:
                settle_writes(spark)
        found = {"rows": [list(row) for row in read(spark, folder).collect()]}
        if store:
            did = counters(spark)
            found |= {
                "loads": did.loads,
                "told": [f"{row['kind']} {row['operator']} {row['code']} {row['detail']}" for row in decisions(spark)],
                "registered": sum(row["code"] == "REGISTERED" for row in decisions(spark)),
                "source": [str(node) for node in spark_regions.why_not(read(spark, folder)).nodes][-1],
            }
    print(f"RESULT {json.dumps(found)}")


if __name__ == "__main__":
    main()
