"""Three packages that use PySpark and that nobody here wrote, each as a job that runs three times over the same data.

python -m benchmarks.applications [--scale 1] [--rounds 1]

They are in the extra `applications`. Plain Spark and the plugin take turns, a process a run; the plugin's store is
empty before the first run of a round. Both write event logs; the report of each of the plugin's runs is made of them.
"""

from __future__ import annotations

import importlib.util
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from pyarrow import parquet

from benchmarks import application_data
from benchmarks.measure import Options, benchmark_main
from benchmarks.turns import in_turn
from examples.demo import LAPTOP, ROOT, effects, event_log_confs, plugin_confs, submit
from spark_regions.reports.summary import Prices, read_report

RUNS = (1, 2, 3)
SIDES = ("plain", "plugin")
TOLERANCE = 1e-12
"""Relative, of floating-point numbers: two runs of plain Spark may add them in another order."""
PACKAGES: Mapping[str, tuple[str, Callable[[Path, float], Path]]] = {
    "splink": ("splink", application_data.people),
    "datacompy": ("datacompy", application_data.accounts),
    "analyzer": ("pyspark_analyzer", application_data.accounts),
}


class PackageMissing(RuntimeError):
    """A package that the benchmark runs is not installed."""


def applications(options: Options) -> dict[str, Any]:
    """Seconds of each run over plain Spark's, of the whole process and of the job in it, and what stood in the way."""
    missing = sorted({package for package, _ in PACKAGES.values() if importlib.util.find_spec(package) is None})
    if missing:
        raise PackageMissing(f"{', '.join(missing)}: not installed. Hint: pip install -e '.[bench,applications]'")
    found = {name: application(name, options) for name in PACKAGES}
    return {"differing": [each for one in found.values() for each in one.pop("differing")], **found}


def application(name: str, options: Options) -> dict[str, Any]:
    data = PACKAGES[name][1](options.data, options.scale)
    seconds: dict[str, list[float]] = defaultdict(list)
    ratios: dict[str, list[float]] = defaultdict(list)
    reports: dict[str, list[Any]] = defaultdict(list)
    differing: list[str] = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as folder_name:
            folder = Path(folder_name)
            for run in RUNS:
                taken = {}
                for side in in_turn(SIDES, number + run):
                    output, logs = folder / f"{side}-{run}", folder / f"logs-{side}-{run}"
                    found = submit(
                        ROOT / "benchmarks" / "application_job.py",
                        [str(data), str(output), name],
                        confs(name, folder / "recycle" if side == "plugin" else None) | event_log_confs(logs),
                    )
                    taken[side] = found
                    seconds[f"run {run} {side}"].append(round(found.seconds, 2))
                    if side == "plugin":
                        did = effects(folder / "recycle", found.log)
                        reports[f"run {run}"].append(
                            {"stored": did.stored, "loaded": did.loaded} | in_the_way(next(logs.iterdir()))
                        )
                ratios[f"run_{run}_over_plain"].append(taken["plugin"].seconds / taken["plain"].seconds)
                ratios[f"run_{run}_over_plain_job"].append(
                    taken["plugin"].seconds_reports / taken["plain"].seconds_reports
                )
                differing += [
                    f"{name} run {run}: {each}"
                    for each in differences(folder / f"plain-{run}", folder / f"plugin-{run}")
                ]
    return {
        **{what: median(each) for what, each in ratios.items()},
        "seconds": seconds,
        "reports": reports,
        "differing": sorted(set(differing)),
    }


def confs(name: str, recycle_dir: Path | None) -> dict[str, str]:
    """Of a run, with the plugin if there is a `recycle_dir`."""
    found = LAPTOP | (plugin_confs(recycle_dir) if recycle_dir else {})
    if name != "splink":
        return found
    from splink.backends.spark import similarity_jar_location

    # Its documentation asks for it: string distances as functions of the JVM.
    jars = [found["spark.jars"]] if "spark.jars" in found else []
    return found | {"spark.jars": ",".join([*jars, similarity_jar_location()])}


def in_the_way(log: Path) -> dict[str, Any]:
    """Of a report: where the time went, predicted and measured, and what stood against what would have saved most."""
    report = read_report(log, Prices()).document()
    kept = (
        "queries",
        "query_seconds",
        "task_seconds",
        "planning_millis",
        "actions",
        "declines",
        "predicted",
        "measured",
    )
    return {key: report[key] for key in kept} | {"candidates": report["candidates"][:8]}


def differences(expected: Path, found: Path) -> list[str]:
    """Names of what two runs found that is not the same: rows in any order, floating-point numbers to last digits."""
    names = {path.name for folder in (expected, found) for path in folder.iterdir()} - {"seconds.json", "checkpoints"}
    return sorted(name for name in names if not same(_content(expected / name), _content(found / name)))


def _content(path: Path) -> Any:
    if path.is_dir():
        return sorted(map(list, zip(*parquet.read_table(path).to_pydict().values(), strict=True)), key=_exact)
    return json.loads(path.read_text()) if path.exists() else None


def _exact(row: list[Any]) -> str:
    return repr([value for value in row if not isinstance(value, float)])


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and floating-point numbers in them nearly so.

    >>> same({"x": [0.1 + 0.2, "a"]}, {"x": [0.3, "a"]}), same([1], [1.1]), same(None, {})
    (True, False, False)
    """
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


if __name__ == "__main__":
    benchmark_main("applications", applications, 1)
