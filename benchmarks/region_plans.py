"""The exact region planner on real and generated workflow DAGs, against Pasta's searches and the usual heuristics.

python -m benchmarks.region_plans [--data folder] [--limit 30] [--cost bytes] [--methods etd ebu] [--out folder]

Real DAGs are the `*.json` files of the data folder, or of `dags` in it, in the format of `spark-regions plan`; without
them only generated ones are measured. A search that has not ended at the limit ran out; its best plan so far counts.
Ends with 1 if a search that ended disagrees with the exact plan about the least cost.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import add_arguments, environment, percentile, timed
from examples.demo import ROOT
from spark_regions.dag.workflow import Edge, Operator, PhysicalPlan, physical_plan, read_plan
from spark_regions.regions.planning import plan

# name, method, greedy
OTHERS = (
    ("baseline", "baseline", False),
    ("tds", "tds", False),
    ("bus", "bus", False),
    ("gtd", "top-down", True),
    ("gbu", "bottom-up", True),
    ("etd", "top-down", False),
    ("ebu", "bottom-up", False),
)
SEARCHES = ("gtd", "gbu", "etd", "ebu")
SIZES = (15, 50, 100, 300, 600, math.inf)
GENERATED = ((465, 742), (1000, 1600))
SHAPES = ("near", "far")


def generated(operators: int, edges: int, shape: str, seed: int) -> PhysicalPlan:
    """A connected random DAG in which one operator in five blocks.

    `near`: edges span about ten places of a topological order, as workflows drawn by people do; `far`: any two
    operators, which leaves no part of the graph to itself.
    """
    chance = random.Random(f"{operators} {edges} {shape} {seed}")
    ends: dict[tuple[int, int], None] = {}
    for head in range(1, operators):
        ends[chance.randrange(max(0, head - 20) if shape == "near" else 0, head), head] = None
    while len(ends) < edges:
        tail = chance.randrange(operators - 1)
        step = 1 + int(chance.expovariate(0.1)) if shape == "near" else chance.randrange(1, operators)
        if tail + step < operators:
            ends[tail, tail + step] = None
    blocks = [chance.random() < 0.2 for _ in range(operators)]
    return physical_plan(
        [Operator(f"v{place}", chance.lognormvariate(1, 1.5)) for place in range(operators)],
        [
            Edge(f"e{place}", f"v{tail}", f"v{head}", int(chance.lognormvariate(12, 2)), blocks[tail])
            for place, (tail, head) in enumerate(ends)
        ],
        f"{shape}-{operators}-{edges}-{seed}",
    )


def real(folder: Path) -> list[PhysicalPlan]:
    files = sorted(folder.glob("*.json")) or sorted((folder / "dags").glob("*.json"))
    return [read_plan(file) for file in files]


def measured(physical: PhysicalPlan, cost: str, limit: float, rounds: int, methods: Collection[str]) -> dict[str, Any]:
    """One row: the exact planner's best time of the rounds, and every other method once."""
    runs = [plan(physical, cost, deadline=limit) for _ in range(rounds)]
    exact = min(runs, key=lambda run: run.seconds)
    # Blocking edges are paid by every plan (Pasta §6.4).
    fixed = sum(physical.edges[edge].bytes for edge in physical.blocking) if cost == "bytes" else 0.0
    row: dict[str, Any] = {
        "name": physical.name,
        "operators": len(physical.operators),
        "edges": len(physical.edges),
        "blocking": len(physical.blocking),
        "cost_blocking": fixed,
        "exact": {"seconds": exact.seconds, "cost": exact.cost, "bound": exact.bound, "proven": exact.proven},
    }
    for name, method, greedy in OTHERS:
        if name not in methods:
            continue
        found = plan(physical, cost, method, greedy=greedy, deadline=limit)
        ended = bool(found.notes.get("complete", True))
        row[name] = {"seconds": found.seconds, "states": found.states, "ended": ended, "proven": found.proven}
        row[name]["cost"] = found.cost if math.isfinite(found.cost) else None
    return row


def over(row: dict[str, Any], name: str) -> float:
    """Cost of a method over the exact cost, both without what every plan pays; infinite over nothing."""
    theirs, ours = row[name]["cost"], row["exact"]["cost"]
    if theirs is None:
        return math.inf
    theirs, ours = theirs - row["cost_blocking"], ours - row["cost_blocking"]
    return 1.0 if theirs <= ours * (1 + 1e-9) else theirs / ours if ours > 0 else math.inf


def differing(rows: list[dict[str, Any]]) -> list[str]:
    """Searches that ended with another least cost than the exact planner's, or methods that beat what it proved."""
    found = []
    for row in rows:
        exact = row["exact"]
        for name, method, _ in OTHERS:
            other = row.get(name)
            if other is None or other["cost"] is None or not exact["proven"]:
                continue
            tolerance = 1e-6 * max(1.0, exact["cost"])
            beaten = other["cost"] < exact["cost"] - tolerance
            if beaten or (other["proven"] and other["cost"] > exact["cost"] + tolerance):
                found.append(f"{row['name']}: {method} found {other['cost']:g}, exact {exact['cost']:g}")
    return found


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = [row["exact"]["seconds"] for row in rows]
    result: dict[str, Any] = {
        "dags": len(rows),
        "proven": sum(row["exact"]["proven"] for row in rows),
        "exact_seconds": {"p50": median(seconds), "p99": percentile(seconds, 0.99), "max": max(seconds)},
    }
    for name, *_ in OTHERS:
        if name not in rows[0]:
            continue
        ratios = [over(row, name) for row in rows]
        dearer = [ratio for ratio in ratios if ratio > 1]
        finite = [ratio for ratio in dearer if math.isfinite(ratio)]
        result[name] = {
            "dearer_than_exact": len(dearer),
            "unschedulable": sum(row[name]["cost"] is None for row in rows),
            "median_ratio_where_dearer": median(finite) if finite else None,
            "max_ratio": max(finite, default=1.0),
            "ran_out": sum(not row[name]["ended"] for row in rows),
            "seconds_p50": median(row[name]["seconds"] for row in rows),
        }
    return result


def by_size(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups = []
    for least, below in zip((0, *SIZES), SIZES, strict=False):
        some = [row for row in rows if least <= row["operators"] < below]
        if some:
            name = f"{least}-{below - 1}" if math.isfinite(below) else f"{least}+"
            groups.append({"operators": name, **summary(some)})
    return groups


def cold(folder: Path) -> float:
    """Seconds of one command from its start, for the real DAG with the most operators."""
    files = sorted(folder.glob("*.json")) or sorted((folder / "dags").glob("*.json"))
    largest = max(files, key=lambda file: file.stat().st_size)
    command = [sys.executable, "-m", "spark_regions", "plan", str(largest), "--json"]
    return timed(lambda: subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL))


def table(groups: list[dict[str, Any]], limit: float) -> Table:
    columns = ["operators", "DAGs", "proven", "exact p50", "exact max", "Baseline dearer", "median", "TDS median"]
    shown = Table(*columns, *(f"{name} > {limit:g} s" for name in SEARCHES), title="by size")
    for group in groups:
        usual = group.get("baseline")
        shown.add_row(
            group["operators"],
            str(group["dags"]),
            str(group["proven"]),
            f"{group['exact_seconds']['p50']:.3f}",
            f"{group['exact_seconds']['max']:.3f}",
            str(usual["dearer_than_exact"]) if usual else "",
            _ratio(usual),
            _ratio(group.get("tds")),
            *(str(group[name]["ran_out"]) if name in group else "" for name in SEARCHES),
        )
    return shown


def _ratio(found: dict[str, Any] | None) -> str:
    value = found and found["median_ratio_where_dearer"]
    return f"{value:.2f}" if value else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.region_plans", description=__doc__)
    add_arguments(parser)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of each search (default: 30)")
    parser.add_argument("--cost", default="bytes", help="cost model (default: bytes)")
    names = [name for name, *_ in OTHERS]
    parser.add_argument("--methods", choices=names, nargs="*", default=names, help="to compare with (default: all)")
    given = parser.parse_args()
    before, start, rounds = environment(), time.perf_counter(), given.rounds or 3
    # What is loaded once is not the planning of any DAG.
    plan(generated(60, 96, "near", 0), given.cost)
    plans = real(given.data)
    rows = [measured(physical, given.cost, given.limit, rounds, given.methods) for physical in plans]
    made = {}
    for operators, edges in GENERATED:
        for shape in SHAPES:
            some = [generated(operators, edges, shape, seed) for seed in range(rounds)]
            found = [measured(physical, given.cost, given.limit, 1, ()) for physical in some]
            made[f"{shape} {operators}/{edges}"] = summary(found) | {"rows": found}
    result = {
        "benchmark": "region_plans",
        "cost": given.cost,
        "limit_seconds": given.limit,
        "rounds": rounds,
        "seconds_taken": round(time.perf_counter() - start, 1),
        "real": summary(rows) if rows else {},
        "exact_seconds_max": summary(rows)["exact_seconds"]["max"] if rows else 0.0,
        "not_proven": [row["name"] for row in rows if not row["exact"]["proven"]],
        "command_seconds_largest": cold(given.data) if rows else None,
        "generated_seconds_max": {name: found["exact_seconds"]["max"] for name, found in made.items()},
        "generated": made,
        "by_size": by_size(rows),
        "differing": differing(rows),
        "rows": rows,
        "environment": before,
    }
    given.out.mkdir(parents=True, exist_ok=True)
    suffix = "" if given.cost == "bytes" else f"_{given.cost}"
    (given.out / f"region_plans{suffix}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key not in ("rows", "by_size")}, indent=1))
    Console(width=150).print(table(result["by_size"], given.limit))
    if result["differing"]:
        print("\n".join(result["differing"]), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
