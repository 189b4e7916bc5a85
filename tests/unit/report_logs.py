"""Small event logs, written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EVENTS = "org.apache.spark.sql.regions.ui.events."
TIME = 1_700_000_000_000


def start(cores: int = 2) -> list[dict[str, Any]]:
    return [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"},
        {
            "Event": "SparkListenerEnvironmentUpdate",
            "Spark Properties": {"spark.master": "local[2]", "spark.regions.enabled": "true", "spark.secret": "x"},
        },
        {"Event": "SparkListenerExecutorAdded", "Executor ID": "driver", "Executor Info": {"Total Cores": cores}},
        {
            "Event": "SparkListenerApplicationStart",
            "App Name": "<orders>",
            "App ID": "app-1",
            "Timestamp": TIME,
            "User": "ann",
        },
    ]


def end() -> dict[str, Any]:
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": TIME + 60_000}


def node(number: int, lineage: str | None, *children: int, operator: str = "Join", **more: Any) -> dict[str, Any]:
    return {"id": number, "operator": operator, "children": list(children), "lineage": lineage, "label": "", **more}


def action(kind: str, number: int, entry: str = "", saving: float = 0.0, **more: Any) -> dict[str, Any]:
    told = {"operator": "Join", "entry": entry, "savingSeconds": saving, "reason": "BENEFIT", "refusal": None}
    return {"kind": kind, "node": number, **told, "detail": "", **more}


def decided(
    query: int,
    nodes: Iterable[dict[str, Any]],
    actions: Iterable[dict[str, Any]] = (),
    declines: Iterable[tuple[int, str, str]] = (),
    **more: Any,
) -> dict[str, Any]:
    listed = [{"node": number, "operator": "Join", "code": code, "detail": detail} for number, code, detail in declines]
    decision = {
        "query": query,
        "session": "s",
        "planningMillis": 20.0,
        "plannerMillis": 5.0,
        "actions": list(actions),
        "declines": listed,
        "refusal": None,
        "regions": None,
        "topic": "",
        "nodes": list(nodes),
        **more,
    }
    event = {"query": query, "executionId": query, "time": TIME, "decision": decision}
    return {"Event": EVENTS + "SparkListenerRegionsDecided", **event}


def ran(
    query: int,
    seconds: float,
    nodes: dict[int, tuple[float | None, int | None]],
    loads: dict[str, float] | None = None,
    outcome: str = "ok",
) -> dict[str, Any]:
    """:param nodes: task-seconds and bytes by node"""
    return {
        "Event": EVENTS + "SparkListenerRegionsRan",
        "query": query,
        "executionId": query,
        "time": TIME,
        "outcome": outcome,
        "seconds": seconds,
        "taskSeconds": sum(each or 0.0 for each, _ in nodes.values()),
        "nodes": [{"id": n, "rows": 10, "bytes": size, "seconds": own} for n, (own, size) in nodes.items()],
        "loads": [{"entry": e, "seconds": s, "rows": 10, "bytes": 100} for e, s in (loads or {}).items()],
    }


def entry(name: str, state: str, **more: Any) -> dict[str, Any]:
    told = {"entry": name, "state": state, "query": 1, "time": TIME}
    return {"Event": EVENTS + "SparkListenerRegionsEntry", **told, **more}


def state(**more: Any) -> dict[str, Any]:
    return {"Event": EVENTS + "SparkListenerRegionsState", "time": TIME, "mode": "apply", **more}


def lines(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)


def write(path: Path, events: Iterable[dict[str, Any]]) -> Path:
    path.write_bytes(lines(events))
    return path


def reused() -> list[dict[str, Any]]:
    """A query that stores, and one that reads. The operators took 4 + 2 task-seconds, the read 0.5."""
    plan = [node(0, "a", 1, operator="Aggregate"), node(1, "b", 2), node(2, "c", operator="Relation")]
    again = [node(0, "d", 1, operator="Aggregate"), node(1, "b", 2), node(2, "c", operator="Relation")]
    times = {0: (1.0, 100), 1: (4.0, 50_000_000), 2: (2.0, 80_000_000)}
    return [
        *start(),
        decided(1, plan, [action("store", 1, "e1", 2.5)], [(2, "SOURCE", "")], regions={"chosenSeconds": 3.0}),
        ran(1, 3.6, times),
        entry("e1", "committed", rows=10, bytes=2_000_000, files=2, seconds=0.4),
        decided(2, again, [action("load", 1, "e1", 2.6)], [(0, "TOO_CHEAP", "0.02 s")]),
        ran(2, 0.9, {0: (1.0, 100)}, {"e1": 0.5}),
        end(),
    ]
