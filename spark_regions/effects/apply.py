"""A draft carried out: the only side effects of a decision, and the actions that the driver is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from spark_regions.costs.policy import COLUMNAR_READS
from spark_regions.dag.records import Entry
from spark_regions.decision.draft import Draft
from spark_regions.decision.question import Question
from spark_regions.decision.values import Decline, MaterializationCandidate, PlannedMaterialization
from spark_regions.effects.open_queries import Loaded, OpenQuery
from spark_regions.effects.pending_writes import PendingWrite, PendingWrites
from spark_regions.effects.persisted import PersistedResult, PersistedResults
from spark_regions.errors import CatalogBusy
from spark_regions.matching.subsumes import REFRESHED, ROLLED_UP, Match
from spark_regions.store.admission import make_room, reservation
from spark_regions.store.store import Admit, Run, Store
from spark_regions.wire import actions as wire
from spark_regions.wire.actions import Action

ADMIT_SECONDS = 0.15
"""How long a decision waits for another planner's write; past the usual deadline, nobody would read the answer."""


@dataclass(frozen=True, slots=True)
class Applied:
    """
    :param declines: what was chosen and could not be had
    :param draft: what was
    :param missed: whether something is not kept that the plan of the run relies on
    """

    actions: tuple[Action, ...]
    declines: tuple[Decline, ...]
    draft: Draft
    missed: bool


class Effects:
    """Leases, reservations and persisted results of one application. Called under the session's lock."""

    def __init__(self, store: Store, run: Run) -> None:
        self.store = store
        self.run = run
        self.persisted = PersistedResults()
        self.writes = PendingWrites()
        self.worths: Mapping[str, float] = {}  # net benefit of what is not stored, by lineage

    def apply(self, question: Question, draft: Draft, query: OpenQuery) -> Applied:
        """Take leases, reserve room, keep the ledger of what is persisted."""
        reads, lost = self._loads_and_stores(question, draft, query)
        actions: list[Action] = [*self._reads_of_persisted(draft), *reads]
        if draft.run is not None:
            # First, since it makes room.
            actions = self._released(actions, draft.run.finished)
        missed = False
        for wanted in draft.keeps:
            more = list(self._keep(question, wanted))
            missed |= not any(isinstance(action, wire.Persist) for action in more)
            actions += more
        for candidate in draft.persists:
            actions += self._persist(question, candidate)
        for share in draft.shares:
            # Each place saves its part, so that the sum over the actions is the group's.
            part = round(share.saving / len(share.nodes), 4)
            actions += [wire.Share(n, share.nodes, part, share.reason, share.detail) for n in share.nodes]
        query.actions = (*draft.asked(actions), *actions)  # what an engine computes is stored behind it
        made = query.nodes_of(wire.Load, wire.ReadPersisted, wire.Store, wire.Persist)
        return Applied(query.actions, tuple(lost), draft.only(made), missed)

    def take_back(self, query: OpenQuery) -> None:
        """Undo an answer that the driver did not apply, since rows would have come in another order."""
        stored = [action.entry for action in query.actions if isinstance(action, wire.Store)]
        for entry in stored:
            self.writes.dropped(entry)
        for action in query.actions:
            if isinstance(action, wire.Persist):
                self.persisted.drop(action.entry)
        if stored or query.loads:
            self.store.give_up(self.run, [query.number], ADMIT_SECONDS)

    def _loads_and_stores(
        self, question: Question, draft: Draft, query: OpenQuery
    ) -> tuple[list[Action], list[Decline]]:
        loads = [
            (draft.matches[node], reason)
            for node, reason in sorted(draft.loads.items())
            if not draft.matches[node].entry.persisted
        ]
        budget = question.confs.max_bytes
        if budget <= 0:
            lost = [Decline(candidate.node, "OVER_BUDGET", "no bytes") for candidate, _ in draft.stores]
            stores = []
        else:
            lost = []
            stores = [(c, reason, self._entry(question, draft, c, reason, query)) for c, reason in draft.stores]
        unreserved = [each for each in stores if each[0].in_memory]
        stores = [each for each in stores if not each[0].in_memory]
        limited = sum(candidate.max_overhead(0.0) is not None for candidate, _, _ in stores)
        spare = sum(max(route.saving, 0.0) for route in draft.routes) / max(limited, 1)
        actions: list[Action] = [
            self._store(question, query, c, reason, entry, entry.bytes, 0.0) for c, reason, entry in unreserved
        ]
        if not loads and not stores:
            return actions, lost
        try:
            gone, refused, reserved = self.store.admit(
                [(match.entry.id, self.run.application, query.number) for match, _ in loads],
                [(entry, _room(entry, candidate, budget, question.now, self.worths)) for candidate, _, entry in stores],
                budget,
                ADMIT_SECONDS,
                {name for _, name in question.unordered},
            )
        except CatalogBusy as error:
            return actions, [*lost, Decline(question.plan.root, "CATALOG_BUSY", str(error)[:200])]
        for match, reason in loads:
            if match.entry.id in gone:
                lost.append(Decline(match.node, "ENTRY_MISSING", match.entry.id))
            else:
                actions.append(_load(question, draft, query, match, reason))
        for candidate, reason, entry in stores:
            if entry.id in refused:
                lost.append(Decline(candidate.node, refused[entry.id], f"{entry.bytes} bytes"))
            else:
                actions.append(self._store(question, query, candidate, reason, entry, reserved[entry.id], spare))
        return actions, lost

    def _entry(
        self, question: Question, draft: Draft, candidate: MaterializationCandidate, reason: str, query: OpenQuery
    ) -> Entry:
        whole = draft.least_seconds.get(candidate.node)
        seconds = whole.value if whole else 0.0
        if whole is None or candidate.ref is not None:
            seconds = max(seconds, candidate.recompute.value)
        return self.store.new_entry(
            self.writes.new_entry(question, candidate, seconds, reason, query.number, self.run.application)
        )  # fmt: skip

    def _store(
        self,
        question: Question,
        query: OpenQuery,
        candidate: MaterializationCandidate,
        reason: str,
        entry: Entry,
        reserved: int,
        spare: float,
    ) -> wire.Store:
        row_bytes = 0.0 if candidate.first_use else candidate.bytes / question.rates.stored_ratio
        overhead = candidate.max_overhead(question.confs.first_use_overhead)
        write = PendingWrite(
            entry.id, entry.lineage, query.number, candidate.node, query.cores, row_bytes, reserved, query.decided,
            (entry, question.confs.max_bytes) if candidate.in_memory else None,
            question.family(candidate.node, reason),
        )  # fmt: skip
        self.writes.add(write, uncosted=candidate.first_use, planned=reason == "PLANNED")
        return wire.Store(
            candidate.node, candidate.ref, entry.id, entry.location, entry.columns, reserved, overhead,
            round(max(candidate.benefit, 0.0), 4), reason, candidate.in_memory, candidate.detail, spare,
        )  # fmt: skip

    def _reads_of_persisted(self, draft: Draft) -> Iterator[Action]:
        for node in sorted(draft.loads):
            match = draft.matches[node]
            if match.entry.persisted:
                self.persisted.touch(match.entry.id)
                yield wire.ReadPersisted(
                    node, match.entry.id, round(draft.saved[node], 4), "BENEFIT", rule=match.rule,
                    implied=tuple(sorted(match.implied)),
                )  # fmt: skip

    def _keep(self, question: Question, wanted: PlannedMaterialization) -> Iterator[Action]:
        """Persist a planned result."""
        size = int(question.rates.level_bytes(wanted.bytes, True))
        result = PersistedResult("", wanted.signature, wanted.rows, size, wanted.recompute, wanted.key, wanted.bytes)
        return self._persisting(question, wanted, result, size, wanted.saving, "PLANNED")

    def _persist(self, question: Question, candidate: MaterializationCandidate) -> Iterator[Action]:
        """Persist what only this application can use."""
        rows = candidate.bytes / max(len(candidate.signature.columns), 1)
        result = PersistedResult("", candidate.signature, rows, int(candidate.bytes), candidate.recompute.value)
        room = reservation(candidate.bytes, question.confs.persist_max_bytes)
        why = "SWEEP" if candidate.iteration else "SKI_RENTAL", candidate.detail
        return self._persisting(question, candidate, result, room, candidate.benefit, *why)

    def _persisting(
        self,
        question: Question,
        where: MaterializationCandidate | PlannedMaterialization,
        result: PersistedResult,
        room: int,
        saving: float,
        reason: str,
        detail: str = "",
    ) -> Iterator[Action]:
        """Make room for a result, and persist it if there is some."""
        result.predicates = question.plan.predicates_of(result.signature.conjuncts)
        name, released = self.persisted.keep(result, question.confs.persist_max_bytes)
        yield from (wire.Unpersist(each) for each in released)
        if name is not None:
            kept = (where.node, where.ref, name, where.signature.columns, "MEMORY_AND_DISK", room)
            columnar = isinstance(where, PlannedMaterialization) and where.reads >= COLUMNAR_READS
            yield wire.Persist(*kept, round(saving, 4), reason, detail=detail, columnar=columnar)

    def _released(self, actions: Sequence[Action], finished: Collection[object]) -> list[Action]:
        """The actions, with what no later query reads released: at once, or after this query if it reads it."""
        over = [each.id for each in self.persisted.kept if each.planned in finished]
        used = {each.entry for each in actions if isinstance(each, wire.ReadPersisted)}
        found: list[Action] = [
            msgspec.structs.replace(action, release=True)
            if isinstance(action, wire.ReadPersisted) and action.entry in over
            else action
            for action in actions
        ]
        for name in over:
            (self.persisted.leave if name in used else self.persisted.drop)(name)
        return [*found, *(wire.Unpersist(name) for name in over if name not in used)]


def _load(question: Question, draft: Draft, query: OpenQuery, match: Match, reason: str) -> wire.Load:
    entry, saved = match.entry, draft.saved[match.node]
    instead = saved + match.seconds
    before = query.loads.get(entry.id, Loaded(family=question.family(match.node, entry.reason)))
    query.loads[entry.id] = before.also(match.node, saved, instead)
    merged = entry.grouping if match.rule == ROLLED_UP else None
    refreshed = match.rule == REFRESHED
    conjuncts = entry.conjuncts.union(merged.conjuncts) if merged else entry.conjuncts
    return wire.Load(
        match.node, entry.id, entry.location, entry.columns, tuple(sorted(conjuncts)), round(saved, 4),
        round(max(0.0, instead - question.rates.read_overhead_seconds), 4), reason, match.rule,
        tuple(sorted(match.implied)), refreshed or merged is not None, refreshed, dict(match.functions),
    )  # fmt: skip


def _room(
    entry: Entry, candidate: MaterializationCandidate, budget: int, now: float, worths: Mapping[str, float]
) -> Admit:
    """What is evicted for an entry: what has less net benefit per byte, or saves less where the workload lacks it."""
    gain = worths.get(entry.lineage, max(candidate.benefit, 0.0) * (max(candidate.uses, 0.0) + 1))

    def room(known: list[Entry], leased: frozenset[str]) -> Iterable[str] | None:
        return make_room(known, entry.bytes, gain / max(entry.bytes, 1), budget, now, leased).evict

    return room
