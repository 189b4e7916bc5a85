"""Stores and reuses intermediate results of unchanged Spark jobs."""

from __future__ import annotations

from spark_regions._version import __version__
from spark_regions.errors import BatchError, ConfError, JarError, NotActiveError, PlannerError, RegionsError, StoreError
from spark_regions.spark import (
    Later,
    SessionReport,
    Status,
    WhyNot,
    configure,
    decisions,
    jar_path,
    later,
    report,
    run,
    status,
    why_not,
)
from spark_regions.trust import pure

__all__ = [
    "BatchError",
    "ConfError",
    "JarError",
    "Later",
    "NotActiveError",
    "PlannerError",
    "RegionsError",
    "SessionReport",
    "Status",
    "StoreError",
    "WhyNot",
    "__version__",
    "configure",
    "decisions",
    "jar_path",
    "later",
    "pure",
    "report",
    "run",
    "status",
    "why_not",
]
