"""TPC-H and TPC-DS with the skew repair on and off: what asking costs where little is skewed, and that rows stay.

Three drivers take turns with every query: plain Spark, the plugin without the skew repair, and with it. Nothing is
stored or kept in any of them, so that the last two differ by skew decisions alone. Two more drivers run every query
once, without broadcast joins and with sixteen shuffle partitions, plain and with every stage arranged that can be
(`spark.regions.skew.strategy=always`): their rows are compared, too.

python -m benchmarks.skew_overhead [--scale 1] [--rounds 2] [--parts rows overhead]

TPC-H at that scale factor, TPC-DS at a tenth of it; both at a tenth of that where only rows are compared.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.turns import Driver, drivers, in_turn
from examples import data

NOTHING_KEPT = {"spark.regions.recycle.strategy": "off", "spark.regions.persist.enabled": "false"}
WITHOUT = NOTHING_KEPT | {"spark.regions.skew.enabled": "false"}
WITH = NOTHING_KEPT | {"spark.regions.skew.enabled": "true"}
SIDES: dict[str, dict[str, str] | None] = {"plain": None, "without": WITHOUT, "with": WITH}
FORCED: dict[str, dict[str, str] | None] = {"plain": None, "always": WITH | {"spark.regions.skew.strategy": "always"}}
SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
PARTITIONS = {"spark.sql.shuffle.partitions": "16"}
PARTS = ("rows", "overhead")

Suites = dict[str, tuple[Path, dict[int, str]]]
"""Prefix of the queries' names: folder of the tables, texts by number."""
Answers = dict[str, dict[str, dict[str, Any]]]
"""Side: query: answer."""


def run(options: Options, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    found: dict[str, Any] = {"differing": []}
    for part in parts:
        each = {"rows": compared, "overhead": overhead}[part](options)
        found["differing"] += each.pop("differing")
        found |= each
    return found


def compared(options: Options) -> dict[str, Any]:
    """Rows of plain Spark, and with all stages arranged that can be."""
    suites = tpc(options.scale / 10, options.data)
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder, drivers(Path(folder), FORCED) as pair:
        answers = turns(pair, suites, SHUFFLED | PARTITIONS, 1)[0]
        return {
            "queries_compared": len(answers["plain"]),
            "stages_arranged": pair["always"].counter("skewRepairs"),
            "differing": [
                query for query in answers["plain"] if len({answers[side][query]["digest"] for side in pair}) > 1
            ],
        }


def overhead(options: Options) -> dict[str, Any]:
    """Seconds of plain Spark, and with the plugin without and with the skew repair."""
    suites = tpc(options.scale, options.data)
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder, drivers(Path(folder), SIDES) as three:
        answers = turns(three, suites, PARTITIONS, 1 + options.rounds)[1:]
        repairs, versions = three["with"].counter("skewRepairs"), three["with"].versions

    def ratio(side: str, other: str, suite: str = "") -> float:
        """Of the sums over all queries, paired by rounds."""
        both = [
            [sum(each["seconds"] for query, each in one[name].items() if query.startswith(suite)) for one in answers]
            for name in (side, other)
        ]
        return round(paired_ratio(*both), 4)

    return {
        "with_over_without": ratio("with", "without"),
        "with_over_plain": ratio("with", "plain"),
        "by_suite": {suite: {other: ratio("with", other, suite) for other in ("without", "plain")} for suite in suites},
        "repairs": repairs,
        "differing": [
            query
            for query in answers[0]["plain"]
            if len({one[side][query]["digest"] for one in answers for side in one}) > 1
        ],
        "versions": versions,
        "seconds": {
            query: {side: [round(one[side][query]["seconds"], 3) for one in answers] for side in answers[0]}
            for query in answers[0]["plain"]
        },
    }


def tpc(scale: float, folder: Path) -> Suites:
    return {
        "tpch ": (data.tpch(scale, folder), data.tpch_queries()),
        "tpcds ": (data.tpcds(scale / 10, folder), data.tpcds_queries()),
    }


def turns(sides: dict[str, Driver], suites: Suites, confs: dict[str, str], rounds: int) -> list[Answers]:
    """Per round, the answer of each side to each query."""
    for driver in sides.values():
        driver.set(confs)
    answers: list[Answers] = []
    for number in range(rounds):
        answers.append({side: {} for side in sides})
        for suite, (folder, queries) in suites.items():
            for driver in sides.values():
                driver.register(folder)
            for place, (query, text) in enumerate(queries.items()):
                name = f"{suite}q{query}"
                for side in in_turn(list(sides), number + place):
                    answers[-1][side][name] = sides[side].ask("query", text=text)
                seconds = {side: round(each[name]["seconds"], 2) for side, each in answers[-1].items()}
                same = len({each[name]["digest"] for each in answers[-1].values()}) == 1
                print(name, seconds, "" if same else "DIFFERS", file=sys.stderr, flush=True)
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given, others = parser.parse_known_args()
    benchmark_main("skew_overhead", lambda options: run(options, given.parts), default_rounds=2, arguments=others)


if __name__ == "__main__":
    main()
