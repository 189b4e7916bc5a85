"""Skewed stages: plain Spark without and with adaptive execution, and with spark_regions, in drivers that take turns.

Every kind of operator reads a table of 1.5 million rows (at scale 1) whose keys follow a distribution, and most also a
small one. Sorts and placed rows are written to files. Measured are the tasks that read a shuffle: from the start of the
first to the end of the last, and the same again as if each had taken its CPU time alone, stage after stage, which other
load on the machine does not change.

python -m benchmarks.skew [--scale 1] [--rounds 3] [--kinds full_join window] [--keys zipf1.2 one60]
    [--warm-ups 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main
from benchmarks.turns import Driver, drivers, in_turn
from examples import data
from spark_regions.skew.packing import in_order
from tests.harness.session import BASE

ROWS, KEYS, MAPS = 1_500_000, 20_000, 8
JOINED = "SELECT sum(l.v), count(r.w), sum(length(l.text)), count(*) FROM"
QUERIES = {
    "inner_join": f"{JOINED} large l JOIN small r ON l.k = r.k",
    "full_join": f"{JOINED} large l FULL JOIN small r ON l.k = r.k",
    "right_join_left_skewed": f"{JOINED} large l RIGHT JOIN small r ON l.k = r.k",
    "left_join_hashed": f"SELECT /*+ SHUFFLE_HASH(r) */ {JOINED[7:]} large l LEFT JOIN small r ON l.k = r.k",
    "join_one_mapper": f"{JOINED} (SELECT /*+ COALESCE(1) */ * FROM large) l JOIN small r ON l.k = r.k",
    "broadcast_join": f"{JOINED.replace('SELECT', 'SELECT /*+ BROADCAST(r) */')} "
    "(SELECT /*+ REPARTITION(k) */ * FROM large) l JOIN small r ON l.k = r.k",
    "join_then_group": "SELECT sum(s), max(t), count(*) FROM (SELECT l.k, sum(l.v + r.w) AS s, max(l.text) AS t "
    "FROM large l JOIN small r ON l.k = r.k GROUP BY l.k)",
    "semi_join_right_skewed": "SELECT sum(r.w), count(*) FROM small r LEFT SEMI JOIN large l ON l.k = r.k",
    "anti_join_right_skewed": "SELECT sum(r.k), count(*) FROM small r LEFT ANTI JOIN large l ON l.k = r.k",
    "window": "SELECT sum(r), max(text) FROM "
    "(SELECT text, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM large)",
    "partition_window": "SELECT sum(s), max(text) FROM (SELECT text, sum(v) OVER (PARTITION BY k) AS s FROM large)",
    # Of short values: what a heavy key collects is one row, of which Spark holds several copies.
    "collect_list": "SELECT sum(size(c)), max(array_max(c)) FROM "
    "(SELECT k, collect_list(v) AS c FROM large GROUP BY k)",
    "group_apply": "SELECT k, v FROM large",
    "sort": "SELECT * FROM large ORDER BY k",
    "repartition_write": "SELECT /*+ REPARTITION(k) */ * FROM large",
}
ENDS = {"group_apply": "apply", "sort": "write", "repartition_write": "write"}
"""What becomes of the rows, if they are not collected: see `benchmarks.driver.tasks`."""
CONTROL = "uniform"
DISTRIBUTIONS = ("zipf0.8", "zipf1.2", "zipf2.0", "one60", "one90", CONTROL)
NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.shuffle.partitions": "32"}
# Stored results would answer the second round.
OURS = (
    NO_BROADCAST
    | {"spark.regions.recycle.strategy": "off", "spark.regions.persist.enabled": "false"}
    | {"spark.regions.skew.enabled": "true"}
)
SIDES: dict[str, dict[str, str] | None] = {"plain": None, "aqe": None, "ours": OURS}


def tables(folder: Path, scale: float, distribution: str) -> dict[str, str]:
    """Parquet files of the large and the small table; made anew where they are missing."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    def generate(making: Path) -> None:
        files = {name: making / name for name in ("large", "small")}
        chance = numpy.random.default_rng(11)
        rows = int(ROWS * scale)
        files["large"].mkdir(parents=True)
        files["small"].mkdir()
        for number in range(MAPS):
            keys = _keys(chance, distribution, rows // MAPS)
            text = chance.integers(0, 2**62, (len(keys), 4)).astype("U18")
            columns = {
                "k": keys,
                "v": chance.integers(0, 1000, len(keys)),
                "text": ["".join(each) for each in text],
            }
            pyarrow.parquet.write_table(pyarrow.table(columns), files["large"] / f"part-{number}.parquet")
        small = {"k": numpy.arange(0, KEYS, 2), "w": numpy.arange(0, KEYS, 2) % 7}
        pyarrow.parquet.write_table(pyarrow.table(small), files["small"] / "part-0.parquet")

    place = data.finished(folder / f"skew-{scale:g}-{distribution}", generate)
    return {name: str(place / name) for name in ("large", "small")}


def _keys(chance: Any, distribution: str, count: int) -> Any:
    import numpy

    if distribution.startswith("one"):
        share = int(distribution.removeprefix("one")) / 100
        return numpy.where(chance.random(count) < share, 0, chance.integers(0, KEYS, count))
    exponent = 0.0 if distribution == CONTROL else float(distribution.removeprefix("zipf"))
    weights = numpy.arange(1, KEYS + 1) ** -exponent
    return numpy.searchsorted(numpy.cumsum(weights) / weights.sum(), chance.random(count))


def measured(answers: Sequence[dict[str, Any]], cores: int) -> dict[str, float]:
    """Medians over rounds: seconds of the query and of its reduce tasks, and how evenly these were spread."""

    def of(answer: dict[str, Any]) -> dict[str, float]:
        tasks = [task for task in answer["tasks"] if task["read"]]
        ends = [task["start"] + task["seconds"] for task in tasks]
        makespan = max(ends) - min(task["start"] for task in tasks)
        stages: dict[int, list[float]] = {}
        for task in sorted(tasks, key=lambda task: float(task["start"])):
            stages.setdefault(task["stage"], []).append(task["cpu"])
        cpu = [task["cpu"] for task in tasks]
        cpu_makespan = sum(in_order(each, cores).makespan for each in stages.values())
        return {
            "seconds": answer["seconds"],
            "makespan": makespan,
            "cpu_makespan": cpu_makespan,
            "cpu_bound": sum(cpu) / cores,
            "balance": sum(cpu) / cores / cpu_makespan,
            "max_over_median": max(cpu) / median(cpu),
            "tasks": len(tasks),
        }

    found = [of(answer) for answer in answers]
    return {name: round(median(each[name] for each in found), 3) for name in found[0]}


def run(
    options: Options,
    kinds: Sequence[str] = tuple(QUERIES),
    keys: Sequence[str] = DISTRIBUTIONS,
    warm_ups: int = 1,
) -> dict[str, Any]:
    cores = int(BASE["spark.master"].removeprefix("local[").removesuffix("]"))
    found: dict[str, Any] = {}
    differing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder, drivers(Path(folder), SIDES) as three:
        for name, driver in three.items():
            driver.set(NO_BROADCAST | {"spark.sql.adaptive.enabled": str(name != "plain").lower()})
        for distribution in keys:
            files = tables(options.data, options.scale, distribution)
            for driver in three.values():
                driver.ask("register", tables=files)
            for kind in kinds:
                query = {"text": QUERIES[kind], "end": ENDS.get(kind, "collect")}
                each = one(three, query, options.rounds, warm_ups, cores)
                found[f"{kind} {distribution}"] = each
                print(kind, distribution, each, file=sys.stderr, flush=True)
                differing += [] if each.pop("identical") else [f"{kind} {distribution}"]
        versions = three["ours"].versions
    skewed = [each for name, each in found.items() if not name.endswith(CONTROL)]
    even = [each["cpu_ours_over_aqe"] for name, each in found.items() if name.endswith(CONTROL)]
    return {
        "median_ours_over_aqe": median(each["cpu_ours_over_aqe"] for each in skewed) if skewed else None,
        "largest_ours_over_aqe_unskewed": max(even, default=None),
        "differing": differing,
        "cores": cores,
        "versions": versions,
        "stages": found,
    }


def one(three: dict[str, Driver], query: dict[str, str], rounds: int, warm_ups: int, cores: int) -> dict[str, Any]:
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in three}
    for number in range(warm_ups + rounds):
        for name in in_turn(list(three), number):
            answers[name].append(three[name].ask("tasks", **query))
    sides = {name: measured(each[warm_ups:], cores) for name, each in answers.items()}

    def ratio(ours: str, side: str, theirs: str) -> float:
        return round(sides["ours"][ours] / sides[side][theirs], 3)

    decided: dict[str, Any] = next((action for action in answers["ours"][-1]["actions"] if action["node"] < 0), {})
    return {
        "identical": len({answer["digest"] for each in answers.values() for answer in each}) == 1,
        "ours_over_aqe": ratio("makespan", "aqe", "makespan"),
        "cpu_ours_over_aqe": ratio("cpu_makespan", "aqe", "cpu_makespan"),
        "cpu_ours_over_plain": ratio("cpu_makespan", "plain", "cpu_makespan"),
        "cpu_makespan_over_bound": ratio("cpu_makespan", "plain", "cpu_bound"),
        "decided": f"{decided['kind']}: {decided['detail']}" if decided else "",
        **sides,
    }


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--kinds", nargs="+", choices=sorted(QUERIES), default=list(QUERIES))
    parser.add_argument("--keys", nargs="+", choices=DISTRIBUTIONS, default=list(DISTRIBUTIONS))
    parser.add_argument("--warm-ups", type=int, default=1, help="0 where a query takes long beside a cold JVM")
    given, others = parser.parse_known_args()
    benchmark_main(
        "skew",
        lambda options: run(options, given.kinds, given.keys, given.warm_ups),
        default_rounds=3,
        arguments=others,
    )


if __name__ == "__main__":
    main()
