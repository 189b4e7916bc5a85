"""Records of stored results: `pending → committed → (leased)* → evicted` (DESIGN §7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from spark_regions.dag.records import Entry
from spark_regions.store.records import from_entry, to_entry
from spark_regions.store.schema import EDGE, ENTRY, ENTRY_USE, LEASE, RUN
from spark_regions.wire.messages import Growth

NEWEST = 3
"""So many entries of one aggregate are looked at for one that can be brought up to date."""
DEAD_SECONDS = 120.0
"""An application without a heartbeat for so long is dead: its leases and reservations end."""
KEPT_USES = 20
"""Of each entry."""


def entries_on(
    connection: sa.Connection, cores: Iterable[str], bases: Iterable[str] = (), names: Iterable[str] = ()
) -> list[Entry]:
    """Pending and committed entries on the cores, of aggregates of what is on the bases, and of these names."""
    found = {row.id: row for row in connection.execute(_ON, {"cores": sorted(set(cores))})}
    if wanted := sorted(set(bases)):
        found |= {row.id: row for row in connection.execute(_OF, {"bases": wanted})}
    if named := sorted(set(names)):
        found |= {row.id: row for row in connection.execute(_NAMED, {"names": named})}
    return [_entry(row) for row in found.values() if row.state in ("pending", "committed")]


_entry = lru_cache(maxsize=10_000)(to_entry)
"""Most rows are those of the last decision, and reading what they hold as JSON takes 80 µs each."""


def growths(connection: sa.Connection, identities: Iterable[str]) -> dict[str, Growth]:
    """By entry, of the newest committed aggregates of each identity."""
    found: dict[str, Growth] = {}
    times: Counter[str] = Counter()
    for row in connection.execute(_GROWS, {"identities": sorted(set(identities))}):
        times[row.grows] += 1
        if times[row.grows] <= NEWEST:
            found[row.id] = msgspec.json.decode(row.growth, type=Growth)
    return found


def all_entries(connection: sa.Connection) -> list[Entry]:
    return [to_entry(row) for row in connection.execute(sa.select(ENTRY).order_by(ENTRY.c.created))]


def entries_in(connection: sa.Connection, states: Iterable[str]) -> list[Entry]:
    return [to_entry(row) for row in connection.execute(sa.select(ENTRY).where(ENTRY.c.state.in_(list(states))))]


def ids(connection: sa.Connection) -> frozenset[str]:
    """Of all entries."""
    return frozenset(connection.execute(sa.select(ENTRY.c.id)).scalars())


def unused(connection: sa.Connection, since: float) -> list[str]:
    """Committed entries that were last used before that time; pinned ones only if their inputs changed."""
    late = (ENTRY.c.state == "committed", ENTRY.c.used < since)
    changed = ~ENTRY.c.pinned | _asked_for_others()
    return list(connection.execute(sa.select(ENTRY.c.id).where(*late, changed)).scalars())


def _asked_for_others() -> sa.ColumnElement[bool]:
    """Whether the entry's job ran to its end since the entry was used, and never asked for these rows: its inputs are
    other ones now, or the job is.
    """
    later, maker = RUN.alias("later"), RUN.alias("maker")
    asked = sa.exists().where(EDGE.c.run_id == later.c.id, EDGE.c.child == ENTRY.c.lineage).correlate(later, ENTRY)
    return (
        sa.exists()
        .where(
            maker.c.application == ENTRY.c.application,
            later.c.name == maker.c.name,
            later.c.started > ENTRY.c.used,
            later.c.ended.is_not(None),
            later.c.queries > 0,
            ~asked,
        )
        .correlate(ENTRY)
    )


class Use(NamedTuple):
    """A query that read an entry.

    :param job: name of its application
    :param measured: whether `saved` (seconds) was measured against plain runs of the query; else it is estimated
    """

    application: str
    job: str
    query: int
    at: float
    saved: float
    measured: bool


def add_use(connection: sa.Connection, name: str, use: Use) -> None:
    """Keep the last ones of an entry."""
    values = {"application": use.application[:256], "query": use.query, "at": use.at, "saved": use.saved}
    connection.execute(sa.insert(ENTRY_USE).values(entry=name, measured=use.measured, **values))
    own = sa.select(ENTRY_USE.c.id).where(ENTRY_USE.c.entry == name)
    old = list(connection.execute(own.order_by(ENTRY_USE.c.id.desc()).offset(KEPT_USES)).scalars())
    if old:
        connection.execute(sa.delete(ENTRY_USE).where(ENTRY_USE.c.id.in_(old)))


def uses_of(connection: sa.Connection, name: str) -> list[Use]:
    """The last ones, the newest first."""
    u = ENTRY_USE.c
    found = connection.execute(
        sa.select(u.application, sa.func.coalesce(RUN.c.name, ""), u.query, u.at, u.saved, u.measured)
        .join_from(ENTRY_USE, RUN, RUN.c.application == u.application, isouter=True)
        .where(u.entry == name)
        .order_by(u.id.desc())
    )
    return [Use(*row) for row in found]


class Held(NamedTuple):
    """Entries of a state, and their bytes."""

    entries: int
    bytes: int


def held(connection: sa.Connection) -> dict[str, Held]:
    """By state."""
    query = sa.select(ENTRY.c.state, sa.func.count(), sa.func.sum(ENTRY.c.bytes)).group_by(ENTRY.c.state)
    return {state: Held(int(count), int(size or 0)) for state, count, size in connection.execute(query)}


def used_bytes(connection: sa.Connection) -> int:
    """Bytes of all entries: files, reservations, and evicted files that are still read."""
    return int(connection.execute(_USED).scalar() or 0)


def get(connection: sa.Connection, name: str) -> Entry | None:
    row = connection.execute(sa.select(ENTRY).where(ENTRY.c.id == name)).first()
    return to_entry(row) if row else None


def insert(connection: sa.Connection, entry: Entry) -> None:
    connection.execute(sa.insert(ENTRY), from_entry(entry))


def update(connection: sa.Connection, name: str, **values: Any) -> bool:
    return bool(connection.execute(sa.update(ENTRY).where(ENTRY.c.id == name).values(**values)).rowcount)


def delete(connection: sa.Connection, ids: Iterable[str]) -> None:
    gone = list(ids)
    connection.execute(sa.delete(ENTRY_USE).where(ENTRY_USE.c.entry.in_(gone)))
    connection.execute(sa.delete(ENTRY).where(ENTRY.c.id.in_(gone)))


def mark_evicted(connection: sa.Connection, ids: Iterable[str], reason: str) -> None:
    """Hide entries from matching; their bytes count until the files are gone."""
    connection.execute(sa.update(ENTRY).where(ENTRY.c.id.in_(list(ids))).values(state="evicted", reason=reason))


def lease(connection: sa.Connection, name: str, application: str, query: int, now: float) -> bool:
    """Keep an entry's files until `release`; False where it is gone."""
    committed = sa.select(ENTRY.c.id).where(ENTRY.c.id == name, ENTRY.c.state == "committed")
    if connection.execute(committed).first() is None:
        return False
    key = (LEASE.c.entry == name, LEASE.c.application == application, LEASE.c.query == query)
    if not connection.execute(sa.update(LEASE).where(*key).values(heartbeat=now)).rowcount:
        connection.execute(sa.insert(LEASE).values(entry=name, application=application, query=query, heartbeat=now))
    return True


def release(connection: sa.Connection, application: str, name: str | None = None, query: int | None = None) -> None:
    """End leases: of one entry and query, or all of the application's."""
    statement = sa.delete(LEASE).where(LEASE.c.application == application)
    if name is not None:
        statement = statement.where(LEASE.c.entry == name)
    if query is not None:
        statement = statement.where(LEASE.c.query == query)
    connection.execute(statement)


def leased(connection: sa.Connection, now: float) -> frozenset[str]:
    """Entries with a living lease."""
    query = sa.select(LEASE.c.entry).where(LEASE.c.heartbeat > now - DEAD_SECONDS).distinct()
    return frozenset(connection.execute(query).scalars())


def heartbeat(connection: sa.Connection, application: str, run: int, now: float) -> None:
    connection.execute(sa.update(RUN).where(RUN.c.id == run).values(heartbeat=now))
    connection.execute(sa.update(LEASE).where(LEASE.c.application == application).values(heartbeat=now))


def drop_dead_leases(connection: sa.Connection, now: float) -> None:
    connection.execute(sa.delete(LEASE).where(LEASE.c.heartbeat <= now - DEAD_SECONDS))


def pull_back_future(connection: sa.Connection, now: float) -> None:
    """After a clock was set back: what lies in the future starts to age now."""
    limit = now + DEAD_SECONDS
    connection.execute(sa.update(RUN).where(RUN.c.heartbeat > limit).values(heartbeat=now))
    connection.execute(sa.update(LEASE).where(LEASE.c.heartbeat > limit).values(heartbeat=now))
    connection.execute(sa.update(ENTRY).where(ENTRY.c.used > limit).values(used=now))


_USED = sa.select(sa.func.sum(ENTRY.c.bytes))
# Not by state as well: SQLite would go through all entries of a state.
_ON = sa.select(ENTRY).where(ENTRY.c.core.in_(sa.bindparam("cores", expanding=True)))
_GROWS = (
    sa.select(ENTRY.c.id, ENTRY.c.grows, ENTRY.c.growth)
    .where(ENTRY.c.grows.in_(sa.bindparam("identities", expanding=True)), ENTRY.c.state == "committed")
    .order_by(ENTRY.c.created.desc())
)
_NAMED = sa.select(ENTRY).where(ENTRY.c.id.in_(sa.bindparam("names", expanding=True)))
_OF = sa.select(ENTRY).where(ENTRY.c.base.in_(sa.bindparam("bases", expanding=True)))
