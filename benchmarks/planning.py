"""What the plugin adds to the planning of each TPC-DS query: a driver with the plugin against a plain one.

Two situations: nothing was ever executed, so that the planner knows of no query; and every query was executed once,
which is also when the rows of both sides are compared.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, percentile
from benchmarks.turns import Driver, drivers, in_turn
from examples import data

SCALE = 0.01  # planning does not read rows: the smallest data do
Seconds = dict[str, dict[int, list[float]]]


def run(options: Options) -> dict[str, Any]:
    queries = data.tpcds_queries()
    tables = data.tpcds(SCALE, options.data)
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        with drivers(Path(folder), {"plain": None, "plugin": {}}) as pair:
            for driver in pair.values():
                driver.register(tables)
            plan_all(pair, queries, 1)
            first = plan_all(pair, queries, options.rounds)
            differing = [number for number, text in queries.items() if differs(pair, text)]
            known = plan_all(pair, queries, 1)
            done = {name: pair["plugin"].counter(name) for name in ("commits", "loads", "fallbacks")}
            versions = pair["plugin"].versions
    return {
        "milliseconds_added": milliseconds(added(first)),
        "milliseconds_added_after_execution": milliseconds(added(known)),
        "milliseconds_plain": milliseconds([median(values) for values in first["plain"].values()]),
        "milliseconds_rule": milliseconds([median(values) for values in first["rule"].values()]),
        "milliseconds_waiting_for_planner": milliseconds([median(values) for values in first["planner"].values()]),
        "differing": differing,
        "done_by_plugin": done,
        "versions": versions,
        "queries": {
            number: {
                "seconds_plain": median(first["plain"][number]),
                "seconds_added": added(first)[place],
                "seconds_added_after_execution": added(known)[place],
                "seconds_rule": median(first["rule"][number]),
                "seconds_waiting_for_planner": median(first["planner"][number]),
            }
            for place, number in enumerate(queries)
        },
    }


def plan_all(pair: dict[str, Driver], queries: dict[int, str], rounds: int) -> Seconds:
    """Seconds of each side, and what the plugin itself says of its rule and its wait for the planner."""
    seconds: Seconds = {name: {query: [] for query in queries} for name in (*pair, "rule", "planner")}
    for number in range(rounds):
        for place, (query, text) in enumerate(queries.items()):
            schemas = set()
            for side in in_turn(list(pair), number + place):
                answer = pair[side].ask("plan", text=text)
                seconds[side][query].append(answer["seconds"])
                schemas.add(answer["schema"])
            assert len(schemas) == 1, f"query {query}: {schemas}"
            decision = pair["plugin"].ask("last_decision")
            seconds["rule"][query].append(decision["planningMillis"] / 1000)
            seconds["planner"][query].append(decision["plannerMillis"] / 1000)
    return seconds


def differs(pair: dict[str, Driver], text: str) -> bool:
    """Whether the rows differ; not where two plain runs differ as well, as with ties over a LIMIT's edge."""
    plain, plugin = (pair[side].ask("query", text=text)["digest"] for side in ("plain", "plugin"))
    return plain != plugin and all(pair["plain"].ask("query", text=text)["digest"] == plain for _ in range(3))


def added(seconds: Seconds) -> list[float]:
    """Of each query: the median over the rounds of the difference within a round."""
    pairs = zip(seconds["plugin"].values(), seconds["plain"].values(), strict=True)
    return [median(ours - theirs for ours, theirs in zip(*both, strict=True)) for both in pairs]


def milliseconds(seconds: list[float]) -> dict[str, float]:
    return {
        "p50": 1000 * percentile(seconds, 0.5),
        "p99": 1000 * percentile(seconds, 0.99),
        "max": 1000 * max(seconds),
    }


if __name__ == "__main__":
    benchmark_main("planning", run, default_rounds=3)
