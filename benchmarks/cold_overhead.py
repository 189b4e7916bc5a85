"""The 22 TPC-H queries when there is nothing to reuse: a driver with the plugin against a plain one, query by query.

Between rounds the input files get a new modification time: no lineage of an earlier round is met again, while both
JVMs stay warm. What the plugin still finds inside a round, where queries have parts in common, is counted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.turns import Driver, drivers, in_turn
from examples import data

COUNTED = ("commits", "loads", "plansChanged", "fallbacks")


def run(options: Options) -> dict[str, Any]:
    queries = data.tpch_queries()
    source = data.tpch(options.scale, options.data)
    rounds: list[dict[str, dict[int, dict[str, Any]]]] = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        tables = folder / "tables"
        shutil.copytree(source, tables)
        with drivers(folder, {"plain": None, "plugin": {}}) as pair:
            one_round(pair, tables, queries, 0)
            before = {counter: pair["plugin"].counter(counter) for counter in COUNTED}
            for number in range(options.rounds):
                for file in tables.iterdir():
                    os.utime(file)
                rounds.append(one_round(pair, tables, queries, number))
            done = {counter: pair["plugin"].counter(counter) - before[counter] for counter in COUNTED}
            versions = pair["plugin"].versions

    def seconds(side: str, number: int, key: str) -> list[float]:
        return [found[side][number][key] for found in rounds]

    def total(side: str, key: str) -> float:
        return sum(median(seconds(side, number, key)) for number in queries)

    found: dict[int, dict[str, Any]] = {
        number: {
            "seconds_plain": median(seconds("plain", number, "seconds")),
            "seconds_plugin": median(seconds("plugin", number, "seconds")),
            "ratio": paired_ratio(seconds("plugin", number, "seconds"), seconds("plain", number, "seconds")),
            "seconds_plain_all": seconds("plain", number, "seconds"),
            "seconds_plugin_all": seconds("plugin", number, "seconds"),
        }
        for number in queries
    }
    return {
        "overall_ratio": total("plugin", "seconds") / total("plain", "seconds"),
        "overall_ratio_settled": total("plugin", "seconds_settled") / total("plain", "seconds_settled"),
        "median_ratio": median(each["ratio"] for each in found.values()),
        "queries_beyond_1.05_plus_50_ms": [
            number for number, each in found.items() if each["seconds_plugin"] > 1.05 * each["seconds_plain"] + 0.05
        ],
        "differing": [
            number
            for number in queries
            if any(sides["plain"][number]["digest"] != sides["plugin"][number]["digest"] for sides in rounds)
        ],
        "done_by_plugin": done,
        "versions": versions,
        "queries": found,
    }


def one_round(
    pair: dict[str, Driver], tables: Path, queries: dict[int, str], number: int
) -> dict[str, dict[int, dict[str, Any]]]:
    """The answer of each side to each query."""
    for driver in pair.values():
        driver.register(tables)
    answers: dict[str, dict[int, dict[str, Any]]] = {side: {} for side in pair}
    for place, (query, text) in enumerate(queries.items()):
        for side in in_turn(list(pair), number + place):
            answers[side][query] = pair[side].ask("query", text=text)
    return answers


if __name__ == "__main__":
    benchmark_main("cold_overhead", run, default_rounds=3)
