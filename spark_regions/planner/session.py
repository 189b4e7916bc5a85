"""One application: its decisions carried out, its observations taken in."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_regions.costs.calibrate import observed_rate, observed_ratio, rates_of
from spark_regions.costs.rates import Rates
from spark_regions.dag.plan import ROW_ORDER, Plan, parse_plan
from spark_regions.dag.records import Entry
from spark_regions.errors import CatalogBusy, InvalidRequest, StrategyUnknown
from spark_regions.planner.ahead import Ahead
from spark_regions.planner.decide import MAX_DECLINES, Confs, Proposal, propose
from spark_regions.planner.graph import OperatorGraph
from spark_regions.planner.horizon import measured_of, with_carried
from spark_regions.planner.keeps import meets, planned_keeps, stored_point
from spark_regions.planner.observe import learn
from spark_regions.planner.region_note import region_note
from spark_regions.planner.skew import stage_key
from spark_regions.reasons import would_save
from spark_regions.recycle.admission import contradicts, expired, make_room, reservation, supersedes
from spark_regions.recycle.horizon.program import PERSIST, STORE
from spark_regions.recycle.horizon.steps import encode
from spark_regions.recycle.points import Decline, Point
from spark_regions.recycle.repeats import Share, run_of
from spark_regions.skew.history import observed
from spark_regions.skew.key_frequencies import key_frequencies
from spark_regions.stats.estimate import Estimate
from spark_regions.store.entries import entries_on
from spark_regions.store.store import Admit, Run, Store

log = logging.getLogger("spark_regions.planner")

REMEMBERED_QUERIES = 256
MAX_STEPS = 500
"""Queries of one run that are kept for the next one; whoever asks more is no batch job."""
OUTGROWN = 4
"""Room for a result that did not fit into what was reserved for it, as a multiple of that."""
ADMIT_SECONDS = 0.15
"""How long a decision waits for another planner's write; past the usual deadline, nobody would read the answer."""
UNUSED_SECONDS = 60.0
NEVER_RAN_SECONDS = 6 * 3600.0


@dataclass(slots=True)
class Remembered:
    """What was decided for a query, until it has run.

    :param loads: entry to (nodes, predicted saving, seconds without the load), of all places together
    :param message: the request, to be kept as a step of this run
    :param position: how many queries were decided before
    :param shared: nodes that one computation stands in for
    :param recalled: nodes that are read from the block manager
    :param widened: nodes that carry columns for other queries
    :param alone: whether nothing is loaded, stored or persisted in it
    :param actions: the answer's, as long as the driver may still find that they change the order of rows
    """

    plan: Plan
    parallelism: int
    message: Mapping[str, Any]
    position: int
    loads: dict[str, tuple[tuple[int, ...], float, float]] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    recalled: set[int] = field(default_factory=set)
    widened: set[int] = field(default_factory=set)
    alone: bool = True
    actions: list[dict[str, Any]] = field(default_factory=list)
    decided: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Writing:
    """An entry that is being written.

    :param row_bytes: of its rows, as expected
    :param reserved: bytes that its files may take
    """

    lineage: str
    row_bytes: float
    reserved: int


@dataclass(frozen=True, slots=True)
class Unpriced:
    """An entry that is written before anything was known of it."""

    query: int
    node: int
    parallelism: int
    decided: float


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
        self.ahead = Ahead(graph)
        self.ttl_seconds = 0.0
        self._decided = 0
        self._queries: OrderedDict[int, Remembered] = OrderedDict()
        self._writing: dict[str, Writing] = {}
        self._outgrown: dict[str, int] = {}
        self._over: dict[int, float] = {}
        self._held: dict[str, Unpriced] = {}
        self._planned: set[str] = set()

    def decide(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a `decide` request.

        :raises InvalidRequest: the message breaks the protocol
        """
        unordered = _unordered(message)
        plan = parse_plan(message).without(unordered)
        confs = Confs.parse(message.get("confs") or {})
        query = int(message.get("query") or 0)
        parallelism = max(1, int(message.get("parallelism") or 1))
        self.ttl_seconds = confs.ttl_seconds
        rates = rates_of(self.graph.calibration)
        question = self.ahead.question(message, plan, confs, parallelism)
        if question is not None:
            return question
        before = self._take_back(query) if unordered else None
        position = before.position if before else self._decided
        if before is None:
            self.counters.decisions += 1
            self._decided += 1
        remembered = self._remember(query, Remembered(plan, parallelism, message, position))
        view = self.graph.view(plan, confs.window)
        cores = {node.signature.core for node in plan.nodes.values() if node.signature}
        cores |= {shared.signature.core for shared in plan.shared}
        entries = self.store.catalog.read(lambda connection: entries_on(connection, cores)) if cores else []
        advice = self.ahead.advise(query, plan, confs, rates, parallelism)
        planned = advice if advice and advice.chosen is not None else None
        entries += self.ahead.persists.entries(cores)
        try:
            recorded = planned.seconds if planned else None
            proposal = propose(plan, view, entries, rates, confs, parallelism, self.store.clock(), recorded, unordered)
        except StrategyUnknown as error:
            return self._answer([], [Decline(plan.root, "UNKNOWN_STRATEGY", str(error))])
        if message.get("mode") == "observe":
            return self._answer([], _observed(proposal) + proposal.declines)
        keeps, refused = planned_keeps(plan, proposal.choice, planned)
        declines = refused + [Decline(node, ROW_ORDER, name) for node, name in sorted(unordered)]
        proposal.shares = [share for share in proposal.shares if not meets(plan, share, keeps)]
        stores = [(stored_point(found, rates, parallelism), "PLANNED") for found in keeps if found.level == STORE]
        narrowed = [
            (self.ahead.narrowed(point) if planned else point, reason) for point, reason in proposal.choice.stores
        ]
        proposal.choice = replace(proposal.choice, stores=(*narrowed, *stores))
        replaced = {name for _, name in unordered}
        actions, lost = self._act(proposal, remembered, query, confs, rates, replaced)
        declines += lost
        for found in keeps:
            if found.level == PERSIST:
                actions += self.ahead.keep(found, confs)
        for point in proposal.persists:
            actions += self.ahead.rent(point, confs)
        actions = self.ahead.released(actions, planned)
        remembered.alone = not actions
        for share in proposal.shares:
            remembered.shared.update(share.nodes)
            actions += _share(share)
        made = [a["node"] for a in actions if a["kind"] in ("store", "persist") and a.get("ref") is not None]
        remembered.widened |= {below for node in made for below in plan.below(node)}
        remembered.recalled |= {a["node"] for a in actions if a["kind"] in ("recall", "persist")}
        remembered.actions = actions
        answer = self._answer(actions, declines + proposal.declines)
        answer["regions"] = region_note(plan, proposal, actions, planned, parallelism)
        return answer

    def observe(self, event: Mapping[str, Any]) -> None:
        """Take in an `observe` event; an unknown one is ignored, for later versions of the shim."""
        kind = event.get("event")
        if kind == "executed":
            self._executed(event)
        elif kind == "committed":
            self._committed(event)
        elif kind in ("abandoned", "invalid"):
            self.counters.abandoned += kind == "abandoned"
            if str(event["entry"]) in self._planned:
                self.ahead.horizon.failed()
            writing = self._writing.pop(str(event["entry"]), None)
            if writing is not None and event.get("code") == "OVER_BUDGET":
                self._outgrew(writing)
            self._held.pop(str(event["entry"]), None)
            self.store.abandon(str(event["entry"]), f"{event.get('code', '')} {event.get('detail', '')}".strip()[:1000])
        elif kind == "stage":
            history = observed(event)
            if history.whole:
                self.graph.record_stage(*stage_key(event), history.encode())
        elif kind == "keys":
            self.graph.record_stage_keys(*stage_key(event), key_frequencies(event).encode())
        elif kind == "released":
            query = event.get("query")
            self.store.release(self.run, str(event["entry"]), None if query is None else int(query))
        elif kind == "persisted":
            self.ahead.resized(str(event["entry"]), int(event.get("bytes") or 0), float(event.get("seconds") or 0))
        elif kind == "dropped":
            self.ahead.dropped(str(event["entry"]), event.get("code"))
        elif kind == "heartbeat":
            self.store.heartbeat(self.run)
        elif kind == "end":
            self.graph.flush()
            self.store.end(self.run)
        else:
            log.warning("unknown event %r", kind)

    def _outgrew(self, writing: Writing) -> None:
        """Its rows are wider, or compress worse, than expected: how much is known only when all of it is there."""
        self._outgrown[writing.lineage] = OUTGROWN * writing.reserved
        least = observed_ratio(writing.reserved, writing.row_bytes)
        if least is not None and least > rates_of(self.graph.calibration).stored_ratio:
            self.graph.blend("ratio", least)

    def is_expired(self, entry: Entry, now: float) -> bool:
        return expired(entry, self.ttl_seconds, now)

    def take_unused(self) -> list[int]:
        """Queries that are over, so that what they reserved or leased and did not use can be given up.

        Over are those that ended a while ago (a commit may be on its way until then), and those that were explained
        only, or decided too late: they are never reported to have run.
        """
        now = time.monotonic()
        for query, remembered in list(self._queries.items()):
            if now - remembered.decided > NEVER_RAN_SECONDS:
                self._over[query] = now - UNUSED_SECONDS
                del self._queries[query]
        over = [query for query, since in self._over.items() if now - since >= UNUSED_SECONDS]
        for query in over:
            del self._over[query]
        return over

    def _remember(self, query: int, remembered: Remembered) -> Remembered:
        self._queries[query] = remembered
        self._queries.move_to_end(query)
        while len(self._queries) > REMEMBERED_QUERIES:
            self._over[self._queries.popitem(last=False)[0]] = time.monotonic()
        return remembered

    def _take_back(self, query: int) -> Remembered | None:
        """Undo an answer that the driver did not apply, since rows would have come in another order."""
        before = self._queries.pop(query, None)
        if before is None:
            return None
        stored = [str(action["entry"]) for action in before.actions if action["kind"] == "store"]
        for name in stored:
            self._writing.pop(name, None)
            self._held.pop(name, None)
            self._planned.discard(name)
        for action in before.actions:
            if action["kind"] == "persist":
                self.ahead.persists.drop(str(action["entry"]))
        if stored or before.loads:
            self.store.give_up(self.run, [query], ADMIT_SECONDS)
        self.counters.hits -= sum(action["kind"] in ("load", "recall") for action in before.actions)
        self.counters.stores -= len(stored)
        return before

    def _act(
        self,
        proposal: Proposal,
        remembered: Remembered,
        query: int,
        confs: Confs,
        rates: Rates,
        replaced: Collection[str],
    ) -> tuple[list[dict[str, Any]], list[Decline]]:
        chosen = [(name, proposal.loads[name], reason) for name, reason in sorted(proposal.choice.loads.items())]
        loads = [each for each in chosen if not each[1].entry.persisted]
        recalls = [
            self.ahead.recall(name, match, proposal.saved[name]) for name, match, _ in chosen if match.entry.persisted
        ]
        self.counters.hits += len(recalls)
        stores = [
            (point, reason, self._new_entry(point, reason, query, remembered.plan, confs, proposal.fresh))
            for point, reason in proposal.choice.stores
            if confs.max_bytes > 0
        ]
        if not loads and not stores:
            return recalls, [Decline(point.node, "OVER_BUDGET", "no bytes") for point, _ in proposal.choice.stores]
        try:
            gone, refused, reserved = self.store.admit(
                [(match.entry.id, self.run.application, query) for _, match, _ in loads],
                [(entry, _room(entry, point, confs.max_bytes, self.store.clock())) for point, _, entry in stores],
                confs.max_bytes,
                ADMIT_SECONDS,
                replaced,
            )
        except CatalogBusy as error:
            return recalls, [Decline(remembered.plan.root, "CATALOG_BUSY", str(error)[:200])]
        actions: list[dict[str, Any]] = recalls
        declines: list[Decline] = []
        for name, match, reason in loads:
            if match.entry.id in gone:
                declines.append(Decline(name, "ENTRY_MISSING", match.entry.id))
                continue
            fresh = proposal.saved[name] + match.seconds
            places, predicted, before = remembered.loads.get(match.entry.id, ((), 0.0, 0.0))
            remembered.loads[match.entry.id] = ((*places, name), predicted + proposal.saved[name], before + fresh)
            self.counters.hits += 1
            actions.append(
                {
                    "kind": "load",
                    "node": name,
                    "entry": match.entry.id,
                    "location": match.entry.location,
                    "columns": list(match.entry.columns),
                    "conjuncts": sorted(match.entry.conjuncts),
                    "saving": round(proposal.saved[name], 4),
                    "instead": round(fresh - rates.read_overhead_seconds, 4),
                    "reason": reason,
                }
            )
        for point, reason, entry in stores:
            if entry.id in refused:
                declines.append(Decline(point.node, refused[entry.id], f"{entry.bytes} bytes"))
                continue
            self._writing[entry.id] = Writing(entry.lineage, point.bytes / rates.stored_ratio, reserved[entry.id])
            self.counters.stores += 1
            if reason == "PLANNED":
                self._planned.add(entry.id)
            if point.held:
                self._held[entry.id] = Unpriced(query, point.node, remembered.parallelism, remembered.decided)
            actions.append(
                {
                    "kind": "store",
                    "node": point.node,
                    "ref": point.ref,
                    "entry": entry.id,
                    "location": entry.location,
                    "columns": list(entry.columns),
                    "maxBytes": reserved[entry.id],
                    "maxOverhead": confs.first_use_overhead if point.held else None,
                    "saving": round(max(point.benefit, 0.0), 4),
                    "reason": reason,
                }
            )
        return actions, declines

    def _new_entry(
        self, point: Point, reason: str, query: int, plan: Plan, confs: Confs, fresh: Mapping[int, Estimate]
    ) -> Entry:
        # Without an estimate, a part of the budget: strategy always has other points of the plan to make room for.
        unknown = max(confs.max_bytes // (4 if point.held else 16), 1)
        size = reservation(point.bytes, confs.max_bytes) if point.bytes else unknown
        size = min(max(size, self._outgrown.get(point.signature.lineage, 0)), confs.max_bytes)
        operator = plan.nodes[point.node].operator
        # Without any load, since what is loaded now may be evicted before this entry is.
        whole = fresh.get(point.node)
        seconds = whole.value if whole else 0.0
        if whole is None or point.ref is not None:
            seconds = max(seconds, point.recompute.value)
        draft = Entry(
            id="", lineage=point.signature.lineage, core=point.signature.core, conjuncts=point.signature.conjuncts,
            # A column that the plan gives twice is written once.
            columns=tuple(dict.fromkeys(point.signature.columns)), location="", state="pending", rows=0, bytes=size,
            created=0.0, used=0.0,
            recompute_seconds=seconds, application=self.run.application, query=query,
            operator=operator[:128], reason=reason,
        )  # fmt: skip
        return self.store.new_entry(draft)

    def _answer(self, actions: list[dict[str, Any]], declines: Iterable[Decline]) -> dict[str, Any]:
        return {
            "actions": actions,
            "declines": [{"node": d.node, "code": d.code, "detail": d.detail} for d in list(declines)[:MAX_DECLINES]],
            "sweep": self.store.take_sweep(),
        }

    def _executed(self, event: Mapping[str, Any]) -> None:
        query = int(event.get("query") or 0)
        remembered = self._queries.pop(query, None)
        ran = {str(load["entry"]): load for load in event.get("loads") or ()}
        if event.get("outcome") == "ok":
            known = remembered.loads if remembered else {}
            loaded = {node for name in ran if name in known for node in known[name][0]}
            # How often Spark computes what is shared now was counted when it was not.
            partial = loaded | remembered.shared | remembered.recalled if remembered else loaded
            lesson = learn(event, remembered.plan if remembered else None, partial)
            self.graph.record(lesson.fill, lesson.private, lesson.demanded)
            if remembered is not None:
                self._step(query, event, remembered, partial)
            if remembered is not None and remembered.alone and remembered.plan.repeated:
                run = run_of(remembered.plan, bool(remembered.shared), float(event.get("seconds") or 0.0), time.time())
                self.graph.record(lambda batch: batch.add_variant(run), (), ())
            self._price(query, lesson.totals)
            for name, load in ran.items():
                self._loaded(name, load, remembered)
        if remembered is not None:
            for name in remembered.loads:
                self.store.release(self.run, name, query)
        self._over[query] = time.monotonic()

    def _step(self, query: int, event: Mapping[str, Any], remembered: Remembered, partial: set[int]) -> None:
        """Keep the query as a step of this run."""
        if remembered.position < MAX_STEPS:
            below = {each for n in partial if n in remembered.plan.nodes for each in remembered.plan.below(n)}
            seen = measured_of(event, remembered.parallelism, below, remembered.widened)
            body = encode(remembered.message, with_carried(seen, self.ahead.horizon.carried(query)))
            if body is not None:
                self.graph.record_step(remembered.position, body)
        self.ahead.horizon.ran(query)

    def _price(self, query: int, totals: Mapping[int, float]) -> None:
        """What computing the query's entries took, for those that were stored unseen."""
        for name, held in list(self._held.items()):
            if held.query == query:
                del self._held[name]
                if held.node in totals:
                    self.store.price(name, totals[held.node] / held.parallelism)

    def _loaded(self, name: str, load: Mapping[str, Any], remembered: Remembered | None) -> None:
        seconds, size = load.get("seconds"), load.get("bytes")
        rates = rates_of(self.graph.calibration)
        if seconds is None:
            return
        if size:
            rate = observed_rate(float(size), float(seconds), rates.read_overhead_seconds)
            if rate is not None:
                self.graph.blend("read", rate, float(size), rates.read_bytes_per_second)
        if remembered is None or name not in remembered.loads:
            return
        places, predicted, fresh = remembered.loads[name]
        overhead = rates.read_overhead_seconds * len(places)
        measured = fresh - (float(seconds) / remembered.parallelism + overhead)
        self.store.used(name, predicted, measured, contradicts(predicted, measured))

    def _committed(self, event: Mapping[str, Any]) -> None:
        name = str(event["entry"])
        size = int(event.get("bytes") or 0)
        outcome = self.store.commit(
            name, int(event.get("rows") or 0), size, float(event.get("seconds") or 0), supersedes
        )
        if outcome:
            log.warning("entry %s was written and dropped: %s", name, outcome)
        else:
            self.counters.commits += 1
            held = self._held.get(name)
            if held is not None:
                # The query may not have been reported yet, and the next one is to know that loading pays.
                wall = time.monotonic() - held.decided
                self.store.price(name, max(0.0, wall - float(event.get("seconds") or 0) / held.parallelism))
        writing = self._writing.pop(name, None)
        ratio = None if writing is None else observed_ratio(size, writing.row_bytes)
        if ratio is not None:
            self.graph.blend("ratio", ratio)
        seconds = float(event.get("seconds") or 0)
        rate = observed_rate(float(size), seconds, rates_of(self.graph.calibration).write_overhead_seconds)
        if rate is not None:
            self.graph.blend("write", rate, float(size))


def _room(entry: Entry, point: Point, budget: int, now: float) -> Admit:
    gain = max(point.benefit, 0.0) * (max(point.uses, 0.0) + 1)
    density = gain / max(entry.bytes, 1)

    def room(known: list[Entry], leased: frozenset[str]) -> Iterable[str] | None:
        return make_room(known, entry.bytes, density, budget, now, leased).evict

    return room


def _unordered(message: Mapping[str, Any]) -> frozenset[tuple[int, str]]:
    """What the driver found of earlier answers about this query: nodes, each with an entry or a DataFrame."""
    try:
        return frozenset((int(node), str(name)) for node, name in message.get("unordered") or ())
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"unordered: {error}") from error


def _share(share: Share) -> list[dict[str, Any]]:
    # Each place saves its part, so that the sum over the actions is the group's.
    saving = round(share.saving / len(share.nodes), 4)
    common = {"kind": "share", "group": list(share.nodes), "saving": saving}
    common |= {"reason": share.reason, "detail": share.detail}
    return [common | {"node": node} for node in share.nodes]


def _observed(proposal: Proposal) -> list[Decline]:
    declines = [
        Decline(name, "OBSERVE_ONLY", would_save("load", proposal.saved[name]))
        for name in sorted(proposal.choice.loads)
    ]
    return (
        declines
        + [
            Decline(point.node, "OBSERVE_ONLY", would_save("store", max(point.benefit, 0.0)))
            for point, _ in proposal.choice.stores
        ]
        + [Decline(share.nodes[0], "OBSERVE_ONLY", would_save("share", share.saving)) for share in proposal.shares]
    )
