"""Stores and reuses intermediate results of unchanged Spark jobs."""

from __future__ import annotations

from spark_regions._version import __version__
from spark_regions.errors import ConfError, JarError, NotActiveError, PlannerError, RegionsError, StoreError
from spark_regions.spark import Status, WhyNot, configure, decisions, jar_path, status, why_not

__all__ = [
    "ConfError",
    "JarError",
    "NotActiveError",
    "PlannerError",
    "RegionsError",
    "Status",
    "StoreError",
    "WhyNot",
    "__version__",
    "configure",
    "decisions",
    "jar_path",
    "status",
    "why_not",
]
