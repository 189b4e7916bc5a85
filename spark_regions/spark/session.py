"""`status` and `decisions` of a session, classic or Connect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_regions.errors import NotActiveError
from spark_regions.spark import jvm
from spark_regions.spark.decided import Decisions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ABSENT = "The shim's jar is not on the driver's class path."
ABSENT_HINT = (
    "spark-submit --jars $(python -m spark_regions jar) --conf spark.regions.enabled=true, "
    "or spark_regions.configure(builder) before getOrCreate()"
)
_DOCTOR = "run `spark-regions doctor` with the Python of spark.regions.planner.python"
_HINTS = {
    "DISABLED": "set spark.regions.enabled=true when the application starts",
    "WRONG_SPARK": "install the spark-regions release for this Spark, or PySpark 4.3",
    "PLANNER_NOT_STARTABLE": _DOCTOR,
    "PLANNER_GAVE_UP": _DOCTOR,
    "PLANNER_DOWN": _DOCTOR,
    "PLANNER_VERSION_MISMATCH": "install the package and the jar of one version: `python -m spark_regions jar`",
}


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a session runs with the plugin, and why not.

    `reason` is empty where active, else a code and its argument. `rows`: every key and value that the shim reports, as
    in `SELECT * FROM spark_regions_status()`.
    """

    active: bool
    reason: str
    hint: str = ""
    rows: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"active: {str(self.active).lower()}"]
        if self.reason:
            lines.append(f"reason: {self.reason}")
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        lines += [f"{key}: {value}" for key, value in self.rows if key not in ("active", "reason")]
        return "\n".join(lines)


def status(spark: SparkSession) -> Status:
    """Whether `spark` runs with the plugin, and why not. Never raises for a session without it."""
    if jvm.is_classic(spark):
        answer = jvm.status_json(spark)
        return _absent() if answer is None else _status(json.loads(answer))
    rows = _table(spark, "spark_regions_status")
    return _absent() if rows is None else _status({row["key"]: row["value"] for row in rows})


def decisions(spark: SparkSession, limit: int = 100) -> Decisions:
    """What was stored, loaded, persisted and declined in the latest `limit` queries of the application, oldest first.

    A list of dicts, which a notebook shows as a table.

    Errors: `NotActiveError` where the session runs without the plugin.
    """
    rows: list[dict[str, Any]] | None
    if jvm.is_classic(spark):
        answer = jvm.decisions_json(spark, limit)
        rows = None if answer is None else json.loads(answer)
    else:
        rows = _table(spark, "spark_regions_decisions")
    if rows is None:
        raise NotActiveError(f"{ABSENT} Hint: {ABSENT_HINT}")
    return Decisions(rows[-limit:])


def _absent() -> Status:
    return Status(active=False, reason=ABSENT, hint=ABSENT_HINT)


def _status(facts: dict[str, str]) -> Status:
    reason = facts.get("reason", "")
    return Status(
        active=facts["active"] == "true",
        reason=reason,
        hint=_HINTS.get(reason.partition(":")[0], ""),
        rows=tuple((key, value or "") for key, value in facts.items()),
    )


def _table(spark: SparkSession, function: str) -> list[dict[str, Any]] | None:
    """Rows of a table function of ours; None where the server does not know it."""
    from pyspark.errors import AnalysisException

    try:
        return [row.asDict(recursive=True) for row in spark.sql(f"SELECT * FROM {function}()").collect()]
    except AnalysisException as error:
        if error.getCondition() == "UNRESOLVABLE_TABLE_VALUED_FUNCTION":
            return None
        raise
