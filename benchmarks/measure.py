"""Paired measurements: what is compared is run alternately in one sitting, and the ratio is taken within each pair."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")


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


def alternated(pair: tuple[T, T], number: int) -> tuple[T, T]:
    """The pair, turned round in every second round, so that neither side always runs first."""
    return pair if number % 2 == 0 else (pair[1], pair[0])


def benchmark_main(name: str, run: Callable[[float, int], dict[str, Any]], default_rounds: int) -> None:
    """Command line of one benchmark: run it, print and save its result."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC scale factor")
    parser.add_argument("--rounds", type=int, default=default_rounds)
    parser.add_argument("--out", type=Path, help="JSON file for the result")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    seconds = timed(lambda: found.update(run(options.scale, options.rounds)))
    head = {"benchmark": name, "scale": options.scale, "rounds": options.rounds, "seconds_taken": round(seconds, 1)}
    result = head | found
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
