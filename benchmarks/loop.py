"""A job that loops: plain, and two runs with the plugin, all by spark-submit; the store is fresh in every round.

Plain Spark computes all earlier rounds again in each round, and its plan doubles: after eight rounds it has some 5,000
operators, so that this is also what decisions on large plans cost.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.runs import recurring_runs
from examples import data
from examples.demo import ROOT

JOB = ROOT / "benchmarks" / "loop_job.py"
EDGES, NODES, FILES, ROUNDS = 1_000_000, 200_000, 4, 8
RUNS = ("run 1", "run 2")


def graph(folder: Path, scale: float) -> Path:
    """Parquet files of edges between nodes whose numbers are close to each other; made anew where they are missing."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    def generate(making: Path) -> None:
        chance = numpy.random.default_rng(5)
        count, nodes = int(EDGES * scale), int(NODES * scale)
        a = chance.integers(0, nodes, count)
        b = numpy.clip(a + chance.integers(-40, 41, count), 0, nodes - 1)
        for number in range(FILES):
            part = pyarrow.table({"a": a[number::FILES], "b": b[number::FILES]})
            pyarrow.parquet.write_table(part, making / f"part-{number}.parquet")

    return data.finished(folder / f"edges-{scale:g}", generate)


def run(options: Options) -> dict[str, Any]:
    found = recurring_runs(JOB, str(graph(options.data, options.scale)), str(ROUNDS), RUNS, options.rounds)
    reports = {name: found.seconds_reports(name) for name in found.jobs}
    return {
        "first_run_over_plain": paired_ratio(reports["run 1"], reports["plain"]),
        "second_run_over_plain": paired_ratio(reports["run 2"], reports["plain"]),
        "differing": found.differing,
        "predicted_saving_seconds": {
            name: [each.predicted_seconds for each in did] for name, did in found.effects.items()
        },
        "seconds": {name: median(values) for name, values in reports.items()},
        "seconds_all": reports,
    }


if __name__ == "__main__":
    benchmark_main("loop", run, default_rounds=1)
