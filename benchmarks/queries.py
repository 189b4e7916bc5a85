"""Queries in driver processes that take turns, one with the plugin and one or two without it.

python -m benchmarks.queries NAME [--scale 1] [--rounds 3]; without a name it lists them.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmarks_main, percentile
from benchmarks.shapes import SHAPES
from benchmarks.skew import SIDES
from benchmarks.turns import (
    Answer,
    Answers,
    Driver,
    all_seconds,
    asked,
    differing,
    drivers,
    in_turn,
    ratio,
    ratios,
    sides,
    texts,
    values,
)
from examples import data
from examples.demo import event_log_confs
from spark_regions.reports.savings import Measured
from spark_regions.reports.summary import Prices, read_report

PAIR: dict[str, dict[str, str] | None] = {"plain": None, "plugin": {}}
COUNTED = ("commits", "loads", "plansChanged", "fallbacks")
WARM_SCALE = 0.01
ON, OFF = ({"spark.regions.recycle.strategy": each} for each in ("markov", "off"))
WARM_AFTER = 15
PLANNED_SCALE = 0.01  # planning does not read rows: the smallest data do
ONLY_SHARING = {
    "spark.regions.recycle.maxBytes": "0",
    "spark.regions.persist.enabled": "false",
    "spark.regions.recycle.rowOrder": "any",
}
DRIVER_MEMORY = {"spark.driver.memory": "8g"}
"""With 2 GB plain Spark has no room for the broadcasts of TPC-DS query 10 at scale 1, with 4 GB at times."""
GROUPS, MILLIS = 200, 40
WORK = {"even": "1", "one_slow": f"IF(k = 0, {GROUPS // 3}, 1)", "zipf": f"{GROUPS} / 6 / (1 + k)"}
"""Of a group, in units of `MILLIS`, by its key."""
UNCONTROLLED = {"spark.regions.mode": "observe"}
CONTROL = {
    "off": UNCONTROLLED,
    "on": UNCONTROLLED | {"spark.regions.control.enabled": "true"},
    "again": UNCONTROLLED,
}
TRIO = {"plain": None, "tee": {"spark.regions.recycle.strategy": "always"}, "disk_only": None}


def slow(answers: Answers) -> list[Any]:
    both = {item: [median(values(answers, item, side)) for side in PAIR] for item in answers}
    return [item for item, (plain, plugin) in both.items() if plugin > 1.05 * plain + 0.05]


def actions(driver: Driver) -> list[Answer]:
    found: list[Answer] = driver.ask("last_decision").get("actions", [])
    return found


def cold_overhead(options: Options) -> Answer:
    """The 22 TPC-H queries when there is nothing to reuse.

    Between rounds the input files get a new modification time: no lineage of an earlier round is met again, while both
    JVMs stay warm. What the plugin still does inside a round, where queries have parts in common, is listed, and the
    ratio is also given without these queries.
    """
    queries = data.tpch_queries()
    counts: list[dict[str, int]] = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder, sides(PAIR) as pair:
        tables = Path(folder) / "tables"
        shutil.copytree(data.tpch(options.scale, options.data), tables)

        def renew(number: int) -> None:
            for file in tables.iterdir():
                os.utime(file)
            for driver in pair.values():
                driver.register(tables)
            if number <= 0:
                counts.append({name: pair["plugin"].counter(name) for name in COUNTED})

        answers = asked(
            pair, queries, options.rounds, texts("query", queries), 1, renew,
            lambda: {"did": [f"{action['kind']} {action['operator']}" for action in actions(pair["plugin"])]},
        )  # fmt: skip
        done = {name: pair["plugin"].counter(name) - counts[-1][name] for name in COUNTED}
        versions = pair["plugin"].versions
    did = {item: values(answers, item, "plugin", "did") for item in queries}
    return {
        "overall_ratio": ratio(answers, queries, "plugin", "plain"),
        "overall_ratio_settled": ratio(answers, queries, "plugin", "plain", "seconds_settled"),
        "overall_ratio_of_queries_left_alone": ratio(answers, (i for i in did if not any(did[i])), "plugin", "plain"),
        "queries_beyond_1.05_plus_50_ms": slow(answers),
        "ratios": ratios(answers, "plugin", "plain"),
        "differing": differing(answers),
        "done_by_plugin": done,
        "actions": did,
        "versions": versions,
        "seconds_all": all_seconds(answers),
    }


def planning(options: Options) -> Answer:
    """What the plugin adds to the planning of each TPC-DS query, before anything was ever executed and after.

    The one execution between is also when the rows of both sides are compared.
    """
    queries = data.tpcds_queries()
    with sides(PAIR, data.tpcds(PLANNED_SCALE, options.data)) as pair:

        def plans(rounds: int, warm_ups: int) -> Answers:
            decided = lambda: pair["plugin"].ask("last_decision")  # noqa: E731
            return asked(pair, queries, rounds, texts("plan", queries), warm_ups, after=decided)

        first = plans(options.rounds, 1)
        rows = asked(pair, queries, 1, texts("query", queries))
        for item in differing(rows):
            rows[item]["plain"] += [pair["plain"].ask("query", text=queries[item]) for _ in range(3)]
        known = plans(1, 0)
        done = {name: pair["plugin"].counter(name) for name in COUNTED}
        versions = pair["plugin"].versions
    for item in queries:
        schemas = {schema for side in PAIR for schema in values(first, item, side, "schema")}
        assert len(schemas) == 1, f"query {item}: {schemas}"

    def added(answers: Answers) -> list[float]:
        """Of each query: the median over the rounds of the difference within a round, in milliseconds."""
        both = (zip(values(answers, item, "plugin"), values(answers, item, "plain"), strict=True) for item in queries)
        return [1000 * median(ours - theirs for ours, theirs in pairs) for pairs in both]

    millis = {
        "added": added(first),
        "added_after_execution": added(known),
        "plain": [1000 * median(values(first, item, "plain")) for item in queries],
        "rule": [median(values(first, item, "plugin", "planningMillis")) for item in queries],
        "waiting_for_planner": [median(values(first, item, "plugin", "plannerMillis")) for item in queries],
    }
    return {
        **{
            f"milliseconds_{name}": {"p50": percentile(each, 0.5), "p99": percentile(each, 0.99), "max": max(each)}
            for name, each in millis.items()
        },
        "differing": differing(rows, ties=True),
        "done_by_plugin": done,
        "versions": versions,
        "queries": {item: {name: each[at] for name, each in millis.items()} for at, item in enumerate(queries)},
    }


def shared_subplans(options: Options) -> Answer:
    """TPC-DS queries in which a subplan stands in several places, computed once against plain Spark.

    The plugin stores nothing here. Every query runs once, so that it is known what Spark computes anew; then those in
    which the plugin shares something take turns. Its second and third run of a query share, the fourth may not, to
    compare (`optimizer/share.py`): what was learned from that shows in the rounds after those.
    """
    queries = data.tpcds_queries()
    tables = data.tpcds(options.scale, options.data)
    with sides({"plain": None, "plugin": ONLY_SHARING}, tables, DRIVER_MEMORY) as pair:
        shared = []
        for number, text in queries.items():
            pair["plugin"].ask("query", text=text)
            pair["plugin"].ask("plan", text=text)
            if any(action["kind"] == "share" for action in actions(pair["plugin"])):
                shared.append(number)
        answers = asked(pair, shared, options.rounds, texts("query", queries), warm_ups=1)
        versions = pair["plugin"].versions
    return {
        "queries_with_shared_subplans": len(shared),
        "sum_ratio": ratio(answers, shared, "plugin", "plain") if shared else None,
        "queries_beyond_1.05_plus_50_ms": slow(answers),
        "ratios": ratios(answers, "plugin", "plain"),
        "differing": differing(answers, ties=True),
        "versions": versions,
        "seconds_all": all_seconds(answers),
    }


def slow_groups(options: Options) -> Answer:
    """Python functions of groups that work long on few bytes: plain Spark, with adaptive execution, and with ours.

    Adaptive execution puts small partitions together by their bytes, so that a table of a hundred kilobytes is one
    task, however long the function takes. spark_regions knows from the second run on what each partition took.
    """
    rows = f"SELECT id % {GROUPS} AS k, id AS n FROM range({GROUPS * 50})"
    queries = {name: f"SELECT k, n, double({work}) AS work FROM ({rows})" for name, work in WORK.items()}
    with sides(SIDES) as three:
        for name, driver in three.items():
            adaptive = str(name != "plain").lower()
            driver.set({"spark.sql.adaptive.enabled": adaptive, "spark.sql.shuffle.partitions": "32"})
        request = texts("groups", queries, millis=MILLIS * options.scale)
        answers = asked(three, queries, options.rounds + 1, request)
        versions = three["ours"].versions
    # The first is a warm-up, and what the others are predicted by.
    first, later = (
        {name: {side: found[part] for side, found in each.items()} for name, each in answers.items()}
        for part in (slice(1), slice(1, None))
    )
    return {
        "first_ours_over_aqe": ratios(first, "ours", "aqe"),
        "later_ours_over_aqe": ratios(later, "ours", "aqe"),
        "later_ours_over_plain": ratios(later, "ours", "plain"),
        "differing": differing(answers),
        "versions": versions,
        "seconds_all": all_seconds(answers),
    }


def tpch_passes(options: Options) -> Answer:
    """`_passes` over the 22 queries of TPC-H."""
    return _passes(options, data.tpch_queries(), data.tpch)


def tpcds_passes(options: Options) -> Answer:
    """`_passes` over the 99 queries of TPC-DS."""
    return _passes(options, data.tpcds_queries(), data.tpcds)


def _passes(options: Options, queries: Mapping[int, str], made: Callable[[float, Path], Path]) -> Answer:
    """All queries of a suite as recurring jobs run them: passes in one application, then one in another.

    A pass is a round, the last one is another application's on the same store. Each query's turns are side by side;
    plain Spark is warm, ours has run the same queries on a hundredth of the data, with nothing stored. A query is timed
    once in a pass: how many of plain Spark's own times are as far above those of its last pass tells the noise.
    Both write event logs; the predicted and measured saving of choices is taken, as `spark-regions report` draws it.
    """
    tables, small = made(options.scale, options.data), made(WARM_SCALE, options.data)
    each: list[Answer] = []
    measured: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        folder = Path(name)
        store = {"spark.regions.recycle.dir": (folder / "store").as_uri()}
        with drivers(folder, {"plain": None}, DRIVER_MEMORY | event_log_confs(folder / "plain")) as plain:
            for application, rounds in (("one", options.rounds), ("another", 1)):
                logs = folder / application
                with drivers(folder, {application: store}, DRIVER_MEMORY | event_log_confs(logs)) as started:
                    pair = {"plain": plain["plain"], "plugin": started[application]}
                    for driver in pair.values():
                        driver.register(small)
                    pair["plugin"].set(OFF)
                    asked(pair, queries, 1, texts("query", queries))
                    for driver in pair.values():
                        driver.register(tables)
                    pair["plugin"].set(ON)
                    for _ in range(rounds):
                        each.append(_pass(pair, queries))
                        told = {name: each[-1][name] for name in ("over_plain", "plain_seconds", "beyond", "decisions")}
                        print(json.dumps({"pass": len(each)} | told), file=sys.stderr, flush=True)
                (log,) = logs.iterdir()
                measured[application] = read_report(log, Prices()).measured
        stored = sum(file.stat().st_size for file in folder.rglob("store/**/*.parquet"))
    return {
        "differing": [item for one in each for item in one.pop("differing")],
        "over_plain": [round(one["over_plain"], 3) for one in each],
        "queries_beyond_1.05_plus_50_ms": [len(one["beyond"]) for one in each],
        "plain_beyond_its_last_pass": [
            sum(now["seconds"][item]["plain"][0] > 1.05 * last["seconds"][item]["plain"][0] + 0.05 for item in queries)
            for last, now in itertools.pairwise(each)
        ],
        **predictions(measured),
        "stored_bytes": stored,
        "input_bytes": sum(file.stat().st_size for file in data.tables(tables).values()),
        "passes": each,
    }


def predictions(measured: Mapping[str, Measured]) -> Answer:
    """By application: by how much what its choices were to save was off, in the median, and how many lost time."""
    return {
        "median_relative_error": {name: each.error for name, each in measured.items()},
        "share_of_choices_lost": {name: each.lost / max(each.choices, 1) for name, each in measured.items()},
        "choices": {
            name: {"measured": each.choices, "only_estimated": each.estimated, "unknown": each.unknown}
            for name, each in measured.items()
        },
        "points_predicted_measured": {name: each.points for name, each in measured.items()},
    }


def _pass(pair: Mapping[str, Driver], queries: Mapping[int, str]) -> Answer:
    """Each query once on each side."""
    start = time.time()
    answers = asked(
        pair, queries, 1, texts("query", queries), after=lambda: {"did": pair["plugin"].ask("last_decision")}
    )
    decided = [values(answers, item, "plugin", "did")[0] for item in queries]
    millis = pair["plugin"].ask("decided", since=start)
    return {
        "over_plain": ratio(answers, queries, "plugin", "plain"),
        "plain_seconds": sum(values(answers, item, "plain")[0] for item in queries),
        "beyond": slow(answers),
        "differing": differing(answers),
        "did": Counter(action["kind"] for each in decided for action in each.get("actions", ())),
        "decisions": {
            name: {"sum": sum(each), "p50": percentile(each, 0.5), "p99": percentile(each, 0.99), "count": len(each)}
            for name, each in millis.items()
        },
        "seconds": all_seconds(answers),
    }


def costs_of_ours(options: Options) -> Answer:
    """Where our milliseconds go: a query that stores its result, one that reads it, one with nothing to do, and, in a
    JVM of its own, one that another engine answers.

    Cold is the first query of each kind in its JVMs; warm are those after fifteen of each kind. `after` is what goes on
    when the rows are there.
    """
    kinds = {
        "stores": "SELECT o_orderpriority, count(*), sum(l_quantity) "
        "FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE l_orderkey % 100 <> {} GROUP BY o_orderpriority",
        "nothing": "SELECT l_orderkey, l_quantity FROM lineitem WHERE l_orderkey = {}",
    }
    kinds["loads"] = kinds["routes"] = kinds["stores"]
    found: dict[tuple[str, str], list[Answer]] = {}
    trio = PAIR | {"plugin": {"spark.regions.platforms": "off"}, "engine": {}}
    with sides(trio, data.tpch(options.scale, options.data)) as three:
        for number in range(WARM_AFTER + options.rounds):
            for kind, text in kinds.items():
                ours = "engine" if kind == "routes" else "plugin"
                turn = in_turn(["plain", ours], number)
                given = {side: three[side].ask("query", text=text.format(number)) for side in turn}
                told = three[ours].ask("last_decision")
                state = "cold" if number == 0 else "warm" if number >= WARM_AFTER else "warming"
                did = [action["kind"] for action in told["actions"]]
                if did != {"stores": ["store"], "loads": ["load"], "routes": ["route"], "nothing": []}[kind]:
                    raise RuntimeError(f"Found {did} in a query that {kind}: {told}")
                found.setdefault((kind, state), []).append(_milliseconds(given["plain"], given[ours], told))
        versions = three["plugin"].versions
    return {
        "milliseconds": {
            f"{kind}, {state}": {name: round(median(each.get(name, 0.0) for each in all_), 1) for name in all_[0]}
            for (kind, state), all_ in found.items()
            if state != "warming"
        },
        "versions": versions,
    }


def _milliseconds(plain: Answer, ours: Answer, told: Answer) -> Answer:
    laps = dict(sorted(told["laps"].items()))
    return {
        "plain": 1000 * plain["seconds"],
        "ours": 1000 * ours["seconds"],
        "after": 1000 * (ours["seconds_settled"] - ours["seconds"]),
        "deciding": told["planningMillis"],
    } | laps


def tee(options: Options) -> Answer:
    """An action that stores in passing, against the plain one and against persist(DISK_ONLY) in the same action.

    Every round leaves out other rows, so that each store is a new one.
    """
    with sides(TRIO, data.tpch(options.scale, options.data)) as trio:
        totals: list[dict[str, Any]] = []
        answers = asked(
            trio, SHAPES, options.rounds,
            lambda shape, side, number: {
                "task": "shape", "name": shape, "remainder": 100 + number, "disk_only": side == "disk_only"
            },
            warm_ups=2,
            before=lambda number: totals.append(trio["tee"].ask("status")),
        )  # fmt: skip
        totals.append(trio["tee"].ask("status"))
        versions = trio["tee"].versions
    commits, loads, size = (
        [int(status[name]) for status in totals[2:]] for name in ("counter.commits", "counter.loads", "store.bytes")
    )
    if any(later - earlier != len(SHAPES) for earlier, later in zip(commits, commits[1:], strict=False)):
        raise RuntimeError(f"Found {commits} entries committed by the rounds, expected {len(SHAPES)} more by each.")
    return {
        "tee_over_plain": ratios(answers, "tee", "plain"),
        "tee_over_disk_only": ratios(answers, "tee", "disk_only"),
        "disk_only_over_plain": ratios(answers, "disk_only", "plain"),
        "tee_over_plain_settled": ratios(answers, "tee", "plain", "seconds_settled"),
        "differing": differing(answers),
        "loads": loads[-1] - loads[0],
        "bytes_stored": size[-1] - size[0],
        "versions": versions,
        "seconds_all": all_seconds(answers),
    }


def control_overhead(options: Options) -> Answer:
    """The 22 TPC-H queries of an application under control that nobody commands, against one that is not.

    Control holds for a whole application, so that each side is a process; one more without tells how far equals differ.
    """
    queries = data.tpch_queries()
    with sides(CONTROL, data.tpch(options.scale, options.data)) as three:
        answers = asked(three, queries, options.rounds, texts("query", queries), 1)
        versions = three["on"].versions
    each = {side: ratios(answers, side, "off") for side in ("on", "again")}
    return {
        "on_over_off": ratio(answers, queries, "on", "off"),
        "again_over_off": ratio(answers, queries, "again", "off"),
        "largest_on_over_off": max(each["on"].values()),
        "largest_again_over_off": max(each["again"].values()),
        "ratios": each,
        "differing": differing(answers),
        "versions": versions,
        "seconds_all": all_seconds(answers),
    }


ROUNDS = {
    cold_overhead: 3,
    control_overhead: 5,
    costs_of_ours: 15,
    tpch_passes: 3,
    tpcds_passes: 3,
    planning: 3,
    shared_subplans: 7,
    slow_groups: 3,
    tee: 5,
}

if __name__ == "__main__":
    benchmarks_main("queries", {function.__name__: (function, rounds) for function, rounds in ROUNDS.items()})
