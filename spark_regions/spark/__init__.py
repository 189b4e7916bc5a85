"""Everything that talks to PySpark. It is imported inside functions: the planner process must not load it."""

from __future__ import annotations

from spark_regions.spark.activation import configure
from spark_regions.spark.batch import Later, later, run
from spark_regions.spark.branch_table import Branch, Branches
from spark_regions.spark.explanation import WhyNot, why_not
from spark_regions.spark.exploration import Chosen, Exploration, explore
from spark_regions.spark.jar import jar_path
from spark_regions.spark.live import SessionReport, report
from spark_regions.spark.quarantine import bad_rows
from spark_regions.spark.running_job import PausedTasks, RunningJob, RunningOperator, TaskRows, control, param
from spark_regions.spark.session import Status, decisions, status

__all__ = [
    "Branch",
    "Branches",
    "Chosen",
    "Exploration",
    "Later",
    "PausedTasks",
    "RunningJob",
    "RunningOperator",
    "SessionReport",
    "Status",
    "TaskRows",
    "WhyNot",
    "bad_rows",
    "configure",
    "control",
    "decisions",
    "explore",
    "jar_path",
    "later",
    "param",
    "report",
    "run",
    "status",
    "why_not",
]
