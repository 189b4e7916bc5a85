"""The third run of a recurring job against the plain job, both by spark-submit; the store is fresh in every round."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import benchmark_main, paired_ratio
from examples import data
from examples.demo import JOB, LAPTOP, differing_reports, plugin_confs, submit


def run(scale: float, rounds: int) -> dict[str, Any]:
    tables = str(data.tpch(scale))
    jobs: dict[str, list[float]] = {"plain": [], "run 1": [], "run 2": [], "run 3": []}
    reports: dict[str, list[float]] = {name: [] for name in jobs}
    differing: set[str] = set()
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
            confs = LAPTOP | plugin_confs(Path(folder) / "recycle")
            names = list(jobs) if number % 2 == 0 else [*list(jobs)[1:], "plain"]
            for name in names:
                job = submit(JOB, [tables, f"{folder}/{name}"], LAPTOP if name == "plain" else confs)
                jobs[name].append(job.seconds)
                reports[name].append(job.seconds_reports)
            for name in names:
                differing |= set(differing_reports(Path(folder) / "plain", Path(folder) / name))
    return {
        "third_run_over_plain": paired_ratio(jobs["run 3"], jobs["plain"]),
        "first_run_over_plain": paired_ratio(jobs["run 1"], jobs["plain"]),
        "third_run_over_plain_reports_only": paired_ratio(reports["run 3"], reports["plain"]),
        "seconds": {name: median(values) for name, values in jobs.items()},
        "seconds_all": jobs,
        "seconds_reports_all": reports,
        "differing_reports": sorted(differing),
    }


if __name__ == "__main__":
    benchmark_main("recurring", run, default_rounds=2)
