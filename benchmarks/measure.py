"""Paired measurements: what is compared is run alternately in one sitting, and the ratio is taken within each pair."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from examples.data import DATA
from examples.demo import LAPTOP, ROOT
from spark_regions import __version__
from tests.harness.session import BASE

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Options:
    """What to measure: TPC scale factor, number of measured rounds, folder that keeps generated data."""

    scale: float
    rounds: int
    data: Path


def timed(action: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Median of the ratios within pairs.

    >>> paired_ratio([2.0, 3.0, 8.0], [1.0, 2.0, 2.0])
    2.0
    """
    return median(above / below for above, below in zip(numerators, denominators, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5), percentile([1.0, 2.0, 3.0, 4.0], 0.99)
    (2.0, 4.0)
    """
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def environment() -> dict[str, Any]:
    """What a reader has to know to judge the numbers, taken before anything runs."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else Path("java")
    said = subprocess.run([str(java), "-version"], capture_output=True, text=True).stderr
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average": os.getloadavg(),
        "cores": os.cpu_count(),
        "machine": platform.platform(),
        "java": said.partition("\n")[0],
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "spark_regions": __version__,
        "confs_of_drivers": BASE,
        "confs_of_submitted_jobs": LAPTOP,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H scale factor (default: 1)")
    parser.add_argument("--rounds", type=int, help="measured rounds (default: the benchmark's own)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of generated tables (default: data/)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for <benchmark>.json")


def benchmark_main(
    name: str, run: Callable[[Options], dict[str, Any]], default_rounds: int, arguments: Sequence[str] | None = None
) -> None:
    """Command line of one benchmark: run it, print and save its result; ends with 1 if any rows differ.

    :param arguments: those of all benchmarks, where this one has more; None: the command line's
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    add_arguments(parser)
    given = parser.parse_args(arguments)
    options = Options(given.scale, given.rounds or default_rounds, given.data.resolve())
    before = environment()
    found: dict[str, Any] = {}
    seconds = timed(lambda: found.update(run(options)))
    head = {"benchmark": name, "scale": options.scale, "rounds": options.rounds, "seconds_taken": round(seconds, 1)}
    text = json.dumps(head | found | {"environment": before}, indent=1)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / f"{name}.json").write_text(text + "\n")
    if found.get("differing"):  # a simulation has no rows
        parser.exit(1, f"{name}: rows differ from plain Spark's: {found['differing']}\n")


def benchmarks_main(module: str, table: Mapping[str, tuple[Callable[[Options], dict[str, Any]], int]]) -> None:
    """Command line of a module of several benchmarks: the name of one, then as `benchmark_main`.

    :param table: by name, the benchmark and its rounds
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", add_help=False)
    parser.add_argument("name", choices=table)
    given, rest = parser.parse_known_args()
    benchmark_main(given.name, *table[given.name], rest)
