"""What the skew repair costs where it has nothing to repair, and that rows stay.

Three parts:
- `overhead`: the queries of TPC-H and TPC-DS in one driver, with and without the skew repair by the session's setting,
  in turn, after a run of each query that is not measured; and once more without, which tells how far equals differ. Two
  drivers would differ more than that by what their compilers made of the code first.
- `sketch`: stages that are repaired, with their heavy keys counted and not. Another constant in each query gives it
  other rows as far as anybody knows, so that they are counted each time.
- `rows`: each query once, without broadcast joins and with sixteen shuffle partitions, plain and with every stage
  arranged that can be (`spark.regions.skew.strategy=always`).

Nothing is stored or kept in any of them.

python -m benchmarks.skew_overhead [--scale 1] [--rounds 3] [--parts rows overhead sketch]

TPC-H at that scale factor, TPC-DS at a tenth of it; both at a tenth of that where only rows are compared.
The skewed tables have 1.5 million rows at scale 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import skew
from benchmarks.measure import Options, benchmark_main
from benchmarks.turns import Driver, drivers, in_turn
from examples import data

NOTHING_KEPT = {"spark.regions.recycle.strategy": "off", "spark.regions.persist.enabled": "false"}
FORCED: dict[str, dict[str, str] | None] = {
    "plain": None,
    "always": NOTHING_KEPT | {"spark.regions.skew.strategy": "always", "spark.regions.recycle.rowOrder": "any"},
}
TURNS = {"without": "false", "with": "true", "again": "false"}
REPAIRED = {side: {"spark.regions.skew.enabled": value} for side, value in TURNS.items()}
COUNTED = {side: {"spark.regions.skew.keys": value} for side, value in TURNS.items()}
SKETCHED = ("full_join", "partition_window", "broadcast_join")
SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
PARTITIONS = {"spark.sql.shuffle.partitions": "16"}
PARTS = ("rows", "overhead", "sketch")

Seconds = dict[str, dict[str, list[float]]]
"""Query: setting: of each round."""
Suites = dict[str, tuple[Path, dict[int, str]]]
"""Prefix of the queries' names: folder of the tables, texts by number."""
Answers = dict[str, dict[str, dict[str, Any]]]
"""Side: query: answer."""


def run(options: Options, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    found: dict[str, Any] = {"differing": []}
    for part in parts:
        each = {"rows": compared, "overhead": overhead, "sketch": sketch}[part](options)
        found["differing"] += each.pop("differing")
        found |= each
    return found


def compared(options: Options) -> dict[str, Any]:
    """Rows of plain Spark, and with all stages arranged that can be."""
    suites = tpc(options.scale / 10, options.data)
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder, drivers(Path(folder), FORCED) as pair:
        answers = each_once(pair, suites, SHUFFLED | PARTITIONS)
        return {
            "queries_compared": len(answers["plain"]),
            "stages_arranged": pair["always"].counter("skewRepairs"),
            "differing": [
                query for query in answers["plain"] if len({answers[side][query]["digest"] for side in pair}) > 1
            ],
        }


def overhead(options: Options) -> dict[str, Any]:
    """Seconds of all queries with the skew repair and without, in one driver."""
    suites = tpc(options.scale, options.data)
    seconds: Seconds = {}
    differing = []
    with _one_driver(PARTITIONS) as driver:
        for suite, (folder, queries) in suites.items():
            driver.register(folder)
            for place, (query, text) in enumerate(queries.items()):
                name = f"{suite}q{query}"
                seconds[name], same = _alternated(driver, REPAIRED, partial(_same, text), options.rounds, place)
                differing += [] if same else [name]
        repairs, versions = driver.counter("skewRepairs"), driver.versions
    return {
        "with_over_without": _ratio(seconds, "with"),
        "again_over_without": _ratio(seconds, "again"),
        "by_suite": {
            suite.strip(): {side: _ratio(seconds, side, suite) for side in ("with", "again")} for suite in suites
        },
        "repairs": repairs,
        "differing": differing,
        "versions": versions,
        "seconds": seconds,
    }


def sketch(options: Options) -> dict[str, Any]:
    """Seconds of queries with a repaired stage, its heavy keys counted and not, in one driver."""
    seconds: Seconds = {}
    differing = []
    with _one_driver(skew.NO_BROADCAST) as driver:
        driver.ask("register", tables=skew.tables(options.data, options.scale, "one60"))
        for place, kind in enumerate(SKETCHED):
            seconds[kind], same = _alternated(driver, COUNTED, partial(_other_rows, kind), options.rounds, place)
            differing += [] if same else [kind]
        repairs = driver.counter("skewRepairs")
    return {
        "counted_over_not": _ratio(seconds, "with"),
        "not_counted_again_over_not": _ratio(seconds, "again"),
        "repairs_sketched": repairs,
        "differing": differing,
        "seconds_sketched": seconds,
    }


def _same(text: str, turn: int) -> str:
    return text


def _other_rows(kind: str, turn: int) -> str:
    """A query of `benchmarks.skew` with another filter each turn, which keeps all rows."""
    kept = f"(SELECT * FROM large WHERE v > {-turn - 1})"
    return re.sub(r"\blarge\b", kept, skew.QUERIES[kind])


@contextmanager
def _one_driver(confs: dict[str, str]) -> Iterator[Driver]:
    with (
        tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder,
        drivers(Path(folder), {"plugin": NOTHING_KEPT}) as found,
    ):
        found["plugin"].set(confs)
        yield found["plugin"]


def _alternated(
    driver: Driver, settings: dict[str, dict[str, str]], text: Callable[[int], str], rounds: int, first: int
) -> tuple[dict[str, list[float]], bool]:
    """Seconds of one query under each setting, by rounds, and whether all answers were equal.

    :param text: of the query, by the number of the turn
    :param first: the setting of the first turn, by its number
    """
    seconds: dict[str, list[float]] = {side: [] for side in settings}
    turn = 0
    digests = {driver.ask("query", text=text(turn), confs=settings["with"])["digest"]}
    for number in range(rounds):
        for side in in_turn(list(settings), number + first):
            turn += 1
            answer = driver.ask("query", text=text(turn), confs=settings[side])
            seconds[side].append(round(answer["seconds"], 3))
            digests.add(answer["digest"])
    print(text(0)[:60].replace("\n", " "), seconds, "" if len(digests) == 1 else "DIFFERS", file=sys.stderr, flush=True)
    return seconds, len(digests) == 1


def _ratio(seconds: Seconds, side: str, prefix: str = "") -> float:
    """Of the sums of all queries' medians, over those without."""
    chosen = [each for name, each in seconds.items() if name.startswith(prefix)]
    return round(sum(median(each[side]) for each in chosen) / sum(median(each["without"]) for each in chosen), 4)


def tpc(scale: float, folder: Path) -> Suites:
    return {
        "tpch ": (data.tpch(scale, folder), data.tpch_queries()),
        "tpcds ": (data.tpcds(scale / 10, folder), data.tpcds_queries()),
    }


def each_once(sides: dict[str, Driver], suites: Suites, confs: dict[str, str]) -> Answers:
    """The answer of each side to each query."""
    for driver in sides.values():
        driver.set(confs)
    answers: Answers = {side: {} for side in sides}
    for suite, (folder, queries) in suites.items():
        for driver in sides.values():
            driver.register(folder)
        for query, text in queries.items():
            name = f"{suite}q{query}"
            for side, driver in sides.items():
                answers[side][name] = driver.ask("query", text=text)
            seconds = {side: round(each[name]["seconds"], 2) for side, each in answers.items()}
            same = len({each[name]["digest"] for each in answers.values()}) == 1
            print(name, seconds, "" if same else "DIFFERS", file=sys.stderr, flush=True)
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given, others = parser.parse_known_args()
    benchmark_main("skew_overhead", lambda options: run(options, given.parts), default_rounds=3, arguments=others)


if __name__ == "__main__":
    main()
