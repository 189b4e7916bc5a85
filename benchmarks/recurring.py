"""The third run of a recurring job against the plain job, all by spark-submit; the store is fresh in every round."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.first_run import JOB
from benchmarks.measure import Options, benchmark_main, paired_ratio
from examples import data
from examples.demo import LAPTOP, differing_reports, effects, plugin_confs, submit

RUNS = ("run 1", "run 2", "run 3")


def run(options: Options) -> dict[str, Any]:
    tables = str(data.tpch(options.scale, options.data))
    jobs: dict[str, list[float]] = {name: [] for name in ("plain", *RUNS)}
    reports: dict[str, list[float]] = {name: [] for name in jobs}
    did: dict[str, list[str]] = {name: [] for name in RUNS}
    differing: set[str] = set()
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
            folder = Path(name)
            confs = LAPTOP | plugin_confs(folder / "recycle")
            # The plain job next to run 3 once, next to run 1 once: the machine may get slower or faster meanwhile.
            for each in ("plain", *RUNS) if number % 2 == 0 else (*RUNS, "plain"):
                job = submit(JOB, [tables, str(folder / each), "plain"], LAPTOP if each == "plain" else confs)
                jobs[each].append(job.seconds)
                reports[each].append(job.seconds_reports)
                if each != "plain":
                    effect = effects(folder / "recycle", job.log)
                    did[each].append(f"stored {effect.stored}, loaded {effect.loaded}")
            for each in RUNS:
                differing |= {f"{each}: {found}" for found in differing_reports(folder / "plain", folder / each)}
    return {
        "third_run_over_plain": paired_ratio(jobs["run 3"], jobs["plain"]),
        "first_run_over_plain": paired_ratio(jobs["run 1"], jobs["plain"]),
        "third_run_over_plain_reports_only": paired_ratio(reports["run 3"], reports["plain"]),
        "differing": sorted(differing),
        "done_by_plugin": did,
        "seconds": {name: median(values) for name, values in jobs.items()},
        "seconds_all": jobs,
        "seconds_reports_all": reports,
    }


if __name__ == "__main__":
    benchmark_main("recurring", run, default_rounds=2)
