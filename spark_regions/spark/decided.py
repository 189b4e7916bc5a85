"""Decisions as a session gives them: a list, with a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from spark_regions.reasons import sentence

ROWS_SHOWN = 200
_COLUMNS = ("query", "what", "at", "entry", "predicted saving", "saved", "why")
_STYLE = "text-align:left;vertical-align:top"


class Decisions(list[dict[str, Any]]):
    """What was decided, oldest first, as `SELECT * FROM spark_regions_decisions()` or explain's JSON has it."""

    def _repr_html_(self) -> str:
        rows = list(table_rows(self))
        shown = rows[-ROWS_SHOWN:]
        left = f"<p>The latest {len(shown):,} of {len(rows):,} rows.</p>" if len(shown) < len(rows) else ""
        head = "".join(f'<th scope="col" style="{_STYLE}">{escape(column)}</th>' for column in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f'<td style="{_STYLE}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in shown
        )
        return f"{left}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table_rows(decisions: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    """One row for each action, decline and refusal; of a Connect session, whose decisions are such rows, each row.

    >>> list(table_rows([{"query": 3, "actions": [], "declines": [], "refusal": {"code": "DISABLED", "detail": ""}}]))
    [('3', 'refused', '', '', '', '', 'DISABLED: spark_regions is switched off.')]
    """
    for decision in decisions:
        query = str(decision["query"])
        if "kind" in decision:
            yield _row(query, decision, str(decision["kind"]), decision.get("predicted_seconds"))
            continue
        if refusal := decision.get("refusal"):
            yield _row(query, refusal, "refused", None)
        for action in decision.get("actions") or ():
            refused = action.get("refusal")
            what = f"could not {action['kind']}" if refused else str(action["kind"])
            why = refused or {"code": action.get("reason"), "detail": action.get("detail")}
            yield _row(query, {**action, **why}, what, None if refused else action.get("savingSeconds"))
        for decline in decision.get("declines") or ():
            yield _row(query, decline, "declined", None)


def as_decisions(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Decisions in the shape of a classic session, whichever the session is."""
    found: dict[Any, dict[str, Any]] = {}
    whole = []
    for row in rows:
        if "kind" not in row:
            whole.append(dict(row))
            continue
        empty: dict[str, Any] = {
            "query": row["query"],
            "execution": None,
            "actions": [],
            "declines": [],
            "refusal": None,
        }
        decision = found.setdefault(row["query"], empty)
        execution = row.get("execution")
        decision["execution"] = execution if decision["execution"] is None else decision["execution"]
        told = {key: row.get(key) for key in ("node", "operator", "code", "detail")}
        if row["kind"] == "refused":
            decision["refusal"] = told
        elif row["kind"] == "decline":
            decision["declines"].append(told)
        else:
            saving = row.get("predicted_seconds") or 0.0
            more: dict[str, Any] = {
                "kind": row["kind"],
                "entry": row.get("entry"),
                "savingSeconds": saving,
                "reason": row.get("code"),
            }
            saved = {f"{how}Seconds": row.get(f"{how}_seconds") for how in ("measured", "estimated")}
            more |= saved | {"engine": _engine(row), "ran": execution is not None}
            decision["actions"].append({**told, **more})
    return [*whole, *found.values()]


def _row(query: str, told: Mapping[str, Any], what: str, seconds: float | None) -> tuple[str, ...]:
    node = told.get("node")
    at = str(told.get("operator") or "") + (f" ({node})" if node is not None and node >= 0 else "")
    code = str(told.get("code") or "")
    why = f"{code}: {sentence(code, str(told.get('detail') or ''))}{_took(_engine(told))}" if code else ""
    saving = f"{seconds:.2f} s" if seconds is not None and seconds >= 0 else ""
    return query, what, at, str(told.get("entry") or ""), saving, _saved(told), why


def _engine(told: Mapping[str, Any]) -> dict[str, Any] | None:
    """Of a part that another engine computes: what was expected and what it took, from either session's row."""
    run = told.get("engine")
    names = [(how, what) for how in ("predicted", "measured") for what in ("seconds", "rows", "bytes")]
    return run and {how + what.title(): run.get(how + what.title(), run.get(f"{how}_{what}")) for how, what in names}


def _took(run: Mapping[str, Any] | None) -> str:
    """
    >>> _took({"predictedSeconds": 0.5, "predictedRows": 9.6, "predictedBytes": 80.0, "measuredSeconds": None})
    ' Predicted 0.50 s, 10 rows, 80 bytes.'
    """
    if run is None:
        return ""
    told = " Predicted {predictedSeconds:.2f} s, {predictedRows:,.0f} rows, {predictedBytes:,.0f} bytes"
    if run.get("measuredSeconds") is not None:
        told += "; took {measuredSeconds:.2f} s, {measuredRows:,} rows, {measuredBytes:,} bytes"
    return f"{told}.".format(**run)


def _saved(told: Mapping[str, Any]) -> str:
    """What it came to when it ran, and how that is known."""
    for how in ("measured", "estimated"):
        seconds = told.get(f"{how}Seconds", told.get(f"{how}_seconds"))
        if seconds is not None:
            return f"{seconds:.2f} s {how}"
    return ""
