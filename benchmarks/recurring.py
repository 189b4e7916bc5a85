"""The third run of a recurring job against the plain job, all by spark-submit; the store is fresh in every round."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.first_run import JOB
from benchmarks.measure import Options, benchmark_main, paired_ratio
from benchmarks.runs import recurring_runs
from examples import data

RUNS = ("run 1", "run 2", "run 3")


def run(options: Options) -> dict[str, Any]:
    found = recurring_runs(JOB, str(data.tpch(options.scale, options.data)), "plain", RUNS, options.rounds)
    jobs = {name: found.seconds(name) for name in found.jobs}
    reports = {name: found.seconds_reports(name) for name in found.jobs}
    return {
        "third_run_over_plain": paired_ratio(jobs["run 3"], jobs["plain"]),
        "first_run_over_plain": paired_ratio(jobs["run 1"], jobs["plain"]),
        "third_run_over_plain_reports_only": paired_ratio(reports["run 3"], reports["plain"]),
        "differing": found.differing,
        "done_by_plugin": {
            name: [f"stored {each.stored}, loaded {each.loaded}" for each in did] for name, did in found.effects.items()
        },
        "seconds": {name: median(values) for name, values in jobs.items()},
        "seconds_all": jobs,
        "seconds_reports_all": reports,
    }


if __name__ == "__main__":
    benchmark_main("recurring", run, default_rounds=2)
