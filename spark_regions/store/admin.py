"""What the command line shows and changes: entries, the graph, and the store's health."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from spark_regions.dag.records import Entry
from spark_regions.errors import StoreError
from spark_regions.stats.plain_runs import is_whole_query
from spark_regions.store import entries as records
from spark_regions.store.graph import window
from spark_regions.store.opening import StoreLocation, open_catalog, place, shown
from spark_regions.store.records import to_variant
from spark_regions.store.schema import CALIBRATION, EDGE, ENTRY, HEAD, LEASE, OPERATOR, RUN
from spark_regions.store.store import Store


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """The global operator graph: operators by lineage, and edges with their windowed uses."""

    operators: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    entries: list[Entry]
    runs: int


@contextlib.contextmanager
def opened(directory: str, namespace: str, catalog_url: str = "") -> Iterator[Store]:
    """The store of a namespace, for one command.

    :raises StoreError: it cannot be opened
    """
    where = place(directory, namespace, catalog_url)
    catalog = open_catalog(where)
    try:
        yield Store(catalog, where)
    finally:
        catalog.close()


def list_entries(store: Store) -> list[Entry]:
    """All entries, the oldest first."""
    return store.catalog.read(records.all_entries)


def find_entry(store: Store, name: str) -> Entry:
    """The entry of an id, or the only one whose id starts so.

    :raises StoreError: there is none, or there are several
    """
    entries = list_entries(store)
    matching = [e for e in entries if e.id == name] or [e for e in entries if name and e.id.startswith(name)]
    if len(matching) != 1:
        raise StoreError(f"No single entry starts with {name}. Hint: `spark-regions cache ls` lists them.")
    return matching[0]


def remove_entry(store: Store, name: str) -> None:
    """Evict an entry by id or unique prefix; its files go when nobody reads them.

    :raises StoreError: there is none
    """
    store.abandon(find_entry(store, name).id, "REMOVED")


def job_of(connection: sa.Connection, application: str) -> str:
    """Its name; empty where its run is forgotten."""
    return connection.execute(sa.select(RUN.c.name).where(RUN.c.application == application)).scalar() or ""


def clear(store: Store, moved: Callable[[float], None] = lambda _: None) -> int:
    """Evict every committed entry and forget what dead applications reserved. Returns how many were evicted.

    :param moved: told of every entry that is gone
    """
    committed = [entry.id for entry in list_entries(store) if entry.state == "committed"]
    for name in committed:
        store.abandon(name, "REMOVED")
        moved(1)
    store.sweep_dead(0.0)
    return len(committed)


def graph_snapshot(store: Store, runs: int = 20) -> GraphSnapshot:
    """Operators, edges of the last `runs` runs, and entries."""

    def work(connection: sa.Connection) -> GraphSnapshot:
        operators: dict[str, dict[str, Any]] = {}
        for row in connection.execute(sa.select(OPERATOR)):
            variant = to_variant(row)
            if is_whole_query(variant.kind):
                continue
            merged = operators.setdefault(
                variant.lineage,
                {"lineage": variant.lineage, "core": variant.core, "kinds": set(), "rows": None, "bytes": None,
                 "seconds": 0.0, "demands": 0, "executions": 0},
            )  # fmt: skip
            merged["kinds"].add(variant.kind)
            merged["seconds"] += variant.seconds.mean
            merged["demands"] = max(merged["demands"], variant.demands)
            merged["executions"] = max(merged["executions"], variant.executions)
            if variant.rows.count:
                merged["rows"] = variant.rows.mean
            if variant.bytes.count:
                merged["bytes"] = max(merged["bytes"] or 0.0, variant.bytes.mean)
        for each in operators.values():
            each["kinds"] = sorted(each["kinds"])
        ids = window(connection, runs)
        query = (
            sa.select(EDGE.c.child, EDGE.c.parent, sa.func.count(), sa.func.sum(EDGE.c.occurrences))
            .where(EDGE.c.run_id.in_(ids))
            .group_by(EDGE.c.child, EDGE.c.parent)
        )
        edges = [
            {"child": child, "parent": parent, "runs": count, "occurrences": total}
            for child, parent, count, total in connection.execute(query)
        ]
        return GraphSnapshot(list(operators.values()), edges, records.all_entries(connection), len(ids))

    return store.catalog.read(work)


def doctor(directory: str, namespace: str, catalog_url: str = "") -> dict[str, Any]:
    """Facts about a store, for people who look for a fault; a store that cannot be opened is a fact too."""
    where: StoreLocation = place(directory, namespace, catalog_url)
    facts: dict[str, Any] = {
        "namespace": where.namespace,
        "data": where.data,
        "catalog": shown(where.catalog_url),
        "revision_expected": HEAD,
    }
    try:
        catalog = open_catalog(where)
    except Exception as error:
        return facts | {"error": f"{type(error).__name__}: {error}"}
    try:
        facts |= catalog.read(_counts)
    finally:
        catalog.close()
    if where.local_data is not None:
        facts["data_mode"] = oct(where.local_data.stat().st_mode & 0o777)
        facts["directories"] = sum(1 for _ in os.scandir(where.local_data))
    if where.catalog_file is not None:
        facts["catalog_bytes"] = where.catalog_file.stat().st_size
        aside = [path for kind in ("corrupt", "older") for path in where.catalog_file.parent.glob(f"*.{kind}-*")]
        facts["put_aside"] = sorted(path.name for path in aside if path.is_file())
    return facts | {"notices": where.notices}


def _counts(connection: sa.Connection) -> dict[str, Any]:
    def count(table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
        return connection.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar() or 0

    size = connection.execute(sa.select(sa.func.coalesce(sa.func.sum(ENTRY.c.bytes), 0))).scalar()
    measured = connection.execute(sa.select(CALIBRATION.c.location, CALIBRATION.c.name, CALIBRATION.c.value))
    return {
        "revision": connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar(),
        "entries": count(ENTRY, ENTRY.c.state == "committed"),
        "pending": count(ENTRY, ENTRY.c.state == "pending"),
        "evicted": count(ENTRY, ENTRY.c.state == "evicted"),
        "bytes": int(size or 0),
        "operators": count(OPERATOR),
        "edges": count(EDGE),
        "runs": count(RUN, RUN.c.queries > 0),
        "applications_alive": count(RUN, RUN.c.ended.is_(None), RUN.c.heartbeat > time.time() - records.DEAD_SECONDS),
        "leases": count(LEASE),
        "calibration": {f"{location} {name}": value for location, name, value in measured},
    }
