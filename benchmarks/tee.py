"""An action that stores in passing, against the plain action and against persist(DISK_ONLY) in the same action.

A driver process for each. Every round leaves out other rows, so that each store is a new one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.shapes import SHAPES
from benchmarks.turns import Driver, drivers, in_turn
from examples import data

CONFS = {"plain": None, "tee": {"spark.regions.recycle.strategy": "always"}, "disk_only": None}
WARM_UP_ROUNDS = 2


def run(options: Options) -> dict[str, Any]:
    tables = data.tpch(options.scale, options.data)
    answers: dict[str, dict[str, list[dict[str, Any]]]] = {shape: {side: [] for side in CONFS} for shape in SHAPES}
    commits = dict.fromkeys(SHAPES, 0)
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        with drivers(Path(folder), CONFS) as trio:
            for driver in trio.values():
                driver.register(tables)
            for number in range(WARM_UP_ROUNDS):
                for shape in SHAPES:
                    one_round(trio, shape, 900 + number, number)
            before = trio["tee"].ask("status")
            for number in range(options.rounds):
                for shape in SHAPES:
                    found, committed = one_round(trio, shape, 100 + number, number)
                    commits[shape] += committed
                    for side, answer in found.items():
                        answers[shape][side].append(answer)
            after = trio["tee"].ask("status")
            versions = trio["tee"].versions
    missing = [shape for shape, count in commits.items() if count != options.rounds]
    if missing:
        raise RuntimeError(f"{', '.join(missing)}: {commits} entries committed, expected {options.rounds} of each")

    def seconds(shape: str, side: str, key: str = "seconds") -> list[float]:
        return [answer[key] for answer in answers[shape][side]]

    def ratios(above: str, below: str, key: str = "seconds") -> dict[str, float]:
        return {shape: paired_ratio(seconds(shape, above, key), seconds(shape, below, key)) for shape in SHAPES}

    return {
        "tee_over_plain": ratios("tee", "plain"),
        "tee_over_disk_only": ratios("tee", "disk_only"),
        "disk_only_over_plain": ratios("disk_only", "plain"),
        "tee_over_plain_settled": ratios("tee", "plain", "seconds_settled"),
        "differing": [
            shape
            for shape in SHAPES
            if any(len({answer["digest"] for answer in row}) > 1 for row in zip(*answers[shape].values(), strict=True))
        ],
        "stores": commits,
        "loads": int(after["counter.loads"]) - int(before["counter.loads"]),
        "bytes_stored": int(after["store.bytes"]) - int(before["store.bytes"]),
        "versions": versions,
        "seconds": {shape: {side: median(seconds(shape, side)) for side in CONFS} for shape in SHAPES},
        "seconds_all": {shape: {side: seconds(shape, side) for side in CONFS} for shape in SHAPES},
    }


def one_round(
    trio: dict[str, Driver], shape: str, remainder: int, number: int
) -> tuple[dict[str, dict[str, Any]], int]:
    """The answer of each side, and the number of entries that were committed."""
    before = trio["tee"].counter("commits")
    found = {}
    for side in in_turn(list(trio), number):
        found[side] = trio[side].ask("shape", name=shape, remainder=remainder, disk_only=side == "disk_only")
    return found, trio["tee"].counter("commits") - before


if __name__ == "__main__":
    benchmark_main("tee", run, default_rounds=5)
