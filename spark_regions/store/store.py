"""The recycling cache: records and files together."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec
import sqlalchemy as sa

from spark_regions.dag.records import Entry
from spark_regions.errors import StoreError
from spark_regions.stats.frequency import fading
from spark_regions.store import entries as records
from spark_regions.store.admission import make_room, next_to_go
from spark_regions.store.catalog import Catalog
from spark_regions.store.files import delete_entry, leftovers
from spark_regions.store.opening import StoreLocation
from spark_regions.store.schema import ENTRY, RUN
from spark_regions.store.sources import keep_sources, sources_of
from spark_regions.store.written import keep_written, written_of
from spark_regions.wire.messages import Growth, WrittenFiles

LEFTOVER_SECONDS = 3600.0
MOST_ENTRIES = 100_000
"""Beyond, those of least benefit per byte go: small ones would fill the catalog before they fill the budget."""
ROOMY = 4
"""A reservation may be so many times as large as it has to be, as far as there is room."""

Admit = Callable[[list[Entry], frozenset[str]], "Iterable[str] | None"]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Run:
    """This application in the catalog."""

    id: int
    application: str
    name: str


class Store:
    """Entries of one namespace.

    Files of a local store are deleted here; locations elsewhere are collected in `sweep` for the driver.
    """

    def __init__(self, catalog: Catalog, where: StoreLocation, clock: Clock = time.time) -> None:
        self.catalog = catalog
        self.where = where
        self.clock = clock
        self.sweep: list[str] = []
        self.evictions = 0
        self.host = socket.gethostname()

    def begin(self, application: str, name: str) -> Run:
        """Register an application; the same one again gets its run back."""
        now = self.clock()

        def work(connection: sa.Connection) -> int:
            found = connection.execute(sa.select(RUN.c.id).where(RUN.c.application == application)).scalar()
            owner = {"heartbeat": now, "ended": None, "owner_host": self.host, "owner_pid": os.getpid()}
            if found is not None:
                connection.execute(sa.update(RUN).where(RUN.c.id == found).values(**owner))
                return int(found)
            values = {"application": application[:256], "name": name[:256], "started": now, "queries": 0, **owner}
            made = connection.execute(sa.insert(RUN).values(**values)).inserted_primary_key
            return int(made[0]) if made else 0

        return Run(self.catalog.write(work), application, name)

    def end(self, run: Run) -> None:
        """The application ended regularly: its leases and reservations too."""
        now = self.clock()

        def work(connection: sa.Connection) -> list[str]:
            connection.execute(sa.update(RUN).where(RUN.c.id == run.id).values(ended=now, heartbeat=now))
            records.release(connection, run.application)
            query = sa.select(ENTRY.c.id).where(ENTRY.c.application == run.application, ENTRY.c.state == "pending")
            abandoned = list(connection.execute(query).scalars())
            records.mark_evicted(connection, abandoned, "OWNER_GONE")
            return abandoned

        self._remove_unleased(self.catalog.write(work))

    def new_entry(self, entry: Entry) -> Entry:
        """A pending record's values: id, location, owner."""
        name = "e" + uuid.uuid4().hex
        now = self.clock()
        location = f"{self.where.data}/{name}"
        return replace(
            entry, id=name, location=location, state="pending", created=now, used=now, owner_host=self.host,
            owner_pid=os.getpid(),
        )  # fmt: skip

    def admit(
        self,
        leases: Iterable[tuple[str, str, int]],
        reservations: Iterable[tuple[Entry, Admit]],
        budget: int,
        seconds: float,
        replaced: Collection[str] = (),
    ) -> tuple[frozenset[str], dict[str, str], dict[str, int]]:
        """Take leases and reserve bytes in one transaction: those of each entry, and more where room is left.

        :param leases: (entry, application, query)
        :param reservations: with a function that names what has to be evicted for it, or None where there is no room
        :param budget: bytes that all entries together may take, reservations and files not yet deleted included
        :param replaced: entries that are no use to the query, so that one with their rows may be stored beside them
        :returns: entries whose lease failed, reservations that failed with their reason code, bytes of the others
        """
        wanted = list(reservations)
        reads = list(leases)
        now = self.clock()

        def work(connection: sa.Connection) -> tuple[set[str], dict[str, str], dict[str, int], list[str]]:
            gone = {
                name
                for name, application, query in reads
                if not records.lease(connection, name, application, query, now)
            }
            refused: dict[str, str] = {}
            evicted: list[str] = []
            reserved: dict[str, int] = {}
            if wanted:
                used = records.used_bytes(connection)
                leased: frozenset[str] | None = None
                for entry, room in wanted:
                    rivals = records.entries_on(connection, [entry.core])
                    if any(_same_result(entry, other) and other.id not in replaced for other in rivals):
                        refused[entry.id] = "PENDING_ELSEWHERE"
                        continue
                    if used + entry.bytes <= budget:
                        records.insert(connection, entry)
                        reserved[entry.id] = entry.bytes
                        used += entry.bytes
                        continue
                    leased = records.leased(connection, now) if leased is None else leased
                    victims = room(records.all_entries(connection), leased)
                    if victims is None:
                        refused[entry.id] = "OVER_BUDGET"
                        continue
                    out = set(victims)
                    records.delete(connection, out)
                    evicted.extend(out)
                    records.insert(connection, entry)
                    reserved[entry.id] = entry.bytes
                    used = records.used_bytes(connection)
                reserved = _roomy(reserved, budget - used)
                for name, size in reserved.items():
                    records.update(connection, name, bytes=size)
            return gone, refused, reserved, evicted

        gone, refused, reserved, evicted = self.catalog.write(work, seconds)
        self.evictions += len(evicted)
        self._delete_files(evicted)
        return frozenset(gone), refused, reserved

    def admit_late(self, entry: Entry, budget: int) -> str:
        """Take in an entry whose files are there; where it is refused, they are deleted.

        :returns: "" or the reason code
        """
        now = self.clock()

        def room(known: list[Entry], leased: frozenset[str]) -> Iterable[str] | None:
            gained = entry.recompute_seconds / max(entry.bytes, 1)
            return make_room(known, entry.bytes, gained, budget, now, leased).evict

        _, refused, _ = self.admit((), [(entry, room)], budget, self.catalog.busy_seconds)
        if entry.id in refused:
            self._delete_files([entry.id])
        return refused.get(entry.id, "")

    def commit(
        self,
        name: str,
        rows: int,
        size: int,
        seconds: float,
        superseded: Callable[[Entry, Entry], bool],
        growth: Growth | None = None,
    ) -> str:
        """The entry's manifest is on disk.

        :param superseded: whether the new entry (first) replaces another one
        :param growth: of what may be brought up to date
        :returns: "" or the reason why the entry was dropped
        """
        now = self.clock()

        def work(connection: sa.Connection) -> tuple[str, list[str]]:
            entry = records.get(connection, name)
            if entry is None or entry.state != "pending":
                return "ENTRY_MISSING", [] if entry is None else [name]
            records.update(connection, name, state="committed", rows=rows, bytes=size, used=now, created=now)
            if size > entry.bytes:
                records.mark_evicted(connection, [name], "OVER_BUDGET")
                return "OVER_BUDGET", [name]
            if growth is not None:
                kept = {value: column for value, column in growth.columns.items() if column in entry.columns}
                text = msgspec.json.encode(msgspec.structs.replace(growth, columns=kept)).decode()
                records.update(connection, name, grows=growth.identity, growth=text)
                keep_sources(connection, growth.sources, now)
            committed = replace(entry, rows=rows, bytes=size)
            others = [other for other in records.entries_on(connection, [entry.core]) if other.state == "committed"]
            old = [other for other in others if superseded(committed, other)]
            records.mark_evicted(connection, [other.id for other in old], "SUPERSEDED")
            if any(other.pinned for other in old):
                records.update(connection, name, pinned=True)
            return "", [other.id for other in old]

        outcome, removed = self.catalog.write(work)
        self.evictions += len(removed)
        self._remove_unleased(removed)
        return outcome

    def abandon(self, name: str, reason: str) -> None:
        """A pending entry was not finished, or a committed one turned out to be unusable."""
        self.catalog.write(lambda connection: records.mark_evicted(connection, [name], reason))
        self._remove_unleased([name])

    def give_up(self, run: Run, queries: Iterable[int], seconds: float | None = None) -> None:
        """End the leases of queries that are over, and what they reserved and did not commit."""
        over = list(queries)
        if not over:
            return

        def work(connection: sa.Connection) -> list[str]:
            for query in over:
                records.release(connection, run.application, query=query)
            where = (ENTRY.c.application == run.application, ENTRY.c.query.in_(over), ENTRY.c.state == "pending")
            found = list(connection.execute(sa.select(ENTRY.c.id).where(*where)).scalars())
            records.mark_evicted(connection, found, "ANSWER_UNUSED")
            return found

        self._remove_unleased(self.catalog.write(work, seconds))

    def grown(self, identities: Iterable[str]) -> dict[str, Growth]:
        """By entry, stored aggregates of these identities."""
        if not (wanted := set(identities)):
            return {}
        return self.catalog.read(lambda connection: records.growths(connection, wanted))

    def sources(self, relations: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """By relation without its files, what it was with those that aggregates were stored of."""
        if not (wanted := set(relations)):
            return {}
        return self.catalog.read(lambda connection: sources_of(connection, wanted))

    def written(self, listings: Iterable[str]) -> dict[str, WrittenFiles]:
        """Those of the listings whose files a write is known of."""
        return self.catalog.read(lambda connection: written_of(connection, listings))

    def wrote(self, listing: str, files: WrittenFiles) -> None:
        """A query has committed the files of a listing."""
        self.catalog.write(lambda connection: keep_written(connection, listing, files, self.clock()))

    def price(self, name: str, seconds: float) -> None:
        """What computing an entry took, where that was not known when it was decided."""
        self.catalog.write(lambda connection: records.update(connection, name, recompute_seconds=seconds))

    def used(
        self, name: str, run: Run, query: int, predicted: float, saved: float, measured: bool, contradicted: bool
    ) -> None:
        """A load ran: what it was predicted to save, and what it saved, as measured or by an estimate."""
        now = self.clock()

        def work(connection: sa.Connection) -> None:
            entry = records.get(connection, name)
            if entry is None:
                return
            records.update(
                connection,
                name,
                used=max(now, entry.used),
                uses=entry.uses + 1,
                recent_uses=entry.recent_uses * fading(now - entry.used) + 1,
                predicted_seconds=entry.predicted_seconds + predicted,
                measured_seconds=entry.measured_seconds + saved * measured,
                measured_uses=entry.measured_uses + measured,
                estimated_seconds=entry.estimated_seconds + saved * (not measured),
                contradictions=entry.contradictions + 1 if contradicted else 0,
            )
            use = records.Use(run.application, run.name, query, now, saved, measured)
            records.add_use(connection, name, use)

        self.catalog.write(work)

    def worth(self, net_benefits: Mapping[str, float]) -> None:
        """What entries are worth to the workload, by id."""

        def work(connection: sa.Connection) -> None:
            for name, worth in net_benefits.items():
                records.update(connection, name, net_benefit=worth)

        self.catalog.write(work)

    def pin(self, name: str, budget: int) -> None:
        """Keep a committed entry, whatever else would be worth more.

        :raises StoreError: it is not there, or what is pinned would not fit into the budget
        """

        def work(connection: sa.Connection) -> None:
            entry = records.get(connection, name)
            if entry is None or entry.state != "committed":
                state = "none" if entry is None else f"one that is {entry.state}"
                raise StoreError(
                    f"Found {state} for {name}, expected a complete entry. Hint: wait for its query to end."
                )
            pins = sum(each.bytes for each in records.all_entries(connection) if each.pinned and each.id != name)
            if pins + entry.bytes > budget:
                raise StoreError(
                    f"Found {pins} bytes pinned and {entry.bytes} to pin, expected at most {budget} in all. "
                    "Hint: unpin others, or raise spark.regions.recycle.maxBytes."
                )
            records.update(connection, name, pinned=True)

        self.catalog.write(work)

    def unpin(self, name: str) -> None:
        self.catalog.write(lambda connection: records.update(connection, name, pinned=False))

    def release(self, run: Run, name: str, query: int | None) -> None:
        def work(connection: sa.Connection) -> bool:
            records.release(connection, run.application, name, query)
            entry = records.get(connection, name)
            return entry is not None and entry.state == "evicted"

        if self.catalog.write(work):
            self._remove_unleased([name])

    def heartbeat(self, run: Run) -> None:
        now = self.clock()
        self.catalog.write(lambda connection: records.heartbeat(connection, run.application, run.id, now))

    def sweep_dead(self, ttl_seconds: float) -> list[str]:
        """End dead applications' leases and reservations, evict what was long not used, delete what is left over.

        :param ttl_seconds: 0: however long
        :returns: ids of removed entries
        """
        now = self.clock()

        def work(connection: sa.Connection) -> list[str]:
            records.pull_back_future(connection, now)
            records.drop_dead_leases(connection, now)
            runs = {row.application: row for row in connection.execute(sa.select(RUN).where(RUN.c.ended.is_(None)))}
            doomed: list[str] = []
            for entry in records.entries_in(connection, ("pending", "evicted")):
                if entry.state == "evicted":
                    doomed.append(entry.id)
                elif not self._alive(runs.get(entry.application), now):
                    records.mark_evicted(connection, [entry.id], "OWNER_GONE")
                    doomed.append(entry.id)
            if ttl_seconds > 0:
                late = records.unused(connection, now - ttl_seconds)
                records.mark_evicted(connection, late, "EXPIRED")
                doomed += late
            kept = records.held(connection).get("committed")
            if kept is not None and kept.entries > MOST_ENTRIES:
                worst = next_to_go(records.entries_in(connection, ["committed"]), now)
                # More than have to, so that this is not done each time.
                over = [entry.id for entry in worst[: kept.entries - MOST_ENTRIES * 9 // 10]]
                records.mark_evicted(connection, over, "OVER_BUDGET")
                doomed += over
            return doomed

        removed = self._remove_unleased(self.catalog.write(work))
        self.evictions += len(removed)
        if self.where.local_data is not None:
            for name in leftovers(self.where.local_data, self.catalog.read(records.ids), now - LEFTOVER_SECONDS):
                if delete_entry(self.where.local_data, name):
                    removed.append(name)
        return removed

    def take_sweep(self) -> list[str]:
        """Locations whose files the driver must delete; each is named once."""
        # Another thread may be adding some.
        taken = list(self.sweep)
        del self.sweep[: len(taken)]
        return taken

    def _alive(self, run: sa.Row[tuple[object, ...]] | None, now: float) -> bool:
        if run is None or run.heartbeat <= now - records.DEAD_SECONDS:
            return False
        return not (run.owner_host == self.host and not _process_exists(run.owner_pid))

    def _remove_unleased(self, ids: Iterable[str]) -> list[str]:
        """Delete the records of evicted entries that nobody reads, then their files."""
        candidates = list(ids)
        if not candidates:
            return []
        now = self.clock()

        def work(connection: sa.Connection) -> list[str]:
            free = [name for name in candidates if name not in records.leased(connection, now)]
            where = (ENTRY.c.id.in_(free), ENTRY.c.state == "evicted")
            found = list(connection.execute(sa.select(ENTRY.c.id).where(*where)).scalars())
            records.delete(connection, found)
            return found

        removed = self.catalog.write(work)
        self._delete_files(removed)
        return removed

    def _delete_files(self, ids: Iterable[str]) -> None:
        for name in ids:
            if self.where.local_data is not None:
                delete_entry(self.where.local_data, name)
            else:
                self.sweep.append(f"{self.where.data}/{name}")


def _same_result(new: Entry, other: Entry) -> bool:
    """Whether another entry, pending or committed, holds the same rows and at least the same columns."""
    return other.lineage == new.lineage and set(new.columns) <= set(other.columns)


def _roomy(reserved: Mapping[str, int], free: int) -> dict[str, int]:
    """Reservations with a quarter of what is free shared among them: what outgrows its reservation is thrown away, and
    with it all that writing it took.

    >>> _roomy({"a": 100, "b": 100}, 10_000)
    {'a': 400, 'b': 400}
    >>> _roomy({"a": 100, "b": 100}, 400)
    {'a': 150, 'b': 150}
    """
    share = max(free, 0) // 4 // max(len(reserved), 1)
    return {name: size + min((ROOMY - 1) * size, share) for name, size in reserved.items()}


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
