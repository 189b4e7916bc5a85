"""Stores and reuses intermediate results of unchanged Spark jobs."""

from __future__ import annotations

from spark_regions._version import __version__
from spark_regions.errors import (
    BatchError,
    ConfError,
    ControlError,
    ExploreError,
    JarError,
    NotActiveError,
    PlannerError,
    RegionsError,
    StoreError,
)
from spark_regions.exploration.bounds import bounded
from spark_regions.exploration.halving import halving
from spark_regions.exploration.select import Selection, interval, maximum, minimum, mode, threshold, top
from spark_regions.exploration.space import points
from spark_regions.spark import (
    Branch,
    Branches,
    Chosen,
    Exploration,
    Later,
    PausedTasks,
    RunningJob,
    RunningOperator,
    SessionReport,
    Status,
    TaskRows,
    WhyNot,
    bad_rows,
    configure,
    control,
    decisions,
    explore,
    jar_path,
    later,
    param,
    report,
    run,
    status,
    why_not,
)
from spark_regions.trust import pure

__all__ = [
    "BatchError",
    "Branch",
    "Branches",
    "Chosen",
    "ConfError",
    "ControlError",
    "Exploration",
    "ExploreError",
    "JarError",
    "Later",
    "NotActiveError",
    "PausedTasks",
    "PlannerError",
    "RegionsError",
    "RunningJob",
    "RunningOperator",
    "Selection",
    "SessionReport",
    "Status",
    "StoreError",
    "TaskRows",
    "WhyNot",
    "__version__",
    "bad_rows",
    "bounded",
    "configure",
    "control",
    "decisions",
    "explore",
    "halving",
    "interval",
    "jar_path",
    "later",
    "maximum",
    "minimum",
    "mode",
    "param",
    "points",
    "pure",
    "report",
    "run",
    "status",
    "threshold",
    "top",
    "why_not",
]


def __getattr__(name: str) -> object:
    # Brings pyspark.ml and numpy: only for whoever asks.
    if name == "ml":
        from importlib import import_module

        return import_module("spark_regions.ml")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
