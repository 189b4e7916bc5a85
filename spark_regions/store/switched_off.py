"""Lineages of which nothing is read or stored any more, since a query on them gave other rows than plain Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from spark_regions.store.schema import SWITCHED_OFF

MOST = 10_000
"""The newest ones; each is a fault of ours, or of the disk."""


class SwitchedOff(NamedTuple):
    """:param since: seconds since 1970"""

    lineage: str
    detail: str
    application: str
    since: float


def off_lineages(connection: sa.Connection) -> dict[str, str]:
    """Each with why."""
    return {each.lineage: each.detail for each in listed(connection)}


def listed(connection: sa.Connection) -> list[SwitchedOff]:
    """The newest first."""
    query = sa.select(SWITCHED_OFF).order_by(SWITCHED_OFF.c.since.desc()).limit(MOST)
    return [SwitchedOff(*row) for row in connection.execute(query)]


def switch_off(connection: sa.Connection, lineages: Iterable[str], detail: str, application: str, since: float) -> None:
    """Persistently, for every application of the namespace; what was said of a lineage before is replaced."""
    wanted = sorted(set(lineages))
    _delete(connection, wanted)
    rows = [SwitchedOff(each, detail[:1000], application, since)._asdict() for each in wanted]
    if rows:
        connection.execute(sa.insert(SWITCHED_OFF), rows)


def lift(connection: sa.Connection, start: str) -> list[str]:
    """Trust again the lineages that begin so. Returns them."""
    found = [each.lineage for each in listed(connection) if each.lineage.startswith(start)]
    _delete(connection, found)
    return found


def _delete(connection: sa.Connection, lineages: list[str]) -> None:
    connection.execute(sa.delete(SWITCHED_OFF).where(SWITCHED_OFF.c.lineage.in_(lineages)))
