"""Appended input: an aggregate brought up to date from the new files, against computing it again.

python -m benchmarks.growing [--scale 1] [--rounds 3]

A table of `lineitem` rows in a hundred files, of which 1, 10 or 50 are added after the aggregate was stored. Plain
Spark and the plugin take turns over the same files; the plugin has what it stored over those that were there before.
Once as it is by default, where DuckDB may compute all of it sooner, and once without an engine.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
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
ENGINES: dict[str, dict[str, str]] = {"default": {}, "without_engine": {"spark.regions.platforms": "off"}}
TOTALS = """SELECT l_returnflag, l_linestatus, l_shipdate, sum(l_quantity) AS quantity, count(l_quantity) AS n,
 avg(l_quantity) AS mean, sum(l_extendedprice) AS price, max(l_tax) AS tax, count(*) AS lines
 FROM lines WHERE l_shipmode <> 'AIR' GROUP BY l_returnflag, l_linestatus, l_shipdate"""


def growing(options: Options) -> dict[str, Any]:
    """Seconds with the plugin over plain Spark's, by share of new files; what was read, whether rows are the same."""
    lineitem = data.tables(data.tpch(options.scale, options.data))["lineitem"]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as temporary:
        folder = Path(temporary)
        with spark_session(folder / "recycle", ROW_ORDER | {"spark.regions.recycle.strategy": "always"}) as spark:
            plain = sibling(spark, OFF)
            plain.read.parquet(str(lineitem)).repartition(FILES).write.parquet(str(folder / "whole"))
            files = sorted((folder / "whole").glob("*.parquet"))
            for name, confs in ENGINES.items():
                sides = {"plain": plain, "plugin": sibling(spark, confs)}
                found[name] = grown(sides, files, folder / name, options.rounds)
    return found | {"differing": sum(each.pop("differing") for each in found.values())}


def grown(sides: Mapping[str, SparkSession], files: list[Path], folder: Path, rounds: int) -> dict[str, Any]:
    ratios: dict[int, list[float]] = {share: [] for share in SHARES}
    seconds: dict[str, list[float]] = {}
    refreshed = differing = 0
    for number in range(rounds):
        for share in SHARES:
            now = folder / f"lines-{number}-{share}"
            now.mkdir(parents=True)
            for file in files[share:]:
                shutil.copyfile(file, now / file.name)
            frame(sides["plugin"], now).collect()
            counters(sides["plugin"])
            for file in files[:share]:
                shutil.copyfile(file, now / file.name)
            took: dict[str, float] = {}
            before = served(sides["plugin"])
            for side in in_turn(SIDES, number + share):
                began = perf_counter()
                frame(sides[side], now).collect()
                took[side] = perf_counter() - began
            counters(sides["plugin"])
            refreshed += served(sides["plugin"]) - before
            rows = outcome(frame(sides["plugin"], now))
            differing += difference(outcome(frame(sides["plain"], now)), rows) is not None
            ratios[share].append(took["plugin"] / took["plain"])
            for side in SIDES:
                seconds.setdefault(f"{share} % {side}", []).append(round(took[side], 2))
    return {
        **{f"refresh_over_recompute_{share}_percent": median(each) for share, each in ratios.items()},
        "refreshed": f"{refreshed} of {rounds * len(SHARES)}",
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
