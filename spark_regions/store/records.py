"""Rows of the catalog to values of `dag.records`, and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from spark_regions.dag.records import Entry, OperatorStatistics
from spark_regions.dag.running_statistics import RunningStatistics
from spark_regions.wire.messages import Grouping, Predicate

_MOMENTS = ("rows", "bytes", "seconds", "total")


def to_variant(row: Any) -> OperatorStatistics:
    values = row._mapping
    moments = {
        name: RunningStatistics(
            values[f"{name}_count"], values[f"{name}_mean"], values[f"{name}_m2"], values[f"{name}_last"]
        )
        for name in _MOMENTS
    }  # fmt: skip
    return OperatorStatistics(
        lineage=values["lineage"],
        kind=values["kind"],
        shape=values["shape"],
        core=values["core"],
        conjuncts=frozenset(json.loads(values["conjuncts"])),
        columns=tuple(json.loads(values["columns"])),
        demands=values["demands"],
        executions=values["executions"],
        last=values["last"],
        **moments,
    )


def from_variant(variant: OperatorStatistics) -> dict[str, Any]:
    row: dict[str, Any] = {
        "lineage": variant.lineage,
        "kind": variant.kind,
        "shape": variant.shape,
        "core": variant.core,
        "conjuncts": json.dumps(sorted(variant.conjuncts)),
        "columns": json.dumps(variant.columns),
        "demands": variant.demands,
        "executions": variant.executions,
        "last": variant.last,
    }
    for name in _MOMENTS:
        moments: RunningStatistics = getattr(variant, name)
        row |= {
            f"{name}_count": moments.count,
            f"{name}_mean": moments.mean,
            f"{name}_m2": moments.m2,
            f"{name}_last": moments.last,
        }
    return row


def to_entry(row: Any) -> Entry:
    values = dict(row._mapping)
    values["conjuncts"] = frozenset(json.loads(values["conjuncts"]))
    values["columns"] = tuple(json.loads(values["columns"]))
    values["predicates"] = msgspec.json.decode(values["predicates"], type=tuple[Predicate, ...])
    for name in ("base", "grows", "growth"):
        del values[name]
    text = values["grouping"]
    values["grouping"] = msgspec.json.decode(text, type=Grouping) if text else None
    return Entry(**values)


def from_entry(entry: Entry) -> dict[str, Any]:
    row = {name: getattr(entry, name) for name in Entry.__dataclass_fields__ if name != "persisted"}
    row["conjuncts"] = json.dumps(sorted(entry.conjuncts))
    row["columns"] = json.dumps(entry.columns)
    row["predicates"] = msgspec.json.encode(entry.predicates).decode()
    row["base"] = entry.grouping.base if entry.grouping else ""
    row["grouping"] = msgspec.json.encode(entry.grouping).decode() if entry.grouping else ""
    return row
