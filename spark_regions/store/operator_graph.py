"""The global operator graph as one planner sees it: the catalog's, and what it has observed and not yet written."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import sqlalchemy as sa

from spark_regions.costs.calibrate import blended
from spark_regions.dag.plan import Plan
from spark_regions.dag.records import EdgeUse, GraphView, OperatorStatistics
from spark_regions.errors import CatalogBusy
from spark_regions.stats.first_uses import family
from spark_regions.stats.shared_runs import query_key
from spark_regions.store import graph as stored
from spark_regions.store.catalog import Catalog
from spark_regions.store.graph import Batch
from spark_regions.store.stages import keys_of, stage_of
from spark_regions.store.store import Run
from spark_regions.store.switched_off import off_lineages, switch_off

log = logging.getLogger("spark_regions.planner")

FLUSH_SECONDS = 0.2
MAX_WRITTEN = 100
MAX_CACHED = 5_000
MAX_PRIVATE = 2_000


class OperatorGraph:
    """Reads through a cache, and writes behind.

    The cache holds the catalog's state; observations that are not committed yet are merged over it, so a view
    has all of
    this planner's own. The catalog's change counter tells when another planner has written.
    """

    def __init__(self, catalog: Catalog, run: Run, location: str) -> None:
        self.catalog = catalog
        self.run = run
        self.location = location
        self.calibration: dict[str, float] = {}
        self._lock = threading.RLock()
        self._pending = Batch()
        self._in_flight: Batch | None = None
        self._private: dict[str, list[OperatorStatistics]] = {}
        self._session: dict[str, dict[str, int]] = {}
        self._variants: dict[str, list[OperatorStatistics]] = {}
        self._edges: dict[str, dict[str, EdgeUse]] = {}
        self._runs: list[int] = []
        self._off: Mapping[str, str] = {}
        self._off_unwritten: dict[str, str] = {}
        self._window = -1
        self._seen = -1
        self._wake = threading.Event()
        self._flushing = threading.Lock()

    def view(self, plan: Plan, window: int, query: str | None = None, before: Plan | None = None) -> GraphView:
        """What is known about the operators of `plan` and `before`, and under `query` about `plan` as a whole."""
        nodes = (*plan.nodes.values(), *(before.nodes.values() if before else ()))
        lineages = {node.signature.lineage for node in nodes if node.signature}
        if query:
            lineages.add(query)
        if plan.repeated:
            lineages.add(query_key(plan))
        lineages |= {family(self.run.name, plan, shared.node) for shared in plan.shared}
        shared_cores = {shared.signature.core for shared in plan.shared}
        with self._lock:
            return self.catalog.read(lambda connection: self._view(connection, lineages, shared_cores, window))

    def record(
        self, fill: Callable[[Batch], None], private: Iterable[OperatorStatistics], demanded: Iterable[tuple[str, str]]
    ) -> None:
        """Add observations: `fill` those for the catalog, `private` those that mean nothing to other applications."""
        with self._lock:
            fill(self._pending)
            for variant in private:
                self._keep_private(variant)
            for child, parent in demanded:
                uses = self._session.setdefault(child, {})
                uses[parent] = uses.get(parent, 0) + 1
        self._wake.set()

    def record_step(self, position: int, body: bytes) -> None:
        """Keep a query of this run, for the next run of the same application."""
        with self._lock:
            self._pending.steps[position] = body
        self._wake.set()

    def record_stage(self, shape: str, lineage: str, body: bytes) -> None:
        """Keep what a reduce stage took, for any application."""
        with self._lock:
            self._pending.stages[(shape, lineage)] = body
        self._wake.set()

    def stage(self, shape: str, lineage: str) -> tuple[str, bytes] | None:
        """Lineage and body of what was kept last of a stage with these operators; on the same rows, if there is any."""
        with self._lock:
            waiting: dict[str, bytes] = {}
            for batch in (self._in_flight, self._pending):
                of_shape = {of: body for (found, of), body in batch.stages.items() if found == shape} if batch else {}
                waiting |= of_shape
            if lineage in waiting:
                return lineage, waiting[lineage]
            written = self.catalog.read(lambda connection: stage_of(connection, shape, lineage))
        if written is not None and (written[0] == lineage or not waiting):
            return written
        return next(reversed(waiting.items()), None)

    def record_stage_keys(self, shape: str, lineage: str, body: bytes) -> None:
        """Keep the heaviest keys of a stage, for any application."""
        with self._lock:
            self._pending.stage_keys[(shape, lineage)] = body
        self._wake.set()

    def record_timed(self, stages: Mapping[str, bytes]) -> None:
        """Keep what stages took on this machine, by shape."""
        with self._lock:
            self._pending.timed.update(stages)
        self._wake.set()

    def stage_keys(self, shape: str, lineage: str) -> bytes | None:
        """The heaviest keys of a stage with these operators on these very rows."""
        with self._lock:
            for batch in (self._pending, self._in_flight):
                if batch and (shape, lineage) in batch.stage_keys:
                    return batch.stage_keys[(shape, lineage)]
            return self.catalog.read(lambda connection: keys_of(connection, shape, lineage))

    def switch_off(self, lineages: Iterable[str], detail: str) -> Callable[[], None]:
        """Nothing is read or stored of these lineages from now on. Returns what writes that to the catalog."""
        wanted = dict.fromkeys(lineages, detail)
        with self._lock:
            self._off_unwritten |= wanted

        def write() -> None:
            now = time.time()
            self.catalog.write(lambda found: switch_off(found, wanted, detail, self.run.application, now), counted=True)
            with self._lock:
                for lineage in wanted:
                    self._off_unwritten.pop(lineage, None)

        return write

    def learn(self, name: str, value: float) -> None:
        """A new calibration value of this store location."""
        with self._lock:
            self.calibration[name] = value
            self._pending.calibration[(self.location, name)] = value
        self._wake.set()

    def blend(self, name: str, observed: float, size_bytes: float | None = None, default: float | None = None) -> None:
        """Learn a calibration by one more observation; without any before, `default` counts as one, if given."""
        self.learn(name, blended(self.calibration.get(name, default), observed, size_bytes))

    @property
    def unwritten(self) -> bool:
        """Whether observations wait for the writer."""
        return bool(self._pending) or self._in_flight is not None

    def write_behind(self) -> None:
        """Body of the writer thread."""
        while True:
            self._wake.wait()
            # Observations come in bursts at the end of a query; one transaction takes them together.
            threading.Event().wait(FLUSH_SECONDS)
            self._wake.clear()
            try:
                self.flush()
            except Exception:
                log.exception("observations could not be written; they stay in memory")

    def flush(self, seconds: float | None = None) -> None:
        """Write all observations; they stay pending if the catalog is busy, or after `seconds`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._flush_some(deadline):
            pass

    def _flush_some(self, deadline: float | None) -> bool:
        """Write one piece; whether there was one and it was written in time."""
        seconds = None if deadline is None else deadline - time.monotonic()
        if seconds is not None and seconds <= 0:
            return False
        if not self._flushing.acquire(timeout=-1 if seconds is None else seconds):
            return False
        try:
            with self._lock:
                if not self._pending:
                    return False
                batch = self._in_flight = self._pending.take(MAX_WRITTEN)
            held = 0
            before = -1

            def work(connection: sa.Connection) -> None:
                nonlocal held, before
                stored.write_batch(connection, batch, self.run.id)
                before = self.catalog.changes(connection)
                # From here to the end of the commit no view may read: it would count the batch twice or not at all.
                self._lock.acquire()
                held += 1

            try:
                self.catalog.write(work, seconds, counted=True)
            except BaseException as error:
                with self._lock:
                    self._put_back(batch)
                if isinstance(error, CatalogBusy):
                    self._wake.set()
                    return False
                raise
            else:
                self._in_flight = None
                if before == self._seen:
                    self._seen = before + 1
                    self._fold(batch)
                # Otherwise another planner wrote too, and the next view reads everything again.
            finally:
                for _ in range(held):
                    self._lock.release()
            return True
        finally:
            self._flushing.release()

    def _fold(self, batch: Batch) -> None:
        """The catalog now holds the batch: so does the cache, without reading it again."""
        for variant in batch.variants.values():
            kept = self._variants.get(variant.lineage)
            if kept is not None:
                _merge_into(kept, variant)

    def _put_back(self, batch: Batch) -> None:
        later, self._pending, self._in_flight = self._pending, batch, None
        for variant in later.variants.values():
            self._pending.add_variant(variant)
        for edge, count in later.edges.items():
            self._pending.edges[edge] = self._pending.edges.get(edge, 0) + count
        self._pending.calibration |= later.calibration
        self._pending.queries += later.queries
        self._pending.steps |= later.steps
        self._pending.stages |= later.stages
        self._pending.stage_keys |= later.stage_keys
        self._pending.timed |= later.timed

    def seen(self, lineage: str) -> GraphView:
        """What is known under one name, without a plan."""
        with self._lock:
            return self.catalog.read(lambda connection: self._view(connection, {lineage}, set(), self._window))

    def _view(self, connection: sa.Connection, lineages: set[str], cores: set[str], window: int) -> GraphView:
        changes = self.catalog.changes(connection)
        if changes != self._seen or window != self._window or len(self._variants) > MAX_CACHED:
            self._variants.clear()
            self._edges.clear()
            self._runs = stored.window(connection, window, self.run.name, self.run.id)
            self.calibration |= stored.calibration(connection, self.location)
            self.calibration |= {name: value for (_, name), value in self._pending.calibration.items()}
            self._off = off_lineages(connection)
            self._seen, self._window = changes, window
        unknown = lineages - self._variants.keys()
        if unknown:
            found = stored.variants_of(connection, unknown)
            self._variants.update((lineage, found.get(lineage, [])) for lineage in unknown)
        unknown = lineages - self._edges.keys()
        if unknown:
            uses = stored.edges_of(connection, unknown, self._runs)
            self._edges.update((lineage, uses.get(lineage, {})) for lineage in unknown)
        edges = {lineage: self._edges[lineage] for lineage in lineages}
        by_core = stored.variants_on(connection, cores) if cores else {}
        kin = {variant.lineage for found in by_core.values() for variant in found}
        session = {lineage: self._session.get(lineage, {}) for lineage in lineages | kin}
        parents = {parent for uses in edges.values() for parent in uses if parent}
        parents |= {parent for asked in session.values() for parent in asked if parent}
        return GraphView(
            variants=self._overlaid({lineage: self._variants[lineage] for lineage in lineages}, "lineage"),
            by_core=self._overlaid(by_core, "core"),
            edges=edges,
            served=stored.served(connection, parents) if parents else frozenset(),
            session=session,
            runs=len(self._runs),
            off={**self._off, **self._off_unwritten},
        )

    def _overlaid(self, known: Mapping[str, list[OperatorStatistics]], by: str) -> dict[str, list[OperatorStatistics]]:
        merged: dict[str, list[OperatorStatistics]] = {key: list(variants) for key, variants in known.items()}
        for batch in (self._in_flight, self._pending):
            for variant in batch.variants.values() if batch else ():
                group = merged.get(getattr(variant, by))
                if group is not None:
                    _merge_into(group, variant)
        if by == "lineage" and self._private:
            for key, group in merged.items():
                group.extend(self._private.get(key, ()))
        return merged

    def _keep_private(self, variant: OperatorStatistics) -> None:
        if variant.lineage not in self._private and len(self._private) >= MAX_PRIVATE:
            self._private.pop(next(iter(self._private)))
        _merge_into(self._private.setdefault(variant.lineage, []), variant)


def _merge_into(kept: list[OperatorStatistics], variant: OperatorStatistics) -> None:
    for index, before in enumerate(kept):
        if before.key == variant.key:
            kept[index] = before.merge(variant)
            return
    kept.append(variant)
