"""One application: its decisions, and what it observes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from spark_regions.costs.calibrate import rates_of
from spark_regions.dag.plan import ROW_ORDER, Plan, parse_plan
from spark_regions.dag.records import Entry
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Confs, Question
from spark_regions.decision.values import Decline
from spark_regions.effects.apply import Effects
from spark_regions.effects.open_queries import OpenQueries, OpenQuery
from spark_regions.errors import InvalidRequest
from spark_regions.learn.events import Learning
from spark_regions.optimizer.number_regions import number_regions
from spark_regions.optimizer.optimizer import FAILED, optimize
from spark_regions.planner.run_follower import RunFollower
from spark_regions.planner.skew import stage_key
from spark_regions.reasons import would_save
from spark_regions.runs.run_planner import Waiting
from spark_regions.skew.history import observed
from spark_regions.skew.key_frequencies import key_frequencies
from spark_regions.store.admission import expired
from spark_regions.store.entries import entries_on
from spark_regions.store.operator_graph import OperatorGraph
from spark_regions.store.store import Run, Store
from spark_regions.wire import actions as wire

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

    def __init__(self, store: Store, graph: OperatorGraph, run: Run, counters: Counters) -> None:
        self.store = store
        self.graph = graph
        self.run = run
        self.counters = counters
        self.effects = Effects(store, run)
        self.follower = RunFollower(graph, self.effects.persisted)
        self.queries = OpenQueries()
        self.learning = Learning(graph, self.effects, self.queries)
        self.ttl_seconds = 0.0
        self._decided = 0

    def decide(self, message: Mapping[str, Any]) -> dict[str, Any] | Waiting:
        """The answer to a `decide` request, or what to wait for before it is asked again.

        :raises InvalidRequest: the message breaks the protocol
        """
        unordered = _unordered(message)
        plan = parse_plan(message).without(unordered)
        confs = Confs.parse(message.get("confs") or {})
        number = int(message.get("query") or 0)
        cores = max(1, int(message.get("parallelism") or 1))
        self.ttl_seconds = confs.ttl_seconds
        step = self.follower.look(plan, confs, cores)
        follow_up = self.follower.follow_up(step, int(message.get("offered") or 0))
        if follow_up is not None:
            return follow_up
        query = self._open(number, plan, cores, message, again=bool(unordered))
        question = self._question(query, confs, unordered, step)
        draft = optimize(question)
        self.counters.errors += sum(each.code == FAILED for each in draft.declines)
        self.follower.decided(draft.run)
        if message.get("mode") == "observe":
            return self._answer([], _observed(draft))
        applied = self.effects.apply(question, draft, query)
        if applied.missed:
            self.follower.planner.failed()
        self.counters.hits += len(query.nodes_of(wire.Load, wire.ReadPersisted))
        self.counters.stores += len(query.nodes_of(wire.Store))
        declines = [Decline(node, ROW_ORDER, name) for node, name in sorted(unordered)]
        answer = self._answer(applied.actions, [*declines, *applied.declines, *draft.declines])
        done = draft if applied.draft is draft else number_regions(question, applied.draft)
        answer["regions"] = dict(done.regions)
        return answer

    def observe(self, event: Mapping[str, Any]) -> None:
        """Take in an `observe` event; an unknown one is ignored, for later versions of the shim."""
        kind = event.get("event")
        runs = self.follower.planner
        if kind == "executed":
            self.learning.executed(event, runs)
        elif kind == "committed":
            self.learning.committed(event, self._kept)
        elif kind in ("abandoned", "invalid"):
            self.counters.abandoned += kind == "abandoned"
            if self.learning.lost(event):
                runs.failed()
        elif kind == "stage":
            history = observed(event)
            if history.whole:
                self.graph.record_stage(*stage_key(event), history.encode())
        elif kind == "keys":
            self.graph.record_stage_keys(*stage_key(event), key_frequencies(event).encode())
        elif kind == "released":
            self.learning.released(event)
        elif kind == "persisted":
            self.follower.resized(str(event["entry"]), int(event.get("bytes") or 0), float(event.get("seconds") or 0))
        elif kind == "dropped":
            self.follower.dropped(str(event["entry"]), event.get("code"))
        elif kind == "heartbeat":
            self.learning.queue.put(lambda: self.store.heartbeat(self.run))
        elif kind == "end":
            self.learning.queue.drain(END_SECONDS)
            self.graph.flush()
            self.store.end(self.run)
        else:
            log.warning("unknown event %r", kind)

    def settle(self, seconds: float) -> None:
        """Wait, for so long at the most, until the catalog has what was observed; not under the session's lock."""
        self.learning.queue.drain(seconds)

    def _kept(self) -> None:
        self.counters.commits += 1

    def is_expired(self, entry: Entry, now: float) -> bool:
        return expired(entry, self.ttl_seconds, now)

    def _open(self, number: int, plan: Plan, cores: int, message: Mapping[str, Any], again: bool) -> OpenQuery:
        """The query as one that will run; `again` takes an earlier answer back."""
        before = self.queries.take(number) if again else None
        if before is None:
            self.counters.decisions += 1
            position, self._decided = self._decided, self._decided + 1
        else:
            position = before.position
            self.effects.take_back(before)
            self.counters.hits -= len(before.nodes_of(wire.Load, wire.ReadPersisted))
            self.counters.stores -= len(before.nodes_of(wire.Store))
        query = OpenQuery(number, plan, cores, message, position)
        self.queries.add(query)
        return query

    def _question(
        self, query: OpenQuery, confs: Confs, unordered: frozenset[tuple[int, str]], step: int | None
    ) -> Question:
        """Everything that is read for the decision."""
        plan = query.plan
        rates = rates_of(self.graph.calibration)
        view = self.graph.view(plan, confs.window)
        cores = {node.signature.core for node in plan.nodes.values() if node.signature}
        cores |= {shared.signature.core for shared in plan.shared}
        stored: list[Entry] = []
        if cores and confs.recycling:
            stored = self.store.catalog.read(lambda connection: entries_on(connection, cores))
        run = self.follower.view(query.number, plan, step)
        entries = (*self.effects.persisted.entries(cores), *stored)
        return Question(plan, view, entries, rates, confs, query.cores, self.store.clock(), run, unordered)

    def _answer(self, actions: Iterable[msgspec.Struct], declines: Iterable[Decline]) -> dict[str, Any]:
        return {
            "actions": msgspec.json.decode(msgspec.json.encode(list(actions))),
            "declines": [{"node": d.node, "code": d.code, "detail": d.detail} for d in list(declines)[:MAX_DECLINES]],
            "sweep": self.store.take_sweep(),
        }


def _unordered(message: Mapping[str, Any]) -> frozenset[tuple[int, str]]:
    """What the driver found of earlier answers about this query: nodes, each with an entry or a DataFrame."""
    try:
        return frozenset((int(node), str(name)) for node, name in message.get("unordered") or ())
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"unordered: {error}") from error


def _observed(draft: Draft) -> list[Decline]:
    """What would be done, as declines, then what would not."""
    would = [("load", node, draft.saved[node]) for node in sorted(draft.loads)]
    would += [("store", candidate.node, max(candidate.benefit, 0.0)) for candidate, _ in draft.stores]
    would += [("share", share.nodes[0], share.saving) for share in draft.shares]
    return [Decline(node, "OBSERVE_ONLY", would_save(kind, saving)) for kind, node, saving in would] + [*draft.declines]
