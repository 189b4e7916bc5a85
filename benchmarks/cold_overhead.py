"""The 22 TPC-H queries when there is nothing to reuse: a driver with the plugin against a plain one, query by query.

Between rounds the input files get a new modification time: no lineage of an earlier round is met again, while both
JVMs stay warm. What the plugin still does inside a round, where queries have parts in common, is listed, and the ratio
is also given without these queries.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
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

    def overall(numbers: Iterable[int], key: str) -> float:
        return paired_ratio(
            *([sum(sides[side][number][key] for number in numbers) for sides in rounds] for side in ("plugin", "plain"))
        )

    untouched = [number for number in queries if not any(sides["plugin"][number]["actions"] for sides in rounds)]

    found: dict[int, dict[str, Any]] = {
        number: {
            "seconds_plain": median(seconds("plain", number, "seconds")),
            "seconds_plugin": median(seconds("plugin", number, "seconds")),
            "ratio": paired_ratio(seconds("plugin", number, "seconds"), seconds("plain", number, "seconds")),
            "actions": [sides["plugin"][number]["actions"] for sides in rounds],
            "seconds_plain_all": seconds("plain", number, "seconds"),
            "seconds_plugin_all": seconds("plugin", number, "seconds"),
        }
        for number in queries
    }
    return {
        "overall_ratio": overall(queries, "seconds"),
        "overall_ratio_settled": overall(queries, "seconds_settled"),
        "overall_ratio_of_queries_left_alone": overall(untouched, "seconds"),
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
        actions = pair["plugin"].ask("last_decision").get("actions", [])
        answers["plugin"][query]["actions"] = [f"{action['kind']} {action['operator']}" for action in actions]
    return answers


if __name__ == "__main__":
    benchmark_main("cold_overhead", run, default_rounds=3)
