"""A job that loops: plain, and two runs with the plugin, all by spark-submit; the store is fresh in every round.

Plain Spark computes all earlier rounds again in each round, and its plan doubles: after eight rounds it has some 5,000
operators, so that this is also what decisions on large plans cost.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from examples.demo import LAPTOP, ROOT, differing_reports, effects, plugin_confs, submit

JOB = ROOT / "benchmarks" / "loop_job.py"
EDGES, NODES, FILES, ROUNDS = 1_000_000, 200_000, 4, 8
RUNS = ("run 1", "run 2")


def graph(folder: Path, scale: float) -> Path:
    """Parquet files of edges between nodes whose numbers are close to each other; made anew where they are missing."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    place = folder / f"edges-{scale:g}"
    if not place.exists():
        chance = numpy.random.default_rng(5)
        making = folder / f".edges-{scale:g}"
        making.mkdir(parents=True, exist_ok=True)
        count, nodes = int(EDGES * scale), int(NODES * scale)
        a = chance.integers(0, nodes, count)
        b = numpy.clip(a + chance.integers(-40, 41, count), 0, nodes - 1)
        for number in range(FILES):
            part = pyarrow.table({"a": a[number::FILES], "b": b[number::FILES]})
            pyarrow.parquet.write_table(part, making / f"part-{number}.parquet")
        making.rename(place)
    return place


def run(options: Options) -> dict[str, Any]:
    edges = str(graph(options.data, options.scale))
    reports: dict[str, list[float]] = {name: [] for name in ("plain", *RUNS)}
    predicted: dict[str, list[float | None]] = {name: [] for name in RUNS}
    differing: set[str] = set()
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
            folder = Path(name)
            ours = LAPTOP | plugin_confs(folder / "recycle")
            for each in ("plain", *RUNS) if number % 2 == 0 else (*RUNS, "plain"):
                job = submit(JOB, [edges, str(folder / each), str(ROUNDS)], LAPTOP if each == "plain" else ours)
                reports[each].append(job.seconds_reports)
                if each != "plain":
                    predicted[each].append(effects(folder / "recycle", job.log).predicted_seconds)
            for each in RUNS:
                differing |= {f"{each}: {found}" for found in differing_reports(folder / "plain", folder / each)}
    return {
        "first_run_over_plain": paired_ratio(reports["run 1"], reports["plain"]),
        "second_run_over_plain": paired_ratio(reports["run 2"], reports["plain"]),
        "differing": sorted(differing),
        "predicted_saving_seconds": predicted,
        "seconds": {name: median(values) for name, values in reports.items()},
        "seconds_all": reports,
    }


if __name__ == "__main__":
    benchmark_main("loop", run, default_rounds=1)
