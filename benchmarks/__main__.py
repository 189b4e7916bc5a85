"""All benchmarks, each in a process of its own, one after the other; a table and a JSON file for each.

python -m benchmarks [--only recurring tee] [--scale 1] [--rounds 2] [--data data] [--out benchmarks/results]

Ends with 1 if a benchmark failed or any rows differ from plain Spark's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import add_arguments
from examples.demo import ROOT

BENCHMARKS = {
    "recurring": "jobs",
    "first_run": "jobs",
    "loop": "jobs",
    "quick": "jobs",
    "cold_overhead": "queries",
    "profiling": "",
    "piglet": "",
    "costs_of_ours": "queries",
    "tpch_passes": "queries",
    "tpcds_passes": "queries",
    "tpch_streams": "",
    "planning": "queries",
    "tee": "queries",
    "shared_subplans": "queries",
    "workflow": "jobs",
    "pipeline": "pipeline",
    "growing_pipeline": "pipeline",
    "batch": "jobs",
    "kde": "jobs",
    "nested16": "jobs",
    "nested36": "jobs",
    "nested100": "jobs",
    "series16": "jobs",
    "series64": "jobs",
    "series256": "jobs",
    "series1024": "jobs",
    "selections": "jobs",
    "weights16": "jobs",
    "weights128": "jobs",
    "folds": "jobs",
    "exploration_memory": "",
    "region_plans": "",
    "skew": "",
    "skew_overhead": "",
    "slow_groups": "queries",
    "bad_rows": "",
    "skew_simulation": "",
    "ui": "",
    "control": "",
    "control_overhead": "queries",
    "catalog": "",
    "costs_learned": "",
    "engines_tpcds": "engines",
    "engines_tpch": "engines",
    "engines_tpch_cold": "engines",
    "unrouted": "engines",
}
"""Each with the module that has it among others; empty: one of its own name."""

PASSES = (
    ("over_plain", "three passes and another application's first / plain", "1.02 0.25 0.15 0.20"),
    ("queries_beyond_1.05_plus_50_ms", "queries above 1.05 x + 50 ms, by pass", "none"),
    ("median_relative_error", "predicted saving of a choice, off by, median", ""),
    ("share_of_choices_lost", "choices that lost time", ""),
)
ENGINES = (
    ("ours_over_plain", "as it is by default, by pass / plain", "<= 0.25"),
    ("ours_over_sail", "the same / Sail", "<= 0.8"),
    ("ours_over_duckdb", "the same / DuckDB by hand", ""),
    ("queries_beyond_1.05_plus_50_ms", "queries above 1.05 x + 50 ms, by pass", "none"),
)
PIPELINE = tuple(
    (f"day_{day}_over_plain_{of}", f"three jobs that hand files on, their {of}, day {day} / plain", goal)
    for of in ("processes", "writes")
    for day, goal in ((1, "<= 1.05"), (2, "<= 0.40"), (3, "<= 0.40"))
)
# measured value (path in the result), what it is, goal
HEADLINES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "recurring": (
        ("third_run_over_plain", "third run / plain job", "<= 0.33"),
        ("first_run_over_plain", "first run / plain job", "<= 1.10"),
    ),
    "loop": (
        ("first_run_over_plain", "a job that loops, first run / plain", "<= 1.10"),
        ("second_run_over_plain", "the same, second run / plain", "<= 0.50"),
    ),
    "quick": (("ours_over_plain", "three loops of quick queries that only Spark can compute / plain", "<= 1.05"),),
    "first_run": (("first_run_over_best_hand", "first run / best by hand", "<= 1.00"),),
    "cold_overhead": (
        ("overall_ratio", "22 TPC-H queries, plugin / plain", "<= 1.03"),
        ("queries_beyond_1.05_plus_50_ms", "queries above 1.05 x + 50 ms", "none"),
    ),
    "profiling": (
        ("profile_over_plain", "9 scripts of sensors, trips and events, only profiled / plain", "<= 1.03"),
        ("default_over_plain", "the same, first run as it is by default / plain", "<= 1.05"),
        ("again_over_plain", "the same, plain / plain", ""),
    ),
    "piglet": (
        ("executions_over_plain", "9 scripts of sensors, trips and events, executions 1 to 3 / plain", "1.05 - 0.50"),
        ("steps_over_plain", "3 scripts as they grow by 11 steps, cumulative / plain", "<= 0.40"),
        ("jobs_over_plain", "132 small jobs in random order / plain", "best <= 0.50"),
        ("median_relative_error", "predicted saving of a choice, off by, median", ""),
        ("share_of_choices_lost", "choices that lost time", "<= 0.01"),
    ),
    "tpch_passes": PASSES,
    "tpcds_passes": PASSES,
    "tpch_streams": (
        ("cumulative_over_plain", "10 streams of TPC-H with drawn parameters, plugin / plain", "<= 0.60"),
        ("actions", "what was done, by reason", ""),
    ),
    "planning": (
        ("milliseconds_added", "milliseconds added to planning", ""),
        ("milliseconds_plain", "milliseconds without", ""),
    ),
    "region_plans": (
        ("exact_seconds_max", "longest exact plan of a real DAG, seconds", "<= 1"),
        ("not_proven", "real DAGs without proof", "none"),
        ("generated_seconds_max", "generated DAGs, seconds", "465/742 <= 0.5, 1000/1600 <= 3"),
    ),
    "tee": (
        ("tee_over_plain", "storing / plain query", ""),
        ("tee_over_disk_only", "storing / persist(DISK_ONLY)", ""),
    ),
    "shared_subplans": (
        ("sum_ratio", "TPC-DS queries with shared subplans, plugin / plain", "<= 0.85"),
        ("queries_beyond_1.05_plus_50_ms", "queries above 1.05 x + 50 ms", "none"),
    ),
    "workflow": (
        ("second_run_over_hand", "second run, planned as a whole / every shared node persisted by hand", "<= 0.90"),
        ("second_run_over_plain", "second run, planned as a whole / plain", "<= 0.50"),
        ("third_run_same_files_over_plain", "third run, on the same files / plain", ""),
        ("peak_storage_memory_bytes", "peak storage memory, bytes", ""),
        ("peak_storage_disk_bytes", "peak persisted bytes on disk", ""),
        ("spilled_bytes", "bytes spilled by stages", ""),
    ),
    "engines_tpcds": ENGINES,
    "engines_tpch": ENGINES,
    "engines_tpch_cold": ENGINES,
    "unrouted": (("beyond_2_ms", "queries that pay more than 2 ms for engines that cannot take them", "none"),),
    "pipeline": PIPELINE,
    "growing_pipeline": PIPELINE,
    "kde": (("ours_over_loop", "density estimates of 32 branches, explore / a loop", "<= 0.30"),),
    **{
        f"nested{count}": (
            ("ours_over_loop", f"two nested scopes of {count} branches, explore / a loop", ""),
            ("ours_over_best_hand", "the same / the best of loop, threads and caching by hand", "<= 0.40"),
        )
        for count in (16, 36, 100)
    },
    "series16": (("ours_over_loop", "time series, 16 branches, explore / a loop", ""),),
    "series64": (("ours_over_loop", "time series, 64 branches, explore / a loop", ""),),
    "series256": (("ours_over_loop", "time series, 256 branches, explore / a loop", ""),),
    "series1024": (("ours_over_loop", "time series, 1,024 branches, explore / a loop", "<= 0.10"),),
    "selections": (
        ("top_over_all", "time series, the best 4 of 16 masks / all of them", "0.61 to 0.66"),
        ("ordered_over_all", "the same, any 4 that suffice, those first that keep most", ""),
        ("random0_over_all", "the same, in a random order, of which there are twelve", ""),
    ),
    **{
        f"weights{count}": (
            ("exhaustive_over_plain", f"a network's initial weights by settings, {count}, explore / a loop", "<= 0.40"),
            ("early_over_plain", "the same, the weights chosen first / a loop", "<= 0.15"),
        )
        for count in (16, 128)
    },
    "folds": (("ours_over_plain", "CrossValidator, ours / pyspark.ml's", ""),),
    "exploration_memory": (
        ("least_seconds_of_amm", "simulated, anticipatory / least recently used, at best", ""),
        ("most_seconds_of_amm", "the same, at worst", ""),
        ("least_seconds_of_farthest", "with the whole order known, at best", ""),
    ),
    "bad_rows": (
        ("handled_over_plain", "six kinds of rows that may fail and do not, handled / plain", "<= 1.02"),
        ("quarantined", "bad rows kept, three of each kind", "18"),
    ),
    "batch": (("run_over_one_by_one", "run([8 writes]) / the same one by one", ""),),
    "control": (
        ("milliseconds", "a pause until all tasks stand, ten kinds of work, Q1 and Q13, milliseconds", "300, p99 1000"),
        ("overshoot", "beyond 100/119 of the rows of Q1's filter, and of a sum over them", "0, < 50"),
        ("losses_over_none", "two executors lost while a query stands / none lost", "<= 1.15"),
    ),
    "control_overhead": (
        ("on_over_off", "22 TPC-H queries, under control / not", "<= 1.02"),
        ("again_over_off", "the same, not / not", ""),
        ("largest_on_over_off", "the query that it costs most", "<= 1.05"),
        ("largest_again_over_off", "the same, not / not", ""),
    ),
    "skew": (
        ("median_ours_over_aqe", "skewed stages, ours / adaptive execution", "<= 0.90"),
        ("largest_ours_over_aqe_unskewed", "stages without skew, ours / adaptive execution", "<= 1.05"),
    ),
    "skew_overhead": (
        ("with_over_without", "121 TPC queries, skew repair on / off", "<= 1.02"),
        ("again_over_without", "the same, off / off", ""),
        ("counted_over_not", "skewed stages, heavy keys counted / not", "<= 1.02"),
        ("stages_arranged", "stages arranged where sizes alone decide", ""),
    ),
    "slow_groups": (
        ("later_ours_over_aqe", "slow Python functions of groups, a later run, ours / adaptive execution", ""),
        ("first_ours_over_aqe", "the same, the first run", ""),
    ),
    "costs_learned": (
        ("median_error", "held-out stages, seconds predicted by weights, relative error", ""),
        ("mean_error", "the same, mean", ""),
    ),
    "skew_simulation": (
        ("largest_ours_over_bound", "simulated makespan / bound, where rows may be spread", ""),
        ("largest_ours_over_aqe", "simulated makespan / adaptive execution's", "<= 1.05"),
    ),
    "ui": (
        ("milliseconds_slowest_page", "slowest page, 1,000 queries and 1,000 operators, ms", "<= 500"),
        ("log_growth", "event log, our events / all others", ""),
        ("heap_with_over_without", "driver's heap after 1,000 queries, with the tab / without", ""),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=BENCHMARKS)
    add_arguments(parser)
    options = parser.parse_args()
    out, tables = options.out.resolve(), options.data.resolve()
    table = Table("benchmark", "measured", "value", "goal", "seconds")
    failed = []
    for name in options.only:
        file = out / f"{name}.json"
        file.unlink(missing_ok=True)
        module = [f"benchmarks.{BENCHMARKS[name]}", name] if BENCHMARKS[name] else [f"benchmarks.{name}"]
        command = [sys.executable, "-m", *module, "--scale", f"{options.scale:g}"]
        command += ["--data", str(tables), "--out", str(out)]
        command += ["--rounds", str(options.rounds)] if options.rounds else []
        # Driver processes and Python workers import from the repository.
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        if subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            failed.append(name)
        if not file.exists():
            continue
        result = json.loads(file.read_text())
        if "differing" in result:  # a simulation has no rows
            table.add_row(
                name, "rows", _shown(result["differing"]) if result["differing"] else "identical", "identical"
            )
        for key, what, goal in HEADLINES.get(name, ()):
            table.add_row(name, what, _shown(result[key]), goal, f"{result['seconds_taken']:.0f}")
    Console(width=120).print(table)
    print(f"Results: {out}")
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
