"""All benchmarks, each in a process of its own, one after the other; a table and a JSON file for each.

python -m benchmarks [--only recurring tee] [--scale 1] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.demo import ROOT

BENCHMARKS = ("recurring", "first_run", "cold_overhead", "planning", "tee")

# measured value (path in the result), what it is, goal
HEADLINES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "recurring": (
        ("third_run_over_plain", "third run / plain job", "<= 0.33"),
        ("first_run_over_plain", "first run / plain job", "<= 1.10"),
    ),
    "first_run": (("first_run_over_best_hand", "first run / best by hand", "<= 1.00"),),
    "cold_overhead": (
        ("overall_ratio", "22 TPC-H queries, on / off", "<= 1.03"),
        ("queries_beyond_1.05_plus_50_ms", "queries above 1.05 x + 50 ms", "none"),
    ),
    "planning": (
        ("milliseconds_added", "milliseconds added to planning", ""),
        ("milliseconds_off", "milliseconds without", ""),
    ),
    "tee": (
        ("tee_over_plain", "storing / plain query", ""),
        ("tee_over_disk_only", "storing / persist(DISK_ONLY)", ""),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=BENCHMARKS)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, help="rounds of each benchmark (default: its own)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = Table("benchmark", "measured", "value", "goal", "seconds")
    failed = []
    for name in options.only:
        file = options.out.resolve() / f"{name}.json"
        command = [sys.executable, "-m", f"benchmarks.{name}", "--scale", f"{options.scale:g}", "--out", str(file)]
        command += ["--rounds", str(options.rounds)] if options.rounds else []
        # Python workers import a benchmark's functions by name.
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        if subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            failed.append(name)
            continue
        result = json.loads(file.read_text())
        for key, what, goal in HEADLINES[name]:
            table.add_row(name, what, _shown(result[key]), goal, f"{result['seconds_taken']:.0f}")
    Console(width=120).print(table)
    print(f"Results: {options.out}")
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
