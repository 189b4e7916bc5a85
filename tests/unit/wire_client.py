"""A driver's side of docs/protocol.md, against a real planner process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from spark_regions.dag.digests import digest
from spark_regions.planner.session import Session
from spark_regions.runs.run_planner import Waiting
from spark_regions.wire.messages import RanNode, SignedQuery
from tests.harness.processes import TOKEN, Child
from tests.harness.wire import read, written

PLAN_FIELDS = frozenset(each.encode_name for each in msgspec.structs.fields(SignedQuery))
RAN_FIELDS = frozenset(each.encode_name for each in msgspec.structs.fields(RanNode))


class PlannerProcess(Child):
    """A planner, started as the shim starts it."""

    def __init__(self, directory: Path | str, token: str = TOKEN, **confs: str) -> None:
        confs = {"spark.regions.recycle.dir": str(directory), "recycle.namespace": "tests"} | confs
        super().__init__("spark_regions.planner", confs, token)


def node(
    number: int, operator: str, children: tuple[int, ...] = (), core: str = "", conjuncts: tuple[str, ...] = (),
    columns: tuple[str, ...] = ("a", "b"), storable: bool = True, row_bytes: float = 50, session: bool = False,
) -> dict[str, Any]:  # fmt: skip
    name = digest([core])
    filters = sorted(digest([each]) for each in conjuncts)
    return {
        "id": number, "operator": operator, "children": list(children), "lineage": digest([name, *filters]),
        "core": name, "conjuncts": filters, "columns": [digest([each]) for each in columns], "storable": storable,
        "refusal": None, "session": session, "rowBytes": row_bytes,
    }  # fmt: skip


def frame(rows: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A DataFrame of the user's, with the rows of a node."""
    kept = ("lineage", "core", "conjuncts", "columns", "rowBytes")
    return {name: rows[name] for name in kept} | more


def report(name: str = "agg") -> list[dict[str, Any]]:
    """Aggregate over a join of two scans."""
    return [
        node(0, "Aggregate", (1,), core=name, columns=("k", "sum")),
        node(1, "Join", (2, 3), core="join", columns=("a", "b")),
        node(2, "Relation", (), core="left", columns=("a", "x")),
        node(3, "Relation", (), core="right", columns=("b", "x")),
    ]


def decide(nodes: list[dict[str, Any]], query: int, application: str = "app-1", **more: Any) -> dict[str, Any]:
    confs = {"strategy": "markov", "maxBytes": 10**9, "ttlSeconds": 604800, "recycle": True, "persist": True,
             "persistMaxBytes": 0, "window": 20} | more.pop("confs", {})  # fmt: skip
    plan = {"root": 0, "nodes": nodes, "expressions": {}, "conjunctColumns": {}, "shared": []}
    plan |= {name: more.pop(name) for name in PLAN_FIELDS & more.keys()}
    return {
        "type": "decide", "query": query, "application": application, "session": "s", "mode": "apply", "confs": confs,
        "parallelism": 2, "plan": plan,
    } | more  # fmt: skip


MEASURED = {"Aggregate": (100, 2400, 1.0), "Join": (100_000, 5_000_000, 6.0), "Relation": (1_000_000, 50_000_000, 2.0)}


def executed(
    nodes: list[dict[str, Any]], query: int, loads: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    ran = []
    for each in nodes:
        rows, size, seconds = MEASURED.get(each["operator"], (1000, 10_000, 1.0))
        known = {name: value for name, value in each.items() if name in RAN_FIELDS}
        ran.append(known | {"rows": rows, "bytes": size, "seconds": seconds})
    return {
        "query": query,
        "outcome": "ok",
        "seconds": 4.2,
        "taskSeconds": 8.1,
        "nodes": ran,
        "loads": loads or [],
    } | more


class PatientSession(Session):
    """Waits where a driver would be asked to wait, and until the catalog has what was observed; JSON in and out."""

    def observe(self, event: Mapping[str, Any]) -> None:  # type: ignore[override]
        super().observe(read(event))
        assert self.learning.queue.drain(60.0)

    def decide(self, message: Mapping[str, Any]) -> dict[str, Any]:  # type: ignore[override]
        while isinstance(answer := super().decide(read(message)), Waiting):
            assert answer.done.wait(60.0)
        return dict(written(answer))
