"""`status` and `decisions` of a session, classic or Connect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_regions.errors import NotActiveError
from spark_regions.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ABSENT = "The shim's jar is not on the driver's class path."
_ABSENT_HINT = (
    "spark-submit --jars $(python -m spark_regions jar) --conf spark.regions.enabled=true, "
    "or spark_regions.configure(builder) before getOrCreate()"
)


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a session runs with the plugin, and why not.

    `rows`: name and value of every fact that the shim reports, as in `SELECT * FROM spark_regions_status()`.
    """

    active: bool
    reason: str
    hint: str = ""
    rows: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"active: {str(self.active).lower()}", f"reason: {self.reason}"]
        if self.hint:
            lines.append(f"Hint: {self.hint}")
        lines += [f"{name}: {value}" for name, value in self.rows if name not in ("active", "reason", "hint")]
        return "\n".join(lines)


def status(spark: SparkSession) -> Status:
    """Whether `spark` runs with the plugin, and why not. Never raises for a session without it."""
    if jvm.is_classic(spark):
        answer = jvm.status_json(spark)
        return _absent() if answer is None else _status(json.loads(answer))
    rows = _table(spark, "spark_regions_status")
    return _absent() if rows is None else _status({row["name"]: row["value"] for row in rows})


def decisions(spark: SparkSession) -> list[dict[str, Any]]:
    """What was stored, loaded, persisted and declined in the latest queries of the session's application, oldest first.

    Errors: `NotActiveError` where the session runs without the plugin.
    """
    rows: list[dict[str, Any]] | None
    if jvm.is_classic(spark):
        answer = jvm.decisions_json(spark)
        rows = None if answer is None else json.loads(answer)
    else:
        rows = _table(spark, "spark_regions_decisions")
    if rows is None:
        raise NotActiveError(f"{_ABSENT} Hint: {_ABSENT_HINT}")
    return rows


def _absent() -> Status:
    return Status(active=False, reason=_ABSENT, hint=_ABSENT_HINT)


def _status(facts: dict[str, Any]) -> Status:
    rows = tuple((name, _text(value)) for name, value in facts.items())
    return Status(
        active=_text(facts.get("active", False)) == "true",
        reason=_text(facts.get("reason", "")),
        hint=_text(facts.get("hint", "")),
        rows=rows,
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _table(spark: SparkSession, function: str) -> list[dict[str, Any]] | None:
    """Rows of a table function of ours; None where the server does not know it."""
    from pyspark.errors import AnalysisException

    try:
        return [row.asDict(recursive=True) for row in spark.sql(f"SELECT * FROM {function}()").collect()]
    except AnalysisException as error:
        if error.getCondition() == "UNRESOLVABLE_TABLE_VALUED_FUNCTION":
            return None
        raise
