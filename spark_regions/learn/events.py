"""What an application reports of its queries and entries, an event each, and what is learned of it."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from spark_regions.costs.calibrate import observed_rate, observed_ratio, rates_of
from spark_regions.dag.records import OperatorStatistics
from spark_regions.effects.apply import Effects
from spark_regions.effects.open_queries import MAX_OPEN, OpenQueries, OpenQuery
from spark_regions.effects.pending_writes import PendingWrite
from spark_regions.learn.engine_runs import EngineRuns
from spark_regions.learn.executed import observation_of
from spark_regions.learn.queue import WriteQueue
from spark_regions.runs.measured import measured_of, with_carried
from spark_regions.runs.recorded_query import encode
from spark_regions.runs.run_planner import RunPlanner
from spark_regions.stats.first_uses import settled
from spark_regions.stats.plain_runs import COLD, WARM, outcome, part, parts, plain_run
from spark_regions.stats.shared_runs import run_of
from spark_regions.store.admission import contradicts, supersedes
from spark_regions.store.graph import Batch
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.timed_stages import encoded
from spark_regions.wire import actions as wire
from spark_regions.wire.messages import Abandoned, Committed, Executed, Invalid, QueryTop, RanLoad, Released, Verified

log = logging.getLogger("spark_regions.planner")

MAX_CORES = 10_000
"""Cores of queries that ran, by which cold runs are told from warm ones."""
MAX_STEPS = 500
"""Queries of one run that are kept for the next one; whoever asks more is no batch job."""


class Learning:
    """Called under the session's lock; what it writes to the catalog is written behind."""

    def __init__(self, graph: OperatorGraph, effects: Effects, queries: OpenQueries) -> None:
        self.graph = graph
        self.effects = effects
        self.queries = queries
        self.store = effects.store
        self.run = effects.run
        self.queue = WriteQueue()
        self.engines = EngineRuns(graph)
        self._cores: dict[str, None] = {}
        self._to_verify: OrderedDict[int, OpenQuery] = OrderedDict()
        self._first_uses: defaultdict[str, float] = defaultdict(float)
        """By family, what they saved less what they took; judged by later runs, as this one may still read."""

    def executed(self, event: Executed, runs: RunPlanner) -> None:
        """A query has ended."""
        number = event.query
        query = self.queries.take(number)
        if query is not None and query.verify:
            self._to_verify[number] = query
            if len(self._to_verify) > MAX_OPEN:
                self._to_verify.popitem(last=False)
        for ran in event.routes:
            asked = query if ran.query == number else self.queries.get(ran.query)
            if asked is not None:
                self.engines.ran(ran, asked)
        if event.outcome == "ok":
            read = {load.entry: load for load in event.loads}
            self._ended_well(event, number, query, read, runs)
        for name in query.loads if query else ():
            self._release(name, number)
        self.queries.ended(number)

    def committed(self, event: Committed, kept: Callable[[], None]) -> None:
        """An entry is complete.

        :param kept: called when it is in the catalog
        """
        name, rows, size, seconds = event.entry, event.rows, event.bytes, event.seconds
        write, uncosted = self.effects.writes.committed(name)
        took = max(0.0, time.monotonic() - write.decided - seconds / write.cores) if write else 0.0
        if write is not None and write.family:
            self._first_uses[write.family] -= seconds / write.cores

        def commit() -> None:
            outcome = ""
            if write is not None and write.unreserved is not None:
                # Most of what tasks hold in memory is given up, and the catalog never hears of it.
                entry, budget = write.unreserved
                outcome = self.store.admit_late(dataclasses.replace(entry, bytes=size, recompute_seconds=took), budget)
            outcome = outcome or self.store.commit(name, rows, size, seconds, supersedes, event.growth)
            if outcome:
                log.warning("entry %s was written and dropped: %s", name, outcome)
                return
            kept()
            if write is not None and uncosted:
                # The query may not have been reported yet, and the next one is to know that loading pays.
                self.store.price(name, took)

        self.queue.put(commit)
        ratio = None if write is None else observed_ratio(size, write.row_bytes)
        if ratio is not None:
            self.graph.blend("ratio", ratio)
        rate = observed_rate(float(size), seconds, rates_of(self.graph.calibration).write_overhead_seconds)
        if rate is not None:
            self.graph.blend("write", rate, float(size))

    def lost(self, event: Abandoned | Invalid) -> bool:
        """An entry was given up, or cannot be read; whether the plan of the run relied on it."""
        name, code = event.entry, event.code
        write, planned = self.effects.writes.dropped(name)
        if write is not None and code == "OVER_BUDGET":
            self._outgrew(write)
        if write is not None and write.family and isinstance(event, Abandoned) and code == "NOT_WORTH_WRITING":
            self._first_uses[write.family] -= event.seconds / write.cores
        reason = f"{code} {event.detail}".strip()[:1000]
        self.queue.put(partial(self.store.abandon, name, reason))
        return planned

    def released(self, event: Released) -> None:
        """A query does not read an entry any more."""
        self._release(event.entry, event.query)

    def _release(self, name: str, query: int) -> None:
        self.queue.put(partial(self.store.release, self.run, name, query))

    def _outgrew(self, write: PendingWrite) -> None:
        self.effects.writes.outgrew(write)
        least = observed_ratio(write.reserved, write.row_bytes)
        if least is not None and least > rates_of(self.graph.calibration).stored_ratio:
            self.graph.blend("ratio", least)

    def _ended_well(
        self,
        event: Executed,
        number: int,
        query: OpenQuery | None,
        read: Mapping[str, RanLoad],
        runs: RunPlanner,
    ) -> None:
        loaded = {node for name in read if query and name in query.loads for node in query.loads[name].nodes}
        shared = query.nodes_of(wire.Share) if query else set()
        # How often Spark computes what is shared now was counted when it was not.
        elsewhere = wire.ReadPersisted, wire.Persist, wire.Route
        absent = loaded | shared | (query.nodes_of(*elsewhere) if query else set())
        seen = observation_of(event, query.plan if query else None, absent)
        self.graph.record(seen.fill, seen.private, seen.demanded)
        if event.stages:
            self.graph.record_timed(encoded(event.stages))
        if query is not None:
            self._step(query, event, absent, runs)
            alone = all(isinstance(action, wire.Share) for action in query.actions)
            if alone and query.plan.repeated:
                ran = run_of(query.plan, bool(shared), event.seconds, time.time())
                self.graph.record(lambda batch: batch.add_variant(ran), (), ())
        for write in self.effects.writes.take_uncosted(number):
            if write.node in seen.totals:
                self.queue.put(partial(self.store.price, write.entry, seen.totals[write.node] / write.cores))
        if query is not None:
            self._timed(query, event)
        for name, load in read.items():
            self._loaded(name, load, query, event.saved)

    def state_of(self, top: QueryTop | None) -> str:
        """Of the machine, for a query that is about to run."""
        return WARM if top is not None and top.core in self._cores else COLD

    def _timed(self, query: OpenQuery, event: Executed) -> None:
        """What plain execution took, or what the query's choices saved against it."""
        if query.top is None:
            return
        self._cores[query.top.core] = None
        if len(self._cores) > MAX_CORES:
            self._cores.pop(next(iter(self._cores)))
        others = [self.queries.get(number) for number in event.queries if number != query.number]
        if event.saved is not None:
            self._settled([query, *filter(None, others)], event.saved)
        if event.alone and query.plain and all(each is not None and each.plain for each in others):
            # Writing takes cores that the query would have had; where they were idle, this takes off too much.
            took = event.seconds - event.deciding - event.write_seconds / query.cores
            self._plain(query.top, query.state, max(took, 0.0))

    def ended(self, seconds: float) -> None:
        """The application has ended; waits so long for what is still to be written."""
        self._record(settled(self._first_uses, time.time()))
        self.queue.drain(seconds)

    def _plain(self, top: QueryTop, state: str, seconds: float) -> None:
        ran = plain_run(top, state, seconds, time.time())
        self.graph.record(lambda batch: batch.add_variant(ran), (), ())

    def _settled(self, queries: Iterable[OpenQuery], saved: float) -> None:
        """:param queries: a query and its subqueries"""
        choices = {choice: saving for query in queries for choice, saving in query.choices.items()}
        self._record([outcome(*choice, own, time.time()) for choice, own in parts(saved, choices).items()])

    def _record(self, found: Iterable[OperatorStatistics]) -> None:
        def fill(batch: Batch) -> None:
            for each in found:
                batch.add_variant(each)

        self.graph.record(fill, (), ())

    def verified(self, event: Verified) -> None:
        """A query was run both ways: what that took, or that nothing is to be reused in it again."""
        query = self._to_verify.pop(event.query, None)
        if query is None or query.top is None:
            return
        if event.same:
            if event.plain is not None:
                self._plain(query.top, WARM, event.plain)
            if event.saved is not None:
                self._settled([query], event.saved)
            return
        lineages = {query.top.lineage} | {lineage for kind, lineage in query.choices if kind != "split"}
        log.warning("query %s has other rows than plain Spark gives: %s", event.query, event.detail)
        write = self.graph.switch_off(lineages, event.detail)

        def work() -> None:
            write()
            for name in query.loads:
                self.store.abandon(name, f"DIFFERS {event.detail}"[:1000])

        self.queue.put(work)

    def _step(self, query: OpenQuery, event: Executed, absent: set[int], runs: RunPlanner) -> None:
        """Keep the query as a step of this run."""
        if query.position < MAX_STEPS:
            plan = query.plan
            below = plan.under(absent & plan.nodes.keys())
            made = (wire.Store, wire.Persist)
            wider = [a.node for a in query.actions if isinstance(a, made) and a.ref is not None]
            widened = plan.under(wider)
            seen = measured_of(event, query.cores, below, widened)
            body = encode(query.asked.plan, with_carried(seen, runs.carried(query.number)), query.cores)
            if body is not None:
                self.graph.record_step(query.position, body)
        runs.ran(query.number)

    def _loaded(self, name: str, load: RanLoad, query: OpenQuery | None, saved: float | None) -> None:
        """What reading an entry took, and what it saved: its part of the query's saving, or an estimate."""
        seconds, size = load.seconds, load.bytes
        rates = rates_of(self.graph.calibration)
        if seconds is None:
            return
        if size:
            rate = observed_rate(float(size), float(seconds), rates.read_overhead_seconds)
            if rate is not None:
                self.graph.blend("read", rate, float(size), rates.read_bytes_per_second)
        if query is None or name not in query.loads:
            return
        known = query.loads[name]
        overhead = rates.read_overhead_seconds * len(known.nodes)
        found = known.instead - (float(seconds) / query.cores + overhead)
        if saved is not None:
            found = part(saved, known.predicted, query.choices.values())
        if known.family:
            self._first_uses[known.family] += found
        contradicted = contradicts(known.predicted, found)
        self.queue.put(
            partial(
                self.store.used, name, self.run, query.number, known.predicted, found, saved is not None, contradicted
            )
        )
