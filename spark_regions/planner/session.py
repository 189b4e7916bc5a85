"""One application: its decisions, and what it observes."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from spark_regions.costs.calibrate import rates_of
from spark_regions.costs.money import NO_PRICES, Prices
from spark_regions.dag.plan import Plan, parse_plan
from spark_regions.dag.records import Entry
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline
from spark_regions.effects.apply import Effects
from spark_regions.effects.open_queries import MAX_OPEN, OpenQueries, OpenQuery
from spark_regions.errors import InvalidRequest
from spark_regions.learn.events import Learning
from spark_regions.optimizer.number_regions import number_regions
from spark_regions.optimizer.optimizer import CHOICES, FAILED, optimize
from spark_regions.planner.engines import engine_of
from spark_regions.planner.laps import Laps
from spark_regions.planner.observed import observed_draft
from spark_regions.planner.run_follower import RunFollower
from spark_regions.planner.skew import stage_key
from spark_regions.planner.sweeps import Sweeps
from spark_regions.planner.trusting import runs_both_ways
from spark_regions.planner.workload import Worths
from spark_regions.runs.run_planner import Waiting
from spark_regions.skew.history import observed
from spark_regions.skew.key_frequencies import key_frequencies
from spark_regions.stats.plain_runs import baseline
from spark_regions.store.entries import entries_on
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.store import Run, Store
from spark_regions.store.tied import had_ties, tied_sorts
from spark_regions.store.timed_stages import learned_weights, machine
from spark_regions.wire import actions as wire
from spark_regions.wire import messages as told
from spark_regions.wire.messages import Confs, Decide, DecideAgain, Decision, Event, NodeDecline

log = logging.getLogger("spark_regions.planner")

MAX_DECLINES = 50
END_SECONDS = 0.5
"""How long the end of the application waits for its last observations."""


@dataclass(slots=True)
class Counters:
    decisions: int = 0
    hits: int = 0
    stores: int = 0
    commits: int = 0
    abandoned: int = 0
    errors: int = 0


class Session:
    """State of one application. Not thread-safe: the service calls it under its lock."""

    def __init__(
        self, store: Store, graph: OperatorGraph, run: Run, counters: Counters, prices: Prices = NO_PRICES
    ) -> None:
        self.store = store
        self.graph = graph
        self.run = run
        self.counters = counters
        self.effects = Effects(store, run)
        self.follower = RunFollower(graph, self.effects.persisted)
        self.queries = OpenQueries()
        self.learning = Learning(graph, self.effects, self.queries)
        self.prices = prices
        self.confs = Confs()
        self.worths = Worths(self.effects, prices)
        self.sweeps = Sweeps()
        self.weights = store.catalog.read(lambda connection: learned_weights(connection, machine()))
        self._tied, self._divided_by = tied_sorts(store.catalog), 0.0
        self._decided = 0
        self._asked: OrderedDict[int, Decide] = OrderedDict()

    def decide(self, message: Decide | DecideAgain) -> Decision | Waiting:
        """The answer to a request about a query, or what to wait for before it is asked again.

        :raises InvalidRequest: the message contradicts itself, or its query's plan is not known
        """
        laps = Laps()
        asked = self._whole(message)
        unordered, confs = frozenset(asked.unordered), asked.confs
        plan = parse_plan(asked.plan).without(unordered)
        cores = max(1, asked.parallelism)
        self.confs = confs
        step = self.follower.look(plan, confs, cores)
        follow_up = self.follower.follow_up(step, asked.offered)
        if follow_up is not None:
            return follow_up
        query = self._open(asked, plan, cores, again=bool(unordered))
        query.state = self.learning.state_of(asked.top)
        laps("plan")
        question = self._question(query, confs, unordered, step, laps)
        draft = optimize(question, CHOICES)
        laps("passes")
        self.counters.errors += sum(each.code == FAILED for each in draft.declines)
        self.follower.decided(draft.run)
        if asked.mode == "observe":
            return self._answer([], observed_draft(draft))
        applied = self.effects.apply(question, draft, query)
        if applied.missed:
            self.follower.planner.failed()
        self.counters.hits += len(query.nodes_of(wire.Load, wire.ReadPersisted))
        self.counters.stores += len(query.nodes_of(wire.Store))
        query.verify = runs_both_ways(query, confs, self.run.application)
        laps("effects")
        done = optimize(question, (number_regions,), draft=applied.draft)
        answer = self._answer(applied.actions, [*applied.declines, *done.declines])
        laps("regions")
        # A job that recurs is decided on as a whole, and `always` stores whatever it can.
        seldom = not self.follower.recurs(confs) and confs.strategy != "always"
        unasked = self.sweeps.decided(asked.shape, query.actions) if seldom else 0.0
        return replace(
            answer, regions=done.regions, millis=laps.millis, verify=query.verify,
            baseline=query.baseline, unasked=unasked,
        )  # fmt: skip

    def observe(self, event: Event) -> None:
        """Take in what was observed."""
        runs = self.follower.planner
        match event:
            case told.Executed():
                asked = self._asked.pop(event.query, None)
                if asked is not None:
                    self.sweeps.ran(asked.shape, event.deciding)
                self._divided_by = event.fitted
                self.learning.executed(event, runs)
            case told.Verified():
                self.learning.verified(event)
            case told.Tied():
                self.learning.queue.put(partial(had_ties, self.store.catalog, event.digest, self.store.clock()))
            case told.Committed():
                self.learning.committed(event, self._kept)
            case told.Abandoned() | told.Invalid():
                self.counters.abandoned += isinstance(event, told.Abandoned)
                if self.learning.lost(event):
                    runs.failed()
            case told.RanStage():
                history = observed(event)
                if history.whole:
                    self.graph.record_stage(*stage_key(event), history.encode())
            case told.CountedKeys():
                self.graph.record_stage_keys(*stage_key(event), key_frequencies(event).encode())
            case told.Released():
                self.learning.released(event)
            case told.Persisted():
                self.follower.resized(event.entry, event.bytes, event.seconds or 0.0)
            case told.Dropped():
                self.follower.dropped(event.entry, event.code)
            case told.Wrote():
                self.learning.queue.put(partial(self.store.wrote, event.listing, event.files))
            case told.Heartbeat():
                self.learning.queue.put(lambda: self.store.heartbeat(self.run))
            case told.End():
                self.learning.ended(END_SECONDS)
                self.graph.flush()
                self.store.end(self.run)

    def settle(self, seconds: float) -> None:
        """Wait, for so long at the most, until the catalog has what was observed; not under the session's lock."""
        self.learning.queue.drain(seconds)

    def _kept(self) -> None:
        self.counters.commits += 1

    def _whole(self, message: Decide | DecideAgain) -> Decide:
        """The request with its plan, which the driver sends once."""
        if isinstance(message, DecideAgain):
            before = self._asked.get(message.query)
            if before is None:
                raise InvalidRequest(f"the plan of query {message.query} is not known")
            plan = replace(before.plan, shared=message.shared)
            message = replace(before, plan=plan, offered=message.offered, unordered=message.unordered)
        self._asked[message.query] = message
        self._asked.move_to_end(message.query)
        if len(self._asked) > MAX_OPEN:
            self._asked.popitem(last=False)
        return message

    def _open(self, asked: Decide, plan: Plan, cores: int, again: bool) -> OpenQuery:
        """The query as one that will run; `again` takes an earlier answer back."""
        number = asked.query
        before = self.queries.take(number) if again else None
        if before is None:
            self.counters.decisions += 1
            position, self._decided = self._decided, self._decided + 1
        else:
            position = before.position
            self.effects.take_back(before)
            self.counters.hits -= len(before.nodes_of(wire.Load, wire.ReadPersisted))
            self.counters.stores -= len(before.nodes_of(wire.Store))
        query = OpenQuery(number, plan, cores, asked, position)
        self.queries.add(query)
        return query

    def _question(
        self, query: OpenQuery, confs: Confs, unordered: frozenset[tuple[int, str]], step: int | None, laps: Laps
    ) -> Question:
        """Everything that is read for the decision."""
        plan = query.plan
        rates = rates_of(self.graph.calibration)
        sweep = self.sweeps.look(query.asked.shape, plan) if query.asked.mode == "apply" else None
        key = query.top.key if query.top else None
        view = self.graph.view(plan, confs.window, key, sweep.before if sweep else None)
        plain = query.baseline = baseline(query.top, query.state, view) if query.top else None
        laps("graph")
        cores = {node.signature.core for node in plan.nodes.values() if node.signature}
        cores |= {shared.signature.core for shared in plan.shared}
        stored: list[Entry] = []
        if cores and confs.recycling:
            grown = {each.entry for node in plan.nodes.values() for each in node.grown}
            bases = {grouping.base for grouping in plan.groupings.values()}
            stored = self.store.catalog.read(lambda connection: entries_on(connection, cores, bases, grown))
        laps("entries")
        run = self.follower.view(query.number, plan, step)
        entries = (*self.effects.persisted.entries(cores), *stored)
        engine = engine_of(query.asked, self.graph.calibration, self.learning.engines)
        if engine is not None:
            query.engine_factor = engine.rates.factor
        return Question(
            plan, view, entries, rates, confs, query.cores, self.store.clock(), run, unordered, query.asked.subquery,
            query.top, plain.seconds if plain else None, self.prices, engine, sweep, self.run.name,
        )  # fmt: skip

    def _answer(self, actions: Iterable[wire.Action], declines: Iterable[Decline]) -> Decision:
        told_of = tuple(NodeDecline(d.node, d.code, d.detail) for d in list(declines)[:MAX_DECLINES])
        weights = self.weights if self.weights and self.weights.fitted != self._divided_by else None
        tied, self._tied = self._tied, ()
        return Decision(tuple(actions), told_of, tuple(self.store.take_sweep()), weights=weights, tied=tied)
