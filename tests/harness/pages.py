"""JSON of the tab's pages (docs/ui.md), written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def action(kind: str, node: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "node": node,
        "operator": "Join",
        "entry": "e123456789abcdef",
        "savingSeconds": 1.5,
        "ran": True,
        "reason": "BENEFIT",
        "detail": "",
        "refusal": None,
        **more,
    }


def execution(nodes: list[dict[str, Any]], actions: Iterable[dict[str, Any]] = (), **more: Any) -> dict[str, Any]:
    """The JSON of a query's page (docs/ui.md)."""
    decision = {
        "session": "s",
        "topic": "",
        "plannerMillis": 5.0,
        "actions": list(actions),
        "declines": [],
        "refusal": None,
    }
    query = {
        "query": 7,
        "executionId": 3,
        "partOf": 7,
        "operators": len(nodes),
        "planningMillis": 20.0,
        "predicted": 1.5,
        "saved": 1.2,
        "declined": 0,
        "truncated": False,
        "nodes": nodes,
        "decisions": [decision],
        "loads": [],
    }
    return {
        "executionId": 3,
        "query": 7,
        "description": "collect",
        "subqueries": 0,
        "notRun": 0,
        "status": "ok",
        "error": "",
        "time": 1_700_000_000_000,
        "planningMillis": 20.0,
        "notRunMillis": 0.0,
        "counted": True,
        "done": {"load": 1},
        "summary": "loaded",
        "declined": 0,
        "refusal": "",
        "predicted": 1.5,
        "saved": 1.2,
        "seconds": 2.5,
        "sinceStart": 2.5,
        "taskSeconds": 4.0,
        "truncated": False,
        "queries": [query],
        "wall": {},
    } | more


def node(number: int, *children: int, operator: str = "Project", **more: Any) -> dict[str, Any]:
    return {"id": number, "operator": operator, "children": list(children), "label": f"{operator} [k#1]", **more}


def wide(branches: int = 333) -> list[dict[str, Any]]:
    """A union of branches of three operators each, in pre-order."""
    union = node(0, *range(1, 3 * branches, 3), operator="Union", region=1, seconds=0.1)
    parts = []
    for first in range(1, 3 * branches, 3):
        parts += [
            node(first, first + 1, region=1, seconds=0.001),
            node(first + 1, first + 2, operator="Filter", region=1, seconds=0.002),
            node(first + 2, operator="Scan parquet", region=1, rows=10, seconds=0.003),
        ]
    return [union, *parts]


def deep(regions: int = 250) -> list[dict[str, Any]]:
    """Operators in a row, four to a region."""
    return [
        node(
            i,
            *([i + 1] if i + 1 < 4 * regions else []),
            region=regions - i // 4,
            exchange="shuffle" if i % 4 == 0 else None,
        )
        for i in range(4 * regions)
    ]
