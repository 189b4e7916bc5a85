"""A report: an application's totals, closed and priced. Text, HTML and JSON show the same one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_regions.conf import PREFIX
from spark_regions.reports.candidates import Candidate, best
from spark_regions.reports.event_totals import READS, WANTED, Application, EventTotals
from spark_regions.reports.eventlog import events, open_log
from spark_regions.reports.savings import Measured, Statements, Verified

SAVING_KINDS = ("load", "recall", "share", "route", "skew")
"""Actions that save in the query at hand; a store or a persist costs now, and saves when it is read."""
GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class Prices:
    """In whatever currency they are given; None: not told, and nothing is said of money."""

    core_hour: float | None = None
    gb_month: float | None = None

    def or_of(self, confs: Mapping[str, str]) -> Prices:
        """What is not told here, as the application was given it."""

        def given(name: str) -> float | None:
            text = confs.get(f"{PREFIX}price.{name}", "")
            return float(text) if text else None

        return Prices(
            given("coreHour") if self.core_hour is None else self.core_hour,
            given("gbMonth") if self.gb_month is None else self.gb_month,
        )


@dataclass(frozen=True, slots=True)
class Money:
    """In the currency of the prices; None where a price, the cores, or a measurement is missing.

    :param computing: core-hours of the saving, measured or else estimated, less those of writing, at their price
    :param predicted: the same of the predicted saving
    :param holding_month: a month of what is held at the end, at the price of storage
    """

    computing: float | None
    predicted: float | None
    holding_month: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a report; seconds are wall seconds unless named otherwise.

    :param actions, would: how often each kind of action was taken, or would have been in observe mode
    :param rules: reads by the rule by which a stored result served
    :param predicted: seconds by kind of action, as predicted when it was decided
    :param write_task_seconds: of all results that were stored; None where not told
    :param held_bytes: of results that exist at the end, of all applications where that is known, else of this one
    :param notes: what a reader has to know about the log
    """

    application: Application
    queries: int
    outcomes: Mapping[str, int]
    query_seconds: float
    task_seconds: float
    planning_millis: float
    planning_millis_worst: float
    actions: Mapping[str, int]
    reasons: Mapping[str, int]
    rules: Mapping[str, int]
    failed: Mapping[str, int]
    would: Mapping[str, int]
    would_seconds: Mapping[str, float]
    declines: Mapping[str, int]
    refusals: Mapping[str, int]
    abandoned: Mapping[str, int]
    stored: int
    stored_bytes: int
    write_task_seconds: float | None
    held_bytes: int
    predicted: Mapping[str, float]
    measured: Measured
    verified: Verified
    statements: Statements
    query_points: tuple[tuple[float, float], ...]
    candidates: tuple[Candidate, ...]
    prices: Prices
    notes: tuple[str, ...] = field(default=())

    @property
    def predicted_seconds(self) -> float:
        return sum(self.predicted.get(kind, 0.0) for kind in SAVING_KINDS)

    @property
    def measured_seconds(self) -> float | None:
        """Less what writing took; None where nothing was measured."""
        return None if self.measured.seconds is None else self.measured.seconds - self.write_seconds

    @property
    def saved_seconds(self) -> float | None:
        """Measured where there is a plain run, else estimated; less what writing took. None where neither is known."""
        found = self.measured
        if not found.choices and not found.estimated and not self.write_task_seconds:
            return None
        return found.saved + found.estimated_seconds - self.write_seconds

    @property
    def write_seconds(self) -> float:
        return (self.write_task_seconds or 0.0) / max(self.application.cores, 1)

    @property
    def money(self) -> Money:
        gb_month = self.prices.gb_month
        return Money(
            computing=self._computing(self.saved_seconds),
            predicted=self._computing(self.predicted_seconds),
            holding_month=None if gb_month is None else self.held_bytes / GIGABYTE * gb_month,
        )

    def _computing(self, seconds: float | None) -> float | None:
        cores, price = self.application.cores, self.prices.core_hour
        return None if seconds is None or price is None or not cores else seconds * cores / 3600 * price

    def document(self) -> dict[str, Any]:
        """Everything as JSON types."""
        totals = {
            "predicted_seconds": self.predicted_seconds,
            "measured_seconds": self.measured_seconds,
            "saved_seconds": self.saved_seconds,
            "relative_error": self.measured.error,
        }
        return {**asdict(self), "saved": totals, "money": asdict(self.money)}


def read_report(path: Path, prices: Prices, moved: Callable[[int], None] = lambda _: None) -> Report:
    """The report on an event log.

    :param moved: told how many bytes of the files were read since the last time

    :raises EventLogError: there is no event log at the path, or it cannot be read
    """
    log = open_log(path)
    totals = EventTotals()
    for event in events(log, WANTED, moved):
        totals.add(event)
    notes = []
    if log.truncated:
        notes.append("The log ends within a line: its application still ran, or was killed.")
    if log.unreadable:
        notes.append(f"{log.unreadable} of {log.lines} lines could not be read and were left out.")
    return closed(totals, prices, notes)


def closed(totals: EventTotals, prices: Prices, notes: list[str] | None = None) -> Report:
    """The report on what was added up so far."""
    application, state = totals.application, totals.state
    told = list(notes or ())
    if not totals.queries and not state:
        told.append("No event of spark_regions is in the log: the application ran without it.")
    if not application.cores:
        told.append("The number of cores is not known: task-seconds count as wall seconds, and money is not told.")
    if totals.lineages.left_out:
        told.append("The application has more points than are told apart; candidates come from the first ones.")
    entries = _list(state, "entries")
    own = [stored for stored in totals.stored.values() if not stored.gone]
    held = sum(int(entry.get("bytes") or 0) for entry in entries) if entries else sum(each.bytes for each in own)
    lineages = [str(entry.get("lineage")) for entry in entries]
    planning, measured = totals.planning, totals.savings.measured
    # Also of queries that failed, or whose end is not in the log.
    reads = sum(totals.actions[kind] for kind in READS)
    return Report(
        application=application,
        queries=len(totals.queries),
        outcomes=dict(totals.outcomes),
        query_seconds=totals.query_seconds,
        task_seconds=totals.task_seconds,
        planning_millis=planning.seconds / planning.count * 1e3 if planning.count else 0.0,
        planning_millis_worst=planning.worst * 1e3,
        actions=_ranked(totals.actions),
        reasons=_ranked(totals.reasons),
        rules=_ranked(totals.rules),
        failed=_ranked(totals.failed),
        would=_ranked(totals.would),
        would_seconds=dict(totals.would_seconds),
        declines=_ranked(totals.declines),
        refusals=_ranked(totals.refusals),
        abandoned=_ranked(totals.abandoned),
        stored=len(totals.stored),
        stored_bytes=sum(each.bytes for each in totals.stored.values()),
        write_task_seconds=sum(each.seconds for each in totals.stored.values()),
        held_bytes=held,
        predicted=dict(totals.savings.predicted),
        measured=replace(measured, unknown=max(reads - measured.reads - measured.estimated, 0)),
        verified=totals.savings.verified,
        statements=totals.savings.statements,
        query_points=tuple(totals.query_points),
        candidates=tuple(best(totals.lineages, max(application.cores, 1), lineages)),
        prices=prices.or_of(application.confs),
        notes=tuple(told),
    )


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _list(holder: Any, name: str) -> list[Mapping[str, Any]]:
    return list((holder or {}).get(name) or ())
