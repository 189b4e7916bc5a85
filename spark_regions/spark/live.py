"""`report`: what spark_regions has done for the running application, for notebooks and terminals."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spark_regions.reports.event_totals import DECIDED, READS, Application, EventTotals
from spark_regions.reports.savings import Measured
from spark_regions.reports.summary import Prices, Report, closed
from spark_regions.spark import jvm
from spark_regions.spark.decided import as_decisions
from spark_regions.spark.session import decisions, status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECISIONS_KEPT = 1000
_NOTE = (
    "The application still runs: candidates, plots and the cost of writing are in the report on its event log, "
    "`spark-regions report`."
)
_CONNECT = "Of a Spark Connect session only the decisions are told: nothing measured, and no cores."


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A report on a running application; a notebook shows it as HTML, `print` as text.

    `document()` has all figures as JSON types.
    """

    _report: Report

    def document(self) -> dict[str, Any]:
        return self._report.document()

    def __str__(self) -> str:
        from spark_regions.reports.text import text

        return text(self._report)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from spark_regions.reports.page import fragment

        return fragment(self._report)


def report(
    spark: SparkSession, *, core_hour_price: float | None = None, gb_month_price: float | None = None
) -> SessionReport:
    """What was decided in the application so far, and what that saved: predicted, and measured where it was.

    :param core_hour_price: of an hour of one core, in any currency
    :param gb_month_price: of 10^9 bytes held for a month

    Errors: `NotActiveError` where the session runs without the plugin.
    """
    totals = EventTotals()
    for decision in as_decisions(decisions(spark, DECISIONS_KEPT)):
        totals.add({"Event": DECIDED, "query": decision["query"], "decision": decision})
        # A stage's decision is told when the stage runs; what became of an entry counts by itself.
        if decision.get("execution") is not None and not decision.get("topic") and decision.get("session") != "":
            totals.count(decision, [int(action.get("node") or 0) for action in decision["actions"] if action["ran"]])
        for action in decision["actions"]:
            if (run := action.get("engine")) and run.get("measuredSeconds") is not None:
                totals.savings.statements.add(run)
        given_up = [action for action in decision["actions"] if action["kind"] == "abandoned"]
        totals.abandoned.update(str(action["reason"]) for action in given_up)
    classic = jvm.is_classic(spark)
    if classic:
        totals.application = _application(spark)
    found = closed(totals, Prices(core_hour_price, gb_month_price))
    notes = (*found.notes, _NOTE) if classic else (_CONNECT, _NOTE)
    held = int(dict(status(spark).rows).get("store.bytes") or 0)
    measured = _measured(spark, found) if classic else found.measured
    return SessionReport(replace(found, measured=measured, held_bytes=held, write_task_seconds=None, notes=notes))


def _application(spark: SparkSession) -> Application:
    context = spark.sparkContext
    return Application(
        name=context.appName or "",
        id=context.applicationId,
        user=context.sparkUser(),
        spark=context.version,
        started=int(context.startTime),
        ended=int(time.time() * 1e3),
        cores=context.defaultParallelism,
        confs={key: value for key, value in context.getConf().getAll() if key.startswith("spark.regions.price.")},
    )


def _measured(spark: SparkSession, found: Report) -> Measured:
    told = json.loads(jvm.savings_json(spark) or "{}")
    actions = [action for decision in decisions(spark, DECISIONS_KEPT) for action in decision["actions"]]
    points = [
        (max(float(each["savingSeconds"]), 0.0), float(each["measuredSeconds"]))
        for each in actions
        if each.get("measuredSeconds") is not None
    ]
    reads = sum(each["kind"] in READS and each.get("measuredSeconds") is not None for each in actions)
    return Measured(
        choices=int(told.get("choices", 0)),
        reads=reads,
        predicted=None,
        saved=float(told.get("measured", 0.0)),
        lost=sum(saved < 0 for _, saved in points),
        points=points,
        estimated=int(told.get("reads", 0)),
        estimated_seconds=float(told.get("estimated", 0.0)),
        unknown=max(sum(found.actions.get(kind, 0) for kind in READS) - reads - int(told.get("reads", 0)), 0),
    )
