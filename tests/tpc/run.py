"""Compare a TPC suite with the plugin off and on, and print a table.

python -m tests.tpc.run --suite tpcds --scale 0.01 --json out.json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.harness.session import spark_session
from tests.tpc import golden
from tests.tpc.suite import SUITES, Comparison, compare_suite, golden_of

SCALE = 0.01
"""Of the tests, and of the golden answers."""


def summary(comparisons: list[Comparison]) -> dict[str, object]:
    verdicts = Counter(comparison.verdict for comparison in comparisons)
    return {
        "queries": len(comparisons),
        **{verdict: verdicts[verdict] for verdict in ("identical", "vacuous", "unstable", "OUTDATED", "DIFFERS")},
        "errors": sum(comparison.error is not None for comparison in comparisons),
        "plain": sum(comparison.plain for comparison in comparisons),
        "stores": sum(comparison.cold.stores + comparison.warm.stores for comparison in comparisons),
        "loads_cold": sum(comparison.cold.loads for comparison in comparisons),
        "loads_warm": sum(comparison.warm.loads for comparison in comparisons),
        "seconds_off": round(sum(comparison.seconds_off for comparison in comparisons), 1),
        "seconds_cold": round(sum(comparison.seconds_cold for comparison in comparisons), 1),
        "seconds_warm": round(sum(comparison.seconds_warm for comparison in comparisons), 1),
    }


def print_comparisons(comparisons: list[Comparison], console: Console) -> None:
    table = Table()
    for column in ("query", "rows", "stores", "loads", "warm stores", "warm loads", "off s", "cold s", "warm s"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for comparison in comparisons:
        done = (comparison.cold.stores, comparison.cold.loads, comparison.warm.stores, comparison.warm.loads)
        seconds = (comparison.seconds_off, comparison.seconds_cold, comparison.seconds_warm)
        detail = comparison.error or comparison.difference_cold or comparison.difference_warm or ""
        table.add_row(
            str(comparison.query),
            str(comparison.rows),
            *map(str, done),
            *(f"{value:.2f}" for value in seconds),
            f"{comparison.verdict} {detail}".strip(),
        )
    console.print(table)
    console.print(summary(comparisons))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run TPC queries with spark_regions off and on, and compare.")
    parser.add_argument("--suite", choices=sorted(SUITES), required=True)
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of the queries to run")
    parser.add_argument("--plain-only", action="store_true", help="plain Spark three times (checks the comparison)")
    parser.add_argument("--write-golden", action="store_true", help="run plain Spark, and keep its answers' digests")
    parser.add_argument("--json", type=Path, help="file for the full result")
    options = parser.parse_args(arguments)
    console = Console(width=150)
    with tempfile.TemporaryDirectory(prefix="spark-regions-tpc-") as folder:
        recycle_dir = None if options.plain_only or options.write_golden else Path(folder) / "recycle"
        with spark_session(recycle_dir) as spark:
            if options.write_golden:
                golden.write(options.suite, golden_of(options.suite, SCALE, spark))
                return 0
            comparisons = compare_suite(
                options.suite,
                options.scale,
                spark,
                options.only,
                plugin=not options.plain_only,
                report=lambda line: print(line, file=sys.stderr, flush=True),
            )
    print_comparisons(comparisons, console)
    if options.json:
        result = [asdict(comparison) | {"verdict": comparison.verdict} for comparison in comparisons]
        options.json.write_text(json.dumps({"summary": summary(comparisons), "queries": result}, indent=1))
    return 1 if any(comparison.verdict == "DIFFERS" for comparison in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
