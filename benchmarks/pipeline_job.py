"""One stage of a pipeline: it reads what the stage before it has written, and writes under a path that nobody had.

spark-submit pipeline_job.py <tables, or folder of the stage before> <folder of this stage> bronze|silver|gold
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.lines_job import recent_lines

STAGES = ("bronze", "silver", "gold")


def bronze(spark: SparkSession, tables: str) -> DataFrame:
    """Lines of recent orders with their customers, and what a Python function says of each."""
    return recent_lines(spark, tables)


def silver(spark: SparkSession, source: str) -> DataFrame:
    """What each customer bought in each month by each way, and the share of it in all that the customer bought."""
    lines = spark.read.parquet(f"{source}/bronze")
    month = F.date_trunc("month", "ordered").alias("month")
    bought = lines.groupBy("c_custkey", "customer", "segment", month, "mode", "risk").agg(
        F.sum("net").alias("net"), F.count("*").alias("lines"), F.max("days_late").alias("latest")
    )
    whole = Window.partitionBy("c_custkey")
    rank = F.row_number().over(whole.orderBy(F.desc("net"), "month", "mode", "risk"))
    return bought.withColumn("of_all", F.sum("net").over(whole)).withColumn("rank", rank)


def gold(spark: SparkSession, source: str) -> DataFrame:
    """A line for each segment, month and risk."""
    bought = spark.read.parquet(f"{source}/silver").where("rank <= 20")
    return (
        bought.groupBy("segment", "month", "risk")
        .agg(
            F.sum("net").alias("net"),
            F.countDistinct("c_custkey").alias("customers"),
            F.max("latest").alias("latest"),
            F.max(F.col("net") / F.col("of_all")).alias("share"),
        )
        .orderBy("segment", "month", "risk")
    )


def main() -> None:
    source, output, stage = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName(f"pipeline {stage}").getOrCreate()
    start = time.perf_counter()
    {"bronze": bronze, "silver": silver, "gold": gold}[stage](spark, source).write.parquet(str(output / stage))
    (output / "seconds.json").write_text(json.dumps({stage: time.perf_counter() - start}))
    spark.stop()


if __name__ == "__main__":
    main()
