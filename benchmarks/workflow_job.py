"""Fourteen reports over five DataFrames that share parts of each other; they may all be persisted by hand.

spark-submit workflow_job.py <tables> <folder for the reports> plain|hand
"""

from __future__ import annotations

import csv
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Frames:
    """A graph and no tree: sales feed buyers, months and margins; supply feeds margins."""

    sales: DataFrame
    buyers: DataFrame
    months: DataFrame
    supply: DataFrame
    margins: DataFrame


def frames(spark: SparkSession, tables: str, kept: Callable[[DataFrame], DataFrame]) -> Frames:
    def table(name: str) -> DataFrame:
        return spark.read.parquet(f"{tables}/{name}.parquet")

    net = (F.col("l_extendedprice") * (1 - F.col("l_discount"))).cast("decimal(18,4)")
    sales = kept(
        table("lineitem")
        .join(table("orders"), F.col("l_orderkey") == F.col("o_orderkey"))
        .where(F.col("o_orderdate") >= "1995-01-01")
        .withColumn("net", net)
        .withColumn("words", F.size(F.split(F.trim("l_comment"), " +")))
    )
    buyers = kept(
        sales.join(table("customer"), F.col("o_custkey") == F.col("c_custkey"))
        .join(table("nation"), F.col("c_nationkey") == F.col("n_nationkey"))
        .groupBy("c_custkey", "c_name", "c_mktsegment", "n_name")
        .agg(
            F.sum("net").alias("spent"),
            F.countDistinct("o_orderkey").alias("orders"),
            F.max("o_orderdate").alias("last"),
        )
    )
    months = kept(
        sales.groupBy("l_partkey", F.trunc("o_orderdate", "month").alias("month")).agg(
            F.sum("l_quantity").alias("quantity"), F.sum("net").alias("net")
        )
    )
    supply = kept(
        table("partsupp")
        .join(table("supplier"), F.col("ps_suppkey") == F.col("s_suppkey"))
        .join(table("part"), F.col("ps_partkey") == F.col("p_partkey"))
    )
    margins = kept(
        sales.join(
            supply, (F.col("l_partkey") == F.col("ps_partkey")) & (F.col("l_suppkey") == F.col("ps_suppkey"))
        ).withColumn("margin", F.col("net") - F.col("ps_supplycost") * F.col("l_quantity"))
    )
    return Frames(sales, buyers, months, supply, margins)


def reports(f: Frames) -> dict[str, DataFrame]:
    """What is asked, in the order in which a person would."""
    by_segment = Window.partitionBy("c_mktsegment").orderBy(F.desc("spent"), "c_custkey")
    year = F.year("o_orderdate").alias("year")
    return {
        "revenue": f.sales.groupBy(year, "o_orderpriority").agg(
            F.sum("net").alias("net"), F.sum("words").alias("words")
        ),
        "stock_value": f.supply.groupBy("p_mfgr").agg(
            F.sum(F.col("ps_supplycost") * F.col("ps_availqty")).alias("value")
        ),
        "segments": f.buyers.groupBy("c_mktsegment").agg(
            F.sum("spent").alias("spent"), F.sum("orders").alias("orders")
        ),
        "nations": f.buyers.groupBy("n_name").agg(F.max("spent").alias("best"), F.count("*").alias("buyers")),
        "top_buyers": f.buyers.withColumn("place", F.row_number().over(by_segment)).where("place <= 10"),
        "late": f.sales.where("l_receiptdate > l_commitdate").groupBy("l_shipmode", year).count(),
        "margin_by_maker": f.margins.groupBy("p_mfgr").agg(
            F.sum("margin").alias("margin"), F.count("*").alias("lines")
        ),
        "margin_by_type": f.margins.groupBy("p_type").agg(F.sum("margin").alias("margin")),
        "loss_makers": f.margins.where("margin < 0").groupBy("s_name").agg(F.sum("margin").alias("loss")),
        "busiest_months": f.months.groupBy("month").agg(
            F.sum("quantity").alias("quantity"), F.count("*").alias("parts")
        ),
        "best_sellers": f.months.groupBy("l_partkey").agg(F.max("quantity").alias("peak")).where("peak >= 150"),
        "growth": f.months.groupBy(F.year("month").alias("year")).agg(F.sum("net").alias("net")),
        "discounts": f.sales.groupBy("l_discount").agg(
            F.avg("net").alias("net"), F.sum("l_quantity").alias("quantity")
        ),
        "sleeping": f.buyers.where("last < '1997-01-01'").groupBy("n_name").count(),
    }


@dataclass
class Storage:
    """The most that Spark's block manager held, looked at every 50 ms."""

    spark: SparkSession
    memory: int = 0
    disk: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        context: Any = self.spark.sparkContext._jsc.sc()
        while not self._over.wait(POLL_SECONDS):
            held = list(context.getRDDStorageInfo())
            self.memory = max(self.memory, sum(rdd.memSize() for rdd in held))
            self.disk = max(self.disk, sum(rdd.diskSize() for rdd in held))

    def stop(self) -> None:
        self._over.set()

    def spilled(self) -> int:
        """Bytes on disk that all stages spilled, as Spark's own status has them."""
        gateway: Any = self.spark.sparkContext._gateway
        store: Any = self.spark.sparkContext._jsc.sc().statusStore()
        none = gateway.new_array(gateway.jvm.double, 0)
        stages = store.stageList(None, False, False, none, gateway.jvm.java.util.ArrayList())
        return sum(stages.apply(i).diskBytesSpilled() for i in range(stages.size()))


def main() -> None:
    tables, output, kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    output.mkdir(parents=True)
    spark = SparkSession.builder.appName("workflow job").getOrCreate()
    storage = Storage(spark)
    watcher = threading.Thread(target=storage.watch, daemon=True)
    watcher.start()
    made = frames(spark, tables, lambda frame: frame.persist() if kind == "hand" else frame)
    seconds = {}
    for name, report in reports(made).items():
        start = time.perf_counter()
        with (output / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(report.columns)
            writer.writerows(report.collect())
        seconds[name] = time.perf_counter() - start
    storage.stop()
    watcher.join()
    (output / "seconds.json").write_text(json.dumps(seconds))
    (output / "storage.json").write_text(
        json.dumps({"memory": storage.memory, "disk": storage.disk, "spilled": storage.spilled()})
    )
    spark.stop()


if __name__ == "__main__":
    main()
