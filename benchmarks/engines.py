"""What a user would pick instead: plain Spark, ours by default, Sail, and DuckDB by hand, over the same Parquet files.

python -m benchmarks.engines NAME [--scale 1] [--rounds 2]; without a name it lists them. Sail gets a venv below `data`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.measure import Options, benchmarks_main
from benchmarks.queries import DRIVER_MEMORY, WARM_SCALE
from benchmarks.turns import Answer, Driver, asked, drivers, in_turn, process, sides, texts
from examples import data

OTHERS = ("sail", "duckdb")
SAIL = ("pysail==0.7.2", "pyspark-client==4.2.0", "pandas<3", "pyarrow>=18")
"""With the client that it is tested with: of 4.3 it takes no session."""
OFF = {"spark.regions.platforms": "off", "spark.regions.recycle.strategy": "off"}
ON = {"spark.regions.platforms": "auto", "spark.regions.recycle.strategy": "markov"}


def _sail(folder: Path) -> str:
    """A Python with Sail, installed if it is not there."""

    def install(made: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
        subprocess.run([str(made / "bin" / "python"), "-m", "pip", "install", "-q", *SAIL], check=True)

    return str(data.finished(folder / SAIL[0].replace("==", "-"), install) / "bin" / "python")


@contextmanager
def _sides(folder: Path, sail: str) -> Iterator[dict[str, Driver]]:
    with ExitStack() as stack:
        found = dict(stack.enter_context(drivers(folder, {"plain": None, "ours": {}}, DRIVER_MEMORY)))
        for name in OTHERS:
            python = sail if name == "sail" else sys.executable
            driver = stack.enter_context(process(name, folder, "benchmarks.other_driver", python))
            driver.start({"engine": name})
            found[name] = driver
        yield found


def _passes(options: Options, queries: Mapping[int, str], made: Callable[[float, Path], Path], warm: bool) -> Answer:
    """All queries on each side in turn, as often as there are rounds; ours begins with an empty store.

    :param warm: plain Spark, and ours with nothing of ours, ran all queries on a hundredth of the data before
    """
    with (
        tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name,
        _sides(Path(name), _sail(options.data)) as found,
    ):
        if warm:
            pair = {side: found[side] for side in ("plain", "ours")}
            for driver in pair.values():
                driver.register(made(WARM_SCALE, options.data))
            found["ours"].set(OFF)
            asked(pair, queries, 1, texts("query", queries))
            found["ours"].set(ON)
        for driver in found.values():
            driver.register(made(options.scale, options.data))
        passes = []
        for number in range(options.rounds):
            passes.append(_pass(found, queries))
            print(json.dumps({"pass": number + 1} | passes[-1]["sums"]), file=sys.stderr, flush=True)
        versions: dict[str, str] = {}
        for driver in found.values():
            versions |= driver.versions
    return {
        "ours_over_plain": [each["sums"]["ours_over_plain"] for each in passes],
        "ours_over_sail": [each["sums"]["ours_over_sail"] for each in passes],
        "ours_over_duckdb": [each["sums"]["ours_over_duckdb"] for each in passes],
        "queries_beyond_1.05_plus_50_ms": [each["beyond"] for each in passes],
        "differing": sorted({item for each in passes for item in each["differing"]}),
        "versions": versions,
        "passes": passes,
    }


def _pass(found: Mapping[str, Driver], queries: Mapping[int, str]) -> Answer:
    answers = asked(
        found, queries, 1, texts("query", queries), after=lambda: {"did": found["ours"].ask("last_decision")}
    )
    seconds = {item: {side: each[side][0]["seconds"] for side in found} for item, each in answers.items()}
    digests = {item: {side: each[side][0]["digest"] for side in found} for item, each in answers.items()}
    sums: dict[str, Any] = {side: sum(each[side] or 0.0 for each in seconds.values()) for side in found}
    for other in ("plain", *OTHERS):
        # Over the queries that both have an answer to.
        both = [each for each in seconds.values() if each[other] is not None]
        sums[f"ours_over_{other}"] = round(sum(each["ours"] for each in both) / sum(each[other] for each in both), 3)
    return {
        "sums": sums,
        "beyond": [item for item, each in seconds.items() if each["ours"] > 1.05 * each["plain"] + 0.05],
        "differing": [item for item, each in digests.items() if each["ours"] != each["plain"]],
        "others_differ": {
            side: [item for item, each in digests.items() if each[side] not in (None, each["plain"])] for side in OTHERS
        },
        "errors": {
            side: {item: each[side][0]["error"] for item, each in answers.items() if "error" in each[side][0]}
            for side in OTHERS
        },
        "routed": Counter(_routed(each["ours"][0]["did"]) for each in answers.values()),
        "kept_in_spark": Counter(
            f"{decline['code']} {decline.get('detail', '')}".strip()
            for each in answers.values()
            if _routed(each["ours"][0]["did"]) != "wholly"
            for decline in each["ours"][0]["did"].get("declines", ())
        ).most_common(30),
        "fallbacks": {
            item: codes
            for item, each in answers.items()
            if (codes := [a["reason"] for a in each["ours"][0]["did"].get("actions", ()) if a["kind"] == "fallback"])
        },
        "seconds": seconds,
        "predicted": {item: _predicted(each["ours"][0]["did"]) for item, each in answers.items()},
    }


def _predicted(decision: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the choice expected of each part, in seconds."""
    return [
        {"reason": each["reason"], "spark": each["insteadSeconds"], "saving": each["savingSeconds"]}
        for each in decision.get("actions", ())
        if each["kind"] == "route"
    ]


def _routed(decision: Mapping[str, Any]) -> str:
    routes = [action for action in decision.get("actions", ()) if action["kind"] == "route"]
    return "not" if not routes else "wholly" if any(action["node"] == 0 for action in routes) else "partly"


def engines_tpcds(options: Options) -> Answer:
    """The 99 queries of TPC-DS."""
    return _passes(options, data.tpcds_queries(), data.tpcds, warm=True)


def engines_tpch(options: Options) -> Answer:
    """The 22 queries of TPC-H."""
    return _passes(options, data.tpch_queries(), data.tpch, warm=True)


def engines_tpch_cold(options: Options) -> Answer:
    """The same in processes that ran nothing before."""
    return _passes(options, data.tpch_queries(), data.tpch, warm=False)


UNROUTED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "a Python function on top": (
        "SELECT k, plus_one(n) FROM (SELECT l_suppkey AS k, count(*) AS n FROM lineitem GROUP BY 1)",
        {},
    ),
    "an expression that is not in the table": (
        "SELECT sha1(l_comment), count(*) FROM lineitem WHERE l_orderkey < 99 GROUP BY 1",
        {},
    ),
    "an operator that is not in the table": (
        "SELECT w, count(*) FROM (SELECT explode(split(n_comment, ' ')) AS w FROM nation) GROUP BY 1",
        {},
    ),
    "a join of what is not in the table": (
        "SELECT o_orderpriority, count(*) FROM orders JOIN customer ON o_custkey = c_custkey "
        "WHERE sha1(c_name) > '8' AND sha1(o_comment) > '8' GROUP BY 1",
        {},
    ),
    "files of text": ("SELECT length(value), count(*) FROM text.`{text}` GROUP BY 1", {}),
    "floating-point sums": ("SELECT l_suppkey, sum(double(l_quantity)) FROM lineitem GROUP BY 1", {}),
    "inputs that are too large": ("SELECT l_suppkey, count(*) FROM lineitem GROUP BY 1", {"maxInputBytes": "1"}),
    "a result that is too large, of six tables": (
        "SELECT n_name, year(o_orderdate), sum(l_extendedprice * (1 - l_discount)) "
        "FROM lineitem, orders, customer, supplier, nation, region "
        "WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey AND l_suppkey = s_suppkey "
        "AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' GROUP BY 1, 2 ORDER BY 1, 2",
        {"maxResultBytes": "1"},
    ),
}
"""What keeps small queries in Spark, with settings of `spark.regions.platforms`."""
MOST_MILLIS = 2.0
WARM_UPS = 10


def unrouted(options: Options) -> Answer:
    """What queries that stay in Spark pay for other engines: each in turn with and without, in one process."""
    with sides({"ours": OFF}, data.tpch(WARM_SCALE, options.data), DRIVER_MEMORY) as found:
        driver = found["ours"]
        driver.ask("python_function", name="plus_one")
        answers = {
            name: _pairs(driver, text.format(text=data.__file__), confs, options.rounds)
            for name, (text, confs) in UNROUTED.items()
        }
    beyond = {name for name, each in answers.items() if max(each["millis"], each["laps"]) > MOST_MILLIS}
    return {"beyond_2_ms": sorted(beyond), "queries": answers}


def _pairs(driver: Driver, text: str, confs: Mapping[str, str], rounds: int) -> Answer:
    """Milliseconds by the median of the differences within pairs."""
    settings = {f"spark.regions.platforms.{name}": value for name, value in confs.items()}
    seconds: dict[str, list[float]] = {"auto": [], "off": []}
    laps: dict[str, list[Mapping[str, float]]] = {"auto": [], "off": []}
    codes: Counter[str] = Counter()
    routed = 0
    for number in range(-WARM_UPS, rounds):
        for side in in_turn(("auto", "off"), number):
            answer = driver.ask("query", text=text, confs=settings | {"spark.regions.platforms": side})
            did = driver.ask("last_decision")
            if number >= 0:
                seconds[side].append(answer["seconds"])
                laps[side].append(did.get("laps", {}))
                routed += _routed(did) != "not"
                codes.update(each["code"] for each in did.get("declines", ()) if side == "auto")
    for name in settings:
        driver.ask("query", text=f"RESET {name}")

    def more(name: str) -> list[float]:
        return [a.get(name, 0.0) - b.get(name, 0.0) for a, b in zip(laps["auto"], laps["off"], strict=True)]

    both = [typed + planner for typed, planner in zip(more("typed"), more("planner"), strict=True)]
    pairs = [1e3 * (auto - off) for auto, off in zip(seconds["auto"], seconds["off"], strict=True)]
    return {
        "millis": round(median(pairs), 2),
        "quarters": [round(each, 2) for each in quantiles(pairs, n=4)],
        "laps": round(median(both), 2),
        "typed": round(median(more("typed")), 2),
        "planner": round(median(more("planner")), 2),
        "millis_off": round(1e3 * median(seconds["off"]), 1),
        "routed": routed,
        "declines": dict(codes.most_common(5)),
    }


if __name__ == "__main__":
    each = {engines_tpcds: 2, engines_tpch: 2, engines_tpch_cold: 1, unrouted: 50}
    benchmarks_main("engines", {function.__name__: (function, rounds) for function, rounds in each.items()})
