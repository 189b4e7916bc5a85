"""TPC-DS queries in which a subplan stands in several places: a driver that computes it once against a plain one.

The plugin stores nothing here. Every query runs once, so that it is known what Spark computes anew; then those in which
the plugin shares something take turns. Its second and third run of a query share, the fourth may not, to compare
(`recycle/repeats.py`): what was learned from that shows in the rounds after those.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.turns import drivers, in_turn
from examples import data

CONFS = {"spark.regions.recycle.maxBytes": "0", "spark.regions.persist.enabled": "false"}
CONFS |= {"spark.regions.recycle.rowOrder": "any"}
MEMORY = {"spark.driver.memory": "4g"}
"""With 2 GB, plain Spark has no room for the broadcasts of query 10 at scale 1."""


def run(options: Options) -> dict[str, Any]:
    queries = data.tpcds_queries()
    tables = data.tpcds(options.scale, options.data)
    answers: dict[int, dict[str, list[dict[str, Any]]]] = {}
    differing = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        with drivers(Path(folder), {"plain": None, "plugin": CONFS}, MEMORY) as pair:
            for driver in pair.values():
                driver.register(tables)
            for number, text in queries.items():
                pair["plugin"].ask("query", text=text)
                pair["plugin"].ask("plan", text=text)
                actions = pair["plugin"].ask("last_decision").get("actions", [])
                if any(action["kind"] == "share" for action in actions):
                    answers[number] = {side: [pair[side].ask("query", text=text)] for side in pair}
            for each in range(options.rounds):
                for place, (number, sides) in enumerate(answers.items()):
                    for side in in_turn(list(pair), each + place):
                        sides[side].append(pair[side].ask("query", text=queries[number]))
            for number, sides in answers.items():
                digests = [{answer["digest"] for answer in sides[side]} for side in ("plain", "plugin")]
                # Not where two plain runs differ as well, as with ties over a LIMIT's edge.
                if len(digests[0]) == 1 and digests[1] != digests[0]:
                    differing.append(number)
            versions = pair["plugin"].versions

    def seconds(number: int, side: str) -> list[float]:
        return [answer["seconds"] for answer in answers[number][side][1:]]  # the first is a warm-up

    def sums(side: str) -> list[float]:
        return [sum(each) for each in zip(*(seconds(number, side) for number in answers), strict=True)]

    found = {
        number: {
            "seconds_plain": median(seconds(number, "plain")),
            "seconds_plugin": median(seconds(number, "plugin")),
            "ratio": paired_ratio(seconds(number, "plugin"), seconds(number, "plain")),
        }
        for number in answers
    }
    return {
        "queries_with_shared_subplans": len(answers),
        "sum_ratio": paired_ratio(sums("plugin"), sums("plain")) if answers else None,
        "queries_beyond_1.05_plus_50_ms": [
            number for number, each in found.items() if each["seconds_plugin"] > 1.05 * each["seconds_plain"] + 0.05
        ],
        "differing": differing,
        "versions": versions,
        "queries": found,
    }


if __name__ == "__main__":
    benchmark_main("shared_subplans", run, default_rounds=7)
