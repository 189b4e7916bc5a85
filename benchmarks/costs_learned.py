"""What stages of the TPC-H queries took, predicted by weights learned from stages of other queries.

python -m benchmarks.costs_learned [--scale 1] [--rounds 2]

Against the fixed weights, as one factor scales them to the machine, and against the genetic search of RHEEMix (§3.2),
by differential evolution with the paper's loss. What is predicted is what the weights divide: seconds on a core that no
operator measured of its own (`costs/learned.work_of`). Nothing is stored or read, and no other engine answers.
"""

from __future__ import annotations

import getpass
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution

from benchmarks.measure import Options, benchmark_main
from benchmarks.turns import drivers
from examples import data
from spark_regions.costs.learned import (
    FOLDS,
    LEAST_OF_KIND,
    SMOOTHING_SECONDS,
    Work,
    counted,
    held_out,
    scaled,
    work_of,
)
from spark_regions.store import admin
from spark_regions.store.timed_stages import machine, timed_stages

SETTLE_SECONDS = 0.5
"""Stages are written behind."""
GENERATIONS, POPULATION = 400, 8
OFF = {
    "spark.regions.recycle.strategy": "off",
    "spark.regions.persist.enabled": "false",
    "spark.regions.sharing.enabled": "false",
    "spark.regions.platforms": "off",
}


def costs_learned(options: Options) -> dict[str, Any]:
    """Errors of stages of the queries that had no part in the weights, by kind of operator."""
    works, queries, versions = _stages(options)
    found = held_out(works, queries)
    genetic = _genetic_errors(works, queries)
    errors = {
        "learned": [each.learned for each in found],
        "fixed": [each.fixed for each in found],
        "genetic": genetic,
    }
    order = [each.work for each in found]
    kinds = {}
    for kind, count in counted(works).most_common():
        mine = [at for at, work in enumerate(order) if kind in work.amounts]
        kinds[kind] = {"stages": count} | {
            name: round(median(each[at] for at in mine), 3) for name, each in errors.items()
        }
    return {
        "stages": len(works),
        "median_error": {name: round(median(each), 3) for name, each in errors.items()},
        "mean_error": {name: round(fmean(each), 3) for name, each in errors.items()},
        "median_error_by_kind": kinds,
        "versions": versions,
    }


def _stages(options: Options) -> tuple[list[Work], list[int], dict[str, str]]:
    """Each stage of the last round with the query that it is of."""
    works: list[Work] = []
    of: list[int] = []
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder:
        store = str(Path(folder, "store"))
        with drivers(Path(folder), {"plugin": OFF | {"spark.regions.recycle.dir": store}}) as started:
            driver = started["plugin"]
            driver.register(data.tpch(options.scale, options.data))
            before = driver.ask("status")
            assert before["active"] == "true"
            with admin.opened(store, getpass.getuser(), "") as opened:

                def known() -> list[Any]:
                    return opened.catalog.read(lambda connection: timed_stages(connection, machine()))

                for number in range(options.rounds):
                    for query, text in data.tpch_queries().items():
                        earlier = known()
                        driver.ask("query", text=text)
                        time.sleep(SETTLE_SECONDS)
                        if number == options.rounds - 1:
                            fresh = [work_of(stage) for stage in known() if stage not in earlier]
                            works += fresh
                            of += [query] * len(fresh)
            versions = driver.versions
    return works, of, versions


def _genetic_errors(works: Sequence[Work], queries: Sequence[int]) -> list[float]:
    """In the order and with the folds of `held_out`."""
    folds = {query: at % FOLDS for at, query in enumerate(dict.fromkeys(queries))}
    errors = []
    for fold in range(FOLDS):
        weights = _genetic([work for work, query in zip(works, queries, strict=True) if folds[query] != fold])
        fallback = scaled(works)
        errors += [
            work.error(fallback | weights) for work, query in zip(works, queries, strict=True) if folds[query] == fold
        ]
    return errors


def _genetic(works: Sequence[Work]) -> Mapping[str, float]:
    """The weights of least loss, ((|t - t'| + s) / (t + s))² (RHEEMix §3.2), within fifty times the fixed ones."""
    start = scaled(works)
    kinds = [kind for kind, count in counted(works).items() if count >= LEAST_OF_KIND and start[kind] > 0]
    amounts = np.array([[work.amounts.get(kind, 0.0) * start[kind] for kind in kinds] for work in works])
    others = np.array([work.predicted({k: w for k, w in start.items() if k not in kinds}) for work in works])
    took = np.array([work.seconds for work in works])

    def loss(exponents: Any) -> Any:
        predicted = amounts @ np.exp(exponents) + others[:, None]
        off = np.abs(predicted - took[:, None]) + SMOOTHING_SECONDS
        return ((off / (took[:, None] + SMOOTHING_SECONDS)) ** 2).mean(axis=0)

    found = differential_evolution(
        loss, [(-np.log(50), np.log(50))] * len(kinds), maxiter=GENERATIONS, popsize=POPULATION, vectorized=True,
        updating="deferred", polish=False, seed=1,
    )  # fmt: skip
    return start | {kind: start[kind] * float(np.exp(each)) for kind, each in zip(kinds, found.x, strict=True)}


if __name__ == "__main__":
    benchmark_main("costs_learned", costs_learned, 2)
