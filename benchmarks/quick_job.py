"""Loops of quick queries that only Spark can compute, each with another value, and none of use to the next one.

spark-submit quick_job.py <tables> <folder for the results>
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ITERATIONS = 80


def queries(lines: DataFrame, orders: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    """Their names and DataFrames; `stddev` has no exact counterpart on another engine."""
    for number in range(ITERATIONS):
        some = lines.where(F.col("l_extendedprice") > 900 + 500 * number)
        yield f"price {number}", some.groupBy("l_shipmode").agg(F.stddev("l_quantity"), F.count("*"))
    for number in range(ITERATIONS):
        some = lines.where(F.col("l_shipdate") > date(1993, 1, 1) + timedelta(days=number))
        yield f"day {number}", some.groupBy("l_shipmode").agg(F.stddev("l_quantity"), F.count("*"))
    for number in range(ITERATIONS):
        few = orders.where(F.col("o_totalprice") < 20_000 + 1_000 * number)
        joined = lines.join(few, F.col("l_orderkey") == F.col("o_orderkey"))
        yield f"join {number}", joined.groupBy("o_orderpriority").agg(F.stddev("l_tax"), F.count("*"))


def main() -> None:
    tables, output = sys.argv[1], Path(sys.argv[2])
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName("quick job").getOrCreate()
    lines, orders = (spark.read.parquet(f"{tables}/{name}.parquet") for name in ("lineitem", "orders"))
    seconds = {}
    with (output / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for name, frame in queries(lines, orders):
            start = time.perf_counter()
            rows = frame.collect()
            seconds[name] = time.perf_counter() - start
            # Sums of floats end in other digits where rows come in another order.
            writer.writerows([name, key, f"{deviation:.9e}", count] for key, deviation, count in rows)
    (output / "seconds.json").write_text(json.dumps(seconds))
    spark.stop()


if __name__ == "__main__":
    main()
