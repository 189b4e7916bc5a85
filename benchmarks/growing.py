"""Appended input: an aggregate brought up to date from the new files, against computing it again.

python -m benchmarks.growing [--scale 1] [--rounds 3]

A table of `lineitem` rows in a hundred files, of which 1, 10 or 50 are added after the aggregate was stored. Plain
Spark and the plugin take turns over the same files; the plugin has what it stored over those that were there before.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Options, benchmark_main
from benchmarks.turns import in_turn
from examples import data
from tests.harness.session import counters, decisions, sibling, spark_session
from tests.tpc.rows import difference, outcome

FILES = 100
SHARES = (1, 10, 50)
SIDES = ("plain", "plugin")
OFF = {"spark.regions.mode": "observe"}
ROW_ORDER = {"spark.regions.recycle.rowOrder": "any"}
TOTALS = """SELECT l_returnflag, l_linestatus, l_shipdate, sum(l_quantity) AS quantity, count(l_quantity) AS n,
 avg(l_quantity) AS mean, sum(l_extendedprice) AS price, max(l_tax) AS tax, count(*) AS lines
 FROM lines WHERE l_shipmode <> 'AIR' GROUP BY l_returnflag, l_linestatus, l_shipdate"""


def growing(options: Options) -> dict[str, Any]:
    """Seconds with the plugin over plain Spark's, by share of new files; what was read, whether rows are the same."""
    tables = data.tpch(options.scale, options.data)
    ratios: dict[int, list[float]] = {share: [] for share in SHARES}
    seconds: dict[str, list[float]] = {}
    refreshed = differing = 0
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        with spark_session(folder / "recycle", ROW_ORDER | {"spark.regions.recycle.strategy": "always"}) as spark:
            sides = {"plain": sibling(spark, OFF), "plugin": spark}
            whole = folder / "whole"
            lines = sides["plain"].read.parquet(str(data.tables(tables)["lineitem"]))
            lines.repartition(FILES).write.parquet(str(whole))
            files = sorted(whole.glob("*.parquet"))
            for number in range(options.rounds):
                for share in SHARES:
                    now = folder / f"lines-{number}-{share}"
                    now.mkdir()
                    for file in files[share:]:
                        shutil.copyfile(file, now / file.name)
                    frame(sides["plugin"], now).collect()
                    counters(spark)
                    for file in files[:share]:
                        shutil.copyfile(file, now / file.name)
                    took: dict[str, float] = {}
                    before = served(spark)
                    for side in in_turn(SIDES, number + share):
                        began = perf_counter()
                        frame(sides[side], now).collect()
                        took[side] = perf_counter() - began
                    counters(spark)
                    refreshed += served(spark) - before
                    found = outcome(frame(sides["plugin"], now))
                    differing += difference(outcome(frame(sides["plain"], now)), found) is not None
                    ratios[share].append(took["plugin"] / took["plain"])
                    for side in SIDES:
                        seconds.setdefault(f"{share} % {side}", []).append(round(took[side], 2))
    return {
        **{f"refresh_over_recompute_{share}_percent": median(each) for share, each in ratios.items()},
        "refreshed": f"{refreshed} of {options.rounds * len(SHARES)}",
        "differing": differing,
        "seconds": seconds,
    }


def frame(spark: SparkSession, folder: Path) -> DataFrame:
    spark.read.parquet(str(folder)).createOrReplaceTempView("lines")
    return spark.sql(TOTALS)


def served(spark: SparkSession) -> int:
    return sum(row["code"] == "REFRESHED" and row["kind"] == "load" for row in decisions(spark))


if __name__ == "__main__":
    benchmark_main("growing", growing, 3)
