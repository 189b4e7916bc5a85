"""Weekly reports on the lines of recent orders.

spark-submit orders_report.py <folder of the tables> <folder for the reports>
"""

import csv
import json
import re
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

FRAGILE = {"furiously", "quickly", "carefully", "blithely", "slyly"}
RUSH_MODES = ("AIR", "REG AIR", "TRUCK")


def handling_class(comment, instructions, ship_mode, quantity):
    """How the warehouse has to handle a line: read from the clerk's free text and the shipping instructions."""
    words = re.findall(r"[a-z]+", comment.lower())
    caution = sum(1 for word in words if word in FRAGILE)
    weight = sum(len(word) for word in words) % 7
    points = 3 * caution + weight + (2 if "PERSON" in instructions else 0) + (1 if ship_mode in RUSH_MODES else 0)
    if quantity > 40:
        points += 4
    if points >= 9:
        return "special"
    return "careful" if points >= 5 else "normal"


def clean_lines(spark: SparkSession, tables: str) -> DataFrame:
    """One row for each line of an order since July 1997, with its buyer, part, seller, price, cost, handling."""

    def table(name):
        return spark.read.parquet(f"{tables}/{name}.parquet")

    orders = table("orders").where(F.col("o_orderdate") >= F.lit("1997-07-01").cast("date"))
    lines = table("lineitem").where(F.col("l_returnflag") != "R")
    buyers = table("nation").select(
        F.col("n_nationkey").alias("buyer_key"), F.col("n_name").alias("buyer_nation"), "n_regionkey"
    )
    sellers = table("nation").select(F.col("n_nationkey").alias("seller_key"), F.col("n_name").alias("seller_nation"))
    joined = (
        lines.join(orders, lines.l_orderkey == orders.o_orderkey)
        .join(table("customer"), F.col("o_custkey") == F.col("c_custkey"))
        .join(buyers, F.col("c_nationkey") == F.col("buyer_key"))
        .join(table("region"), F.col("n_regionkey") == F.col("r_regionkey"))
        .join(table("part"), F.col("l_partkey") == F.col("p_partkey"))
        .join(table("supplier"), F.col("l_suppkey") == F.col("s_suppkey"))
        .join(sellers, F.col("s_nationkey") == F.col("seller_key"))
        .join(
            table("partsupp"),
            (F.col("ps_partkey") == F.col("l_partkey")) & (F.col("ps_suppkey") == F.col("l_suppkey")),
        )
    )
    handling = F.udf(handling_class, StringType())
    net = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    return joined.select(
        "o_orderkey",
        "l_linenumber",
        "c_custkey",
        F.trim("c_name").alias("customer"),
        F.initcap("c_mktsegment").alias("segment"),
        "buyer_nation",
        "seller_nation",
        F.col("r_name").alias("region"),
        F.substring("p_brand", 7, 2).alias("brand"),
        F.col("o_orderdate").alias("ordered"),
        F.col("l_shipdate").alias("shipped"),
        F.datediff("l_receiptdate", "l_commitdate").alias("days_late"),
        "l_quantity",
        net.cast("decimal(18,4)").alias("net"),
        (net - F.col("ps_supplycost") * F.col("l_quantity")).cast("decimal(18,4)").alias("margin"),
        handling("l_comment", "l_shipinstruct", "l_shipmode", F.col("l_quantity").cast("int")).alias("handling"),
    )


def revenue_by_nation(lines, output):
    result = (
        lines.groupBy("region", "buyer_nation", F.year("ordered").alias("year"), F.quarter("ordered").alias("quarter"))
        .agg(F.sum("net").alias("net"), F.count("*").alias("lines"), F.avg("margin").alias("mean_margin"))
        .orderBy("region", "buyer_nation", "year", "quarter")
    )
    write_csv(output, "revenue_by_nation", result.columns, result.collect())


def handling_by_brand(lines, output):
    result = (
        lines.groupBy("brand", "handling")
        .agg(
            F.sum("margin").alias("margin"),
            F.sum("l_quantity").alias("quantity"),
            F.max("days_late").alias("worst_delay"),
        )
        .orderBy("brand", "handling")
    )
    write_csv(output, "handling_by_brand", result.columns, result.collect())


def largest_special_orders(lines, output):
    result = (
        lines.where(F.col("handling") == "special")
        .groupBy("o_orderkey", "c_custkey", "customer")
        .agg(F.sum("net").alias("net"), F.count("*").alias("lines"))
        .orderBy(F.desc("net"), "o_orderkey")
        .limit(100)
    )
    write_csv(output, "largest_special_orders", result.columns, result.collect())


def best_customers(lines, output):
    spent = lines.groupBy("buyer_nation", "c_custkey", "customer").agg(
        F.sum("net").alias("net"), F.sum(F.when(F.col("handling") != "normal", F.col("net"))).alias("net_handled")
    )
    rank = F.row_number().over(Window.partitionBy("buyer_nation").orderBy(F.desc("net"), "c_custkey"))
    result = spent.withColumn("rank", rank).where("rank <= 5").orderBy("buyer_nation", "rank")
    write_csv(output, "best_customers", result.columns, result.collect())


def monthly_growth(lines, output):
    monthly = lines.groupBy("segment", "handling", F.trunc("ordered", "month").alias("month")).agg(
        F.sum("net").alias("net")
    )
    before = F.lag("net").over(Window.partitionBy("segment", "handling").orderBy("month"))
    result = monthly.withColumn("growth", F.col("net") - before).orderBy("segment", "handling", "month")
    write_csv(output, "monthly_growth", result.columns, result.collect())


def delay_table(lines, output):
    delays = (
        lines.where("days_late > 0")
        .groupBy("seller_nation", "handling")
        .agg(F.count("*").alias("lines"), F.sum("days_late").alias("days"))
        .toPandas()
    )
    delays["mean_days"] = delays["days"] / delays["lines"]
    wide = delays.pivot(index="seller_nation", columns="handling", values="mean_days").sort_index()
    wide.to_csv(output / "delay_table.csv")


def late_lines(lines, output):
    late = lines.where("days_late > 75").select(
        "o_orderkey", "l_linenumber", "customer", "buyer_nation", "shipped", "days_late", "net", "handling"
    )
    late.write.mode("overwrite").parquet(str(output / "late_lines"))


def audit(lines, output):
    counts = {
        "lines": lines.count(),
        "special_lines": lines.where("handling = 'special'").count(),
    }
    write_csv(output, "audit", ["check", "count"], sorted(counts.items()))


REPORTS = (
    revenue_by_nation,
    handling_by_brand,
    largest_special_orders,
    best_customers,
    monthly_growth,
    delay_table,
    late_lines,
    audit,
)


def write_csv(output, name, header, rows):
    with open(output / f"{name}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def run_reports(lines: DataFrame, output: Path) -> dict[str, float]:
    """Write every report; the seconds that each took."""
    output.mkdir(parents=True, exist_ok=True)
    seconds = {}
    for report in REPORTS:
        start = time.perf_counter()
        report(lines, output)
        seconds[report.__name__] = round(time.perf_counter() - start, 3)
        print(f"{report.__name__}: {seconds[report.__name__]:.1f} s", flush=True)
    return seconds


def main():
    tables, output = sys.argv[1], Path(sys.argv[2])
    spark = SparkSession.builder.appName("orders report").getOrCreate()
    seconds = run_reports(clean_lines(spark, tables), output)
    (output / "seconds.json").write_text(json.dumps(seconds, indent=1))
    spark.stop()


if __name__ == "__main__":
    main()
