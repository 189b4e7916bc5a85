"""A report's figures in words, the same in text and in HTML: sections of rows, each a name and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from spark_regions.reasons import REASONS
from spark_regions.reports.summary import SAVING_KINDS, Report

KINDS = {
    "load": "stored results read",
    "recall": "results read from memory",
    "share": "places that shared a subplan",
    "route": "parts that another engine computed",
    "store": "stores begun",
    "persist": "results kept in memory",
    "unpersist": "results released from memory",
    "skew": "skewed stages rearranged",
}
DECLINED = "Left alone, and why"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class Section(NamedTuple):
    """:param hint: how its figures came about, or empty"""

    title: str
    rows: list[tuple[str, str]]
    hint: str = ""


def sections(report: Report) -> list[Section]:
    """All sections that have something to tell, in reading order."""
    found = [_application(report), _saved(report), _did(report), _would(report)]
    found += [_codes(DECLINED, report.declines), _codes("Queries left alone as a whole", report.refusals)]
    found.append(_codes("Not applied or given up", _sum(report.failed, report.abandoned)))
    return [section for section in found if section.rows]


def headline(report: Report) -> str:
    """The one sentence that everybody reads; where rows were not plain Spark's, that comes first."""
    wrong = report.verified.different
    told = f"{wrong:,} queries had OTHER ROWS than plain Spark when they ran both ways. " if wrong else ""
    return told + _headline(report)


def _headline(report: Report) -> str:
    would = sum(report.would_seconds.values())
    observed = f"{would:.1f} s would have been saved in mode observe, as predicted."
    if not report.actions:
        return f"Observed only: {observed}" if report.would else "Nothing was stored, read or shared."
    return f"{_saving(report)} Beside that, {observed}" if report.would else _saving(report)


def _saving(report: Report) -> str:
    cores, saved = report.application.cores, report.saved_seconds
    if not any(report.actions.get(kind) for kind in SAVING_KINDS):
        if report.write_task_seconds is None:
            return "Nothing was read yet."
        wrote = report.write_task_seconds / max(cores, 1)
        return f"Nothing was read yet; what was stored ({report.stored:,}) took {wrote:.1f} s of writing."
    told = f"{report.predicted_seconds:.1f} s saved as predicted"
    if saved is None:
        return f"{told}; nothing was measured."
    found = report.measured
    parts = [f"{found.choices:,} of its actions are measured"] if found.choices else []
    parts += [f"{found.estimated:,} reads estimated"] if found.estimated else []
    how = "estimated" if not found.choices else "measured" if not found.estimated else "measured and estimated"
    net = "" if report.write_task_seconds is None else " after the cost of writing"
    of = f" on {cores} cores" if cores else ""
    return f"{told}, {round(saved, 1) + 0.0:.1f} s as {how} ({', '.join(parts)}){net}{of}."


def _application(report: Report) -> Section:
    known = report.application
    rows = [("Application", " ".join(filter(None, [known.name, f"({known.id})" if known.id else ""])))]
    if known.started:
        ran = f", {(known.ended - known.started) / 1e3:.0f} s" if known.ended else ", no end in the log"
        rows.append(("Started", f"{datetime.fromtimestamp(known.started / 1e3, UTC):%Y-%m-%d %H:%M} UTC{ran}"))
    if known.spark:
        rows.append(("Spark", f"{known.spark}, {known.cores or 'unknown number of'} cores"))
    ended = ", ".join(f"{count:,} {'ended well' if name == 'ok' else name}" for name, count in report.outcomes.items())
    rows.append(("Queries seen", f"{report.queries:,}" + (f", of which {ended}" if ended else "")))
    if report.query_seconds:
        rows.append(("Their time", f"{report.query_seconds:.1f} s, {report.task_seconds:.1f} task-seconds"))
    if report.queries:
        rows.append(
            ("Deciding took", f"{report.planning_millis:.0f} ms a query, at most {report.planning_millis_worst:.0f} ms")
        )
    return Section("Application", [row for row in rows if row[1]])


def _saved(report: Report) -> Section:
    if not report.actions:
        return Section("Saved", [])
    found = report.measured
    rows = [
        ("Predicted", f"{report.predicted_seconds:.1f} s{_parts(report.predicted)}"),
        ("Measured", _measured(report)),
    ]
    if found.estimated or found.unknown:
        rest = f"; of {found.unknown:,} more only the prediction is known" if found.unknown else ""
        rows.append(("Estimated", f"{found.estimated_seconds:.1f} s by {found.estimated:,} reads{rest}"))
    if found.error is not None:
        rows.append(("Predictions were off by", f"{found.error:.0%} in the median of {len(found.points):,} choices"))
    if found.choices:
        rows.append(("Lost time", f"{found.lost:,} of {found.choices:,} choices, {found.lost / found.choices:.0%}"))
    if report.verified.same or report.verified.different:
        rows.append(("Ran both ways", _verified(report)))
    if written := report.write_task_seconds:
        rows.append(("Writing took", f"{report.write_seconds:.1f} s ({written:.1f} task-seconds)"))
        if report.saved_seconds is not None:
            rows.append(("Saved, less writing", f"{round(report.saved_seconds, 1) + 0.0:.1f} s"))
    return Section("Saved", rows + _money(report), SAVED_HINT)


def _measured(report: Report) -> str:
    found = report.measured
    if found.seconds is None:
        return "nothing: no plain run of these queries is known in the same state of the machine"
    those = "" if found.predicted is None else f"; predicted for those {found.predicted:.1f} s"
    return f"{found.saved:.1f} s by {found.choices:,} choices against plain runs{those}"


def _verified(report: Report) -> str:
    found = report.verified
    told = f"{found.same + found.different:,} queries, "
    told += f"{found.different:,} WITH OTHER ROWS than plain Spark" if found.different else "all with equal rows"
    if found.timed:
        told += f"; {found.timed:,} of them timed: {found.plain:.1f} s as plain Spark, {found.saved:.1f} s saved"
    return told


SAVED_HINT = (
    "Predicted: what each decision expected. Measured: what plain execution of the same query took, in the same state "
    "of the machine (cold: the application's first query on that core; else warm), less what this run took, deciding "
    "included. Estimated, of the other reads: what the operators that a read stands for took when they last ran, less "
    "what the read took, in task-seconds over the cores: where cores were idle anyway, a query ends earlier by less. "
    "Of other shared subplans and rearranged stages only the prediction is known."
)


def _money(report: Report) -> list[tuple[str, str]]:
    money, prices = report.money, report.prices
    rows = []
    if money.predicted is not None:
        measured = "not measured" if money.computing is None else f"{_amount(money.computing)} as saved"
        rows.append(
            (
                "Money for computing",
                f"{_amount(money.predicted)} predicted, {measured} ({prices.core_hour} a core-hour)",
            )
        )
    if money.holding_month is not None:
        held = f"{size(report.held_bytes)}, {prices.gb_month} a GB and month"
        rows.append(("Money for holding", f"{_amount(money.holding_month)} a month ({held})"))
    return rows


def _did(report: Report) -> Section:
    rows = [(KINDS.get(kind, kind).capitalize(), f"{count:,}") for kind, count in report.actions.items()]
    if (ran := report.statements).count:
        told = f"{ran.seconds:.1f} s, predicted {ran.predicted_seconds:.1f} s; {ran.rows:,} rows, {size(ran.bytes)}"
        rows.append(("Another engine took", told))
    if report.stored:
        rows.append(
            (
                "Stored",
                f"{report.stored:,} {'result' if report.stored == 1 else 'results'}, {size(report.stored_bytes)}",
            )
        )
    if report.held_bytes:
        rows.append(("Held at the end", size(report.held_bytes)))
    for name, counts in (("Why", report.reasons), ("Read by the rule", report.rules)):
        if told := ", ".join(f"{code} {count:,}" for code, count in counts.items() if code):
            rows.append((name, told))
    return Section("Done", rows)


def _would(report: Report) -> Section:
    rows = []
    for kind, count in report.would.items():
        seconds = report.would_seconds.get(kind, 0.0)
        a_use = " at each later use" if kind == "store" else ""
        told = f", {seconds:.1f} s predicted{a_use}" if kind != "skew" else ""
        rows.append((KINDS.get(kind, kind).capitalize(), f"{count:,}{told}"))
    return Section("Would have been done (mode observe)", rows)


def _codes(title: str, counts: Mapping[str, int]) -> Section:
    return Section(
        title, [(code, f"{count:,}: {REASONS.get(code, '')}".rstrip(": ")) for code, count in counts.items()]
    )


def _sum(*counts: Mapping[str, int]) -> dict[str, int]:
    added: dict[str, int] = {}
    for each in counts:
        for code, count in each.items():
            added[code] = added.get(code, 0) + count
    return added


def _parts(predicted: Mapping[str, float]) -> str:
    parts = [f"{kind} {predicted[kind]:.1f} s" for kind in SAVING_KINDS if predicted.get(kind)]
    return f" ({', '.join(parts)})" if len(parts) > 1 else ""


CANDIDATE_COLUMNS = ("point", "uses", "compute", "size", "saves", "write", "so far")


def candidate_rows(report: Report) -> list[tuple[str, ...]]:
    """The best points; computing in task-seconds, the rest in wall seconds."""
    return [
        (
            f"{each.lineage[:8]} {_short(each.label or each.operator)}",
            f"{each.uses:.3g}",
            f"{each.seconds:.1f} s",
            size(each.bytes),
            f"{each.saved_seconds:.1f} s",
            f"{each.write_seconds:.1f} s",
            "stored" if each.stored else each.code,
        )
        for each in report.candidates
    ]


CANDIDATES_HINT = (
    "Saved in a run, were the result stored before it: uses · (compute / cores - reading), each point without what "
    "those above it in the list already save. Sizes are estimates before compression; reading and writing at the "
    "usual rates of Parquet."
)


def _amount(money: float) -> str:
    """
    >>> _amount(1234.5), _amount(0.000057239), _amount(0.0)
    ('1,234.50', '0.000057', '0')
    """
    return f"{money:,.2f}" if abs(money) >= 1 else f"{money:.6f}".rstrip("0").rstrip(".")


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def size(count: float) -> str:
    """Powers of 1000, as prices are.

    >>> size(12), size(2_500_000)
    ('12 B', '2.5 MB')
    """
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.0f} B" if power == 0 else f"{count:.1f} {_UNITS[power]}"
