"""The global operator graph in the catalog (Piglet §4.3)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import sqlalchemy as sa

from spark_regions.dag.records import EdgeUse, OperatorStatistics, StatisticsKey
from spark_regions.store.records import from_variant, to_variant
from spark_regions.store.schema import CALIBRATION, EDGE, ENTRY, OPERATOR, RUN, STAGE, STAGE_KEYS, TIMED_STAGE
from spark_regions.store.sources import prune_sources
from spark_regions.store.stages import StageKey, prune_stages
from spark_regions.store.steps import write_steps
from spark_regions.store.timed_stages import machine, prune_timed
from spark_regions.store.written import prune_written

KEEP_RUNS = 1000
KEEP_OPERATORS = 200_000
_CHUNK = 300
_ROWS = ("variants", "edges", "steps", "stages", "stage_keys", "timed")
_KIN = 200


@dataclass(slots=True)
class Batch:
    """Observations that wait to be written.

    :param calibration: (location, name) to value
    :param steps: queries of this run by position
    :param stages: what reduce stages took
    :param stage_keys: their heaviest keys
    :param timed: what stages of each shape took on this machine
    """

    variants: dict[StatisticsKey, OperatorStatistics] = field(default_factory=dict)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    calibration: dict[tuple[str, str], float] = field(default_factory=dict)
    queries: int = 0
    steps: dict[int, bytes] = field(default_factory=dict)
    stages: dict[StageKey, bytes] = field(default_factory=dict)
    stage_keys: dict[StageKey, bytes] = field(default_factory=dict)
    timed: dict[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.calibration or self.queries) or any(getattr(self, name) for name in _ROWS)

    def take(self, limit: int) -> Batch:
        """Move at most `limit` rows of each kind into a batch of their own; a decision never waits for a long write."""
        taken = Batch(calibration=self.calibration, queries=self.queries)
        self.calibration, self.queries = {}, 0
        for name in _ROWS:
            rest: dict[Any, Any] = getattr(self, name)
            part = getattr(taken, name)
            for key in list(islice(rest, limit)):
                part[key] = rest.pop(key)
        return taken

    def add_variant(self, variant: OperatorStatistics) -> None:
        before = self.variants.get(variant.key)
        self.variants[variant.key] = before.merge(variant) if before else variant

    def add_edge(self, child: str, parent: str) -> None:
        self.edges[(child, parent)] = self.edges.get((child, parent), 0) + 1


def variants_of(connection: sa.Connection, lineages: Iterable[str]) -> dict[str, list[OperatorStatistics]]:
    """Every variant of the lineages."""
    found: dict[str, list[OperatorStatistics]] = {}
    for chunk in _chunks(sorted(set(lineages))):
        for row in connection.execute(_BY_LINEAGE, {"lineages": chunk}):
            variant = to_variant(row)
            found.setdefault(variant.lineage, []).append(variant)
    return found


def variants_on(connection: sa.Connection, cores: Iterable[str]) -> dict[str, list[OperatorStatistics]]:
    """The variants on each core that were seen last."""
    found: dict[str, list[OperatorStatistics]] = {}
    for core in set(cores):
        found[core] = [to_variant(row) for row in connection.execute(_BY_CORE, {"core": core})]
    return found


def window(connection: sa.Connection, size: int, name: str | None = None, without: int = -1) -> list[int]:
    """Ids of the last runs that executed something: those of one application count for eq. 7 of Piglet."""
    query = sa.select(RUN.c.id).where(RUN.c.queries > 0, RUN.c.id != without)
    if name is not None:
        query = query.where(RUN.c.name == name)
    return list(connection.execute(query.order_by(RUN.c.id.desc()).limit(max(size, 0))).scalars())


def edges_of(connection: sa.Connection, children: Iterable[str], runs: Sequence[int]) -> dict[str, dict[str, EdgeUse]]:
    """Uses of the edges out of `children` within `runs`."""
    found: dict[str, dict[str, EdgeUse]] = {}
    if not runs:
        return found
    for chunk in _chunks(sorted(set(children))):
        for child, parent, count, total in connection.execute(_EDGES, {"children": chunk, "runs": list(runs)}):
            found.setdefault(child, {})[parent] = EdgeUse(int(count), int(total))
    return found


def served(connection: sa.Connection, lineages: Iterable[str]) -> frozenset[str]:
    """Those of the lineages that a committed entry has."""
    found: set[str] = set()
    for chunk in _chunks(sorted(set(lineages))):
        found.update(connection.execute(_SERVED, {"lineages": chunk}).scalars())
    return frozenset(found)


def calibration(connection: sa.Connection, location: str) -> dict[str, float]:
    query = sa.select(CALIBRATION.c.name, CALIBRATION.c.value).where(CALIBRATION.c.location == location)
    return {row.name: row.value for row in connection.execute(query)}


def write_batch(connection: sa.Connection, batch: Batch, run: int) -> None:
    """Merge observations into the graph."""
    now = time.time()
    _write_variants(connection, batch.variants)
    _write_edges(connection, batch.edges, run)
    write_steps(connection, run, batch.steps)
    for table, bodies in ((STAGE, batch.stages), (STAGE_KEYS, batch.stage_keys)):
        for (shape, lineage), body in bodies.items():
            upsert(connection, table, {"shape": shape, "lineage": lineage}, {"body": body, "last": now})
    for shape, body in batch.timed.items():
        upsert(connection, TIMED_STAGE, {"machine": machine(), "shape": shape}, {"body": body, "last": now})
    for (location, name), value in batch.calibration.items():
        upsert(connection, CALIBRATION, {"location": location, "name": name}, {"value": value, "updated": now})
    if batch.queries:
        connection.execute(sa.update(RUN).where(RUN.c.id == run).values(queries=RUN.c.queries + batch.queries))


def prune(connection: sa.Connection) -> None:
    """Forget the oldest runs and operators beyond what is kept."""
    last = connection.execute(sa.select(sa.func.max(RUN.c.id))).scalar() or 0
    connection.execute(sa.delete(EDGE).where(EDGE.c.run_id <= last - KEEP_RUNS))
    connection.execute(sa.delete(RUN).where(RUN.c.id <= last - KEEP_RUNS))
    count = connection.execute(sa.select(sa.func.count()).select_from(OPERATOR)).scalar() or 0
    if count > KEEP_OPERATORS:
        oldest = sa.select(OPERATOR.c.id).order_by(OPERATOR.c.last).limit(count - KEEP_OPERATORS)
        connection.execute(sa.delete(OPERATOR).where(OPERATOR.c.id.in_(oldest)))
    prune_stages(connection)
    prune_timed(connection)
    prune_written(connection)
    prune_sources(connection)


_BY_LINEAGE = sa.select(OPERATOR).where(OPERATOR.c.lineage.in_(sa.bindparam("lineages", expanding=True)))
_BY_CORE = (
    sa.select(OPERATOR).where(OPERATOR.c.core == sa.bindparam("core")).order_by(OPERATOR.c.last.desc()).limit(_KIN)
)
_SERVED = sa.select(ENTRY.c.lineage).where(
    ENTRY.c.lineage.in_(sa.bindparam("lineages", expanding=True)), ENTRY.c.state == "committed"
)
_EDGES = (
    sa.select(EDGE.c.child, EDGE.c.parent, sa.func.count(), sa.func.sum(EDGE.c.occurrences))
    .where(
        EDGE.c.child.in_(sa.bindparam("children", expanding=True)),
        EDGE.c.run_id.in_(sa.bindparam("runs", expanding=True)),
    )
    .group_by(EDGE.c.child, EDGE.c.parent)
)


def _write_variants(connection: sa.Connection, variants: Mapping[StatisticsKey, OperatorStatistics]) -> None:
    known: dict[StatisticsKey, OperatorStatistics] = {}
    for found in variants_of(connection, (key[0] for key in variants)).values():
        known.update((variant.key, variant) for variant in found)
    fresh: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for key, variant in variants.items():
        if key in known:
            row = from_variant(known[key].merge(variant))
            changed.append({f"b_{name}": value for name, value in row.items()})
        else:
            fresh.append(from_variant(variant))
    if fresh:
        connection.execute(sa.insert(OPERATOR), fresh)
    if changed:
        names = changed[0].keys()
        update = (
            sa.update(OPERATOR)
            .where(
                OPERATOR.c.lineage == sa.bindparam("b_lineage"),
                OPERATOR.c.kind == sa.bindparam("b_kind"),
                OPERATOR.c.shape == sa.bindparam("b_shape"),
            )
            .values({name[2:]: sa.bindparam(name) for name in names if name not in ("b_lineage", "b_kind", "b_shape")})
        )
        connection.execute(update, changed)


def _write_edges(connection: sa.Connection, edges: Mapping[tuple[str, str], int], run: int) -> None:
    if not edges:
        return
    known: set[tuple[str, str]] = set()
    for chunk in _chunks(sorted({child for child, _ in edges})):
        query = sa.select(EDGE.c.child, EDGE.c.parent).where(EDGE.c.run_id == run, EDGE.c.child.in_(chunk))
        known.update((child, parent) for child, parent in connection.execute(query))
    rows = [{"b_child": c, "b_parent": p, "b_run": run, "more": n} for (c, p), n in edges.items()]
    fresh = [row for row in rows if (row["b_child"], row["b_parent"]) not in known]
    changed = [row for row in rows if (row["b_child"], row["b_parent"]) in known]
    if fresh:
        connection.execute(
            sa.insert(EDGE),
            [{"child": r["b_child"], "parent": r["b_parent"], "run_id": run, "occurrences": r["more"]} for r in fresh],
        )
    if changed:
        connection.execute(
            sa.update(EDGE)
            .where(
                EDGE.c.child == sa.bindparam("b_child"),
                EDGE.c.parent == sa.bindparam("b_parent"),
                EDGE.c.run_id == sa.bindparam("b_run"),
            )
            .values(occurrences=EDGE.c.occurrences + sa.bindparam("more")),
            changed,
        )


def upsert(connection: sa.Connection, table: sa.Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    where = [table.c[name] == value for name, value in key.items()]
    if not connection.execute(sa.update(table).where(*where).values(**values)).rowcount:
        connection.execute(sa.insert(table).values(**key, **values))


def _chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
