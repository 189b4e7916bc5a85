"""Six reports on the lines of recent orders; the lines may be materialized by hand, as a careful engineer would do.

spark-submit lines_job.py <tables> <folder for the reports> plain|memory_and_disk|disk_only|write_and_read
"""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

URGENT = {"furiously", "quickly", "fluffily"}


def risk_class(comment: str, instructions: str, segment: str, quantity: int) -> str:
    """How likely a line is to be sent back, read from the clerk's free text."""
    words = re.findall(r"[a-z]+", comment.lower())
    points = 2 * sum(1 for word in words if word in URGENT) + sum(len(word) for word in words) % 5
    points += (3 if quantity > 40 else 0) + (1 if "RETURN" in instructions else 0)
    points += 1 if segment in ("BUILDING", "MACHINERY") else 0
    if points >= 8:
        return "high"
    return "medium" if points >= 4 else "low"


def recent_lines(spark: SparkSession, tables: str) -> DataFrame:
    """One row for each line of an order since July 1997: about a million at scale 1."""
    orders = spark.read.parquet(f"{tables}/orders.parquet").where(F.col("o_orderdate") >= "1997-07-01")
    lines = spark.read.parquet(f"{tables}/lineitem.parquet")
    customers = spark.read.parquet(f"{tables}/customer.parquet")
    risk = F.udf(risk_class, StringType())
    net = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    return (
        lines.join(orders, F.col("l_orderkey") == F.col("o_orderkey"))
        .join(customers, F.col("o_custkey") == F.col("c_custkey"))
        .select(
            "o_orderkey",
            "l_linenumber",
            "c_custkey",
            F.trim("c_name").alias("customer"),
            F.col("c_mktsegment").alias("segment"),
            F.col("o_orderpriority").alias("priority"),
            F.col("o_orderdate").alias("ordered"),
            F.col("l_shipmode").alias("mode"),
            F.datediff("l_receiptdate", "l_commitdate").alias("days_late"),
            "l_quantity",
            net.cast("decimal(18,4)").alias("net"),
            risk("l_comment", "l_shipinstruct", "c_mktsegment", F.col("l_quantity").cast("int")).alias("risk"),
        )
    )


def revenue_by_segment(lines: DataFrame, output: Path) -> None:
    quarters = lines.groupBy("segment", F.year("ordered").alias("year"), F.quarter("ordered").alias("quarter"))
    result = quarters.agg(F.sum("net").alias("net"), F.count("*").alias("lines"), F.max("risk").alias("worst"))
    write_csv(output, "revenue_by_segment", result)


def risk_by_mode(lines: DataFrame, output: Path) -> None:
    modes = lines.where("l_quantity > 5").groupBy("mode", "priority", "risk")
    write_csv(output, "risk_by_mode", modes.agg(F.sum("l_quantity").alias("quantity"), F.avg("net").alias("mean_net")))


def largest_risky_orders(lines: DataFrame, output: Path) -> None:
    orders = lines.where("risk = 'high'").groupBy("o_orderkey", "customer").agg(F.sum("net").alias("net"))
    write_csv(output, "largest_risky_orders", orders.orderBy(F.desc("net"), "o_orderkey").limit(100))


def best_customers(lines: DataFrame, output: Path) -> None:
    spent = lines.groupBy("segment", "c_custkey", "customer").agg(F.sum("net").alias("net"))
    place = F.row_number().over(Window.partitionBy("segment").orderBy(F.desc("net"), "c_custkey"))
    write_csv(output, "best_customers", spent.withColumn("place", place).where("place <= 20"))


def late_lines(lines: DataFrame, output: Path) -> None:
    late = lines.where("days_late > 60 AND risk <> 'low'")
    late.select("o_orderkey", "l_linenumber", "customer", "days_late", "net", "risk").write.parquet(
        str(output / "late_lines")
    )


def delays(lines: DataFrame, output: Path) -> None:
    counts = (
        lines.where("days_late > 0")
        .groupBy("mode", "risk")
        .agg(F.count("*").alias("lines"), F.sum("days_late").alias("days"))
    )
    frame: Any = counts.toPandas()
    frame["mean_days"] = frame["days"] / frame["lines"]
    wide = frame.pivot(index="mode", columns="risk", values="mean_days").sort_index()
    wide.to_csv(output / "delays.csv")


REPORTS: tuple[Callable[[DataFrame, Path], None], ...] = (
    revenue_by_segment,
    risk_by_mode,
    largest_risky_orders,
    best_customers,
    late_lines,
    delays,
)


def materialized(spark: SparkSession, lines: DataFrame, kind: str, folder: str) -> DataFrame:
    if kind == "plain":
        return lines
    if kind == "memory_and_disk":
        return lines.persist(StorageLevel.MEMORY_AND_DISK)
    if kind == "disk_only":
        return lines.persist(StorageLevel.DISK_ONLY)
    if kind == "write_and_read":
        lines.write.parquet(folder)
        return spark.read.parquet(folder)
    raise ValueError(f"unknown kind {kind!r}")


def write_csv(output: Path, name: str, result: DataFrame) -> None:
    with (output / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(result.columns)
        writer.writerows(result.collect())


def main() -> None:
    tables, output, kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName("lines job").getOrCreate()
    start = time.perf_counter()
    lines = materialized(spark, recent_lines(spark, tables), kind, f"{output}-base")
    seconds = {"materialize": time.perf_counter() - start}
    for report in REPORTS:
        start = time.perf_counter()
        report(lines, output)
        seconds[report.__name__] = time.perf_counter() - start
    (output / "seconds.json").write_text(json.dumps(seconds))
    spark.stop()


if __name__ == "__main__":
    main()
