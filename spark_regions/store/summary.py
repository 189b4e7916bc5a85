"""What a store holds, cut to what a person looks at: the last used entries, the most used operators."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa

from spark_regions.dag.records import Entry
from spark_regions.stats.plain_runs import is_whole_query
from spark_regions.store.schema import EDGE, ENTRY, OPERATOR, RUN

MAX_ENTRIES = 500
MAX_OPERATORS = 500
MAX_EDGES = 2000
_CHUNK = 250


def entry_list(connection: sa.Connection, entries: list[Entry]) -> list[dict[str, Any]]:
    """Facts of the last used entries that can be read or are being written, each with the name of its application."""
    shown = [entry for entry in entries if entry.state in ("committed", "pending")]
    shown = sorted(shown, key=lambda entry: -entry.used)[:MAX_ENTRIES]
    applications = sorted({entry.application for entry in shown})
    names: dict[str, str] = {}
    for start in range(0, len(applications), _CHUNK):
        query = sa.select(RUN.c.application, RUN.c.name)
        found = connection.execute(query.where(RUN.c.application.in_(applications[start : start + _CHUNK])))
        names.update((row.application, row.name) for row in found)
    return [_fields(entry, names.get(entry.application, "")) for entry in shown]


def _fields(entry: Entry, job: str) -> dict[str, Any]:
    return {
        "entry": entry.id,
        "state": entry.state,
        "operator": entry.operator,
        "location": entry.location,
        "lineage": entry.lineage,
        "columns": len(entry.columns),
        "filters": len(entry.conjuncts),
        "rows": entry.rows,
        "bytes": entry.bytes,
        "application": entry.application,
        "name": job,
        "query": entry.query,
        "reason": entry.reason[:200],
        "created": entry.created,
        "used": entry.used,
        "uses": entry.uses,
        "benefit": round(entry.recompute_seconds, 4),
        "predicted": round(entry.predicted_seconds, 4),
        "measured": round(entry.measured_seconds, 4),
        "measuredUses": entry.measured_uses,
        "estimated": round(entry.estimated_seconds, 4),
        "contradictions": entry.contradictions,
    }


class MostUsed(NamedTuple):
    """:param operators: how many there are"""

    nodes: list[dict[str, Any]]
    edges: list[tuple[str, str]]
    operators: int


def most_used(connection: sa.Connection) -> MostUsed:
    """Operators by lineage, the most used first.

    `seconds` are task-seconds of the operator alone, a mean over its runs; None where nothing was measured.
    """
    count = connection.execute(sa.select(sa.func.count()).select_from(OPERATOR)).scalar() or 0
    nodes: dict[str, dict[str, Any]] = {}
    for row in connection.execute(_MOST_USED):
        if is_whole_query(row.kind):
            continue
        node = nodes.get(row.lineage)
        if node is None and len(nodes) < MAX_OPERATORS:
            nodes[row.lineage] = _operator(row)
        elif node is not None and row.kind not in node["operator"].split(" + "):
            node["operator"] += f" + {row.kind}"
    stored = set(connection.execute(sa.select(ENTRY.c.lineage).where(ENTRY.c.state == "committed")).scalars())
    for lineage, node in nodes.items():
        node["stored"] = lineage in stored
    return MostUsed(list(nodes.values()), _edges(connection, nodes), count)


def _operator(row: Any) -> dict[str, Any]:
    return {
        "lineage": row.lineage,
        "operator": row.kind,
        "uses": row.demands,
        "executions": row.executions,
        "seconds": round(row.seconds_mean, 4) if row.seconds_count else None,
        "rows": round(row.rows_mean) if row.rows_count else None,
        "bytes": round(row.bytes_mean) if row.bytes_count else None,
    }


def _edges(connection: sa.Connection, nodes: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Edges between the nodes, from an operator to the one that it feeds."""
    found: dict[tuple[str, str], None] = {}
    names = list(nodes)
    for start in range(0, len(names), _CHUNK):
        query = sa.select(EDGE.c.child, EDGE.c.parent).where(EDGE.c.child.in_(names[start : start + _CHUNK])).distinct()
        for child, parent in connection.execute(query):
            if parent in nodes and len(found) < MAX_EDGES:
                found[(child, parent)] = None
    return list(found)


_MOST_USED = (
    sa.select(
        OPERATOR.c.lineage,
        OPERATOR.c.kind,
        OPERATOR.c.demands,
        OPERATOR.c.executions,
        OPERATOR.c.seconds_count,
        OPERATOR.c.seconds_mean,
        OPERATOR.c.rows_count,
        OPERATOR.c.rows_mean,
        OPERATOR.c.bytes_count,
        OPERATOR.c.bytes_mean,
    )
    .order_by(OPERATOR.c.demands.desc(), OPERATOR.c.last.desc())
    .limit(4 * MAX_OPERATORS)
)
