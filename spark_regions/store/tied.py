"""Sorts that had rows with equal keys: reading in another order would show again, and is not tried."""

from __future__ import annotations

import sqlalchemy as sa

from spark_regions.store.schema import TIED

MOST = 10_000


def tied_sorts(connection: sa.Connection) -> tuple[str, ...]:
    """Their digests, the newest first."""
    return tuple(connection.scalars(sa.select(TIED.c.digest).order_by(TIED.c.since.desc()).limit(MOST)))


def had_ties(connection: sa.Connection, digest: str, since: float) -> None:
    """:param since: seconds since 1970"""
    connection.execute(sa.delete(TIED).where(TIED.c.digest == digest))
    connection.execute(sa.insert(TIED).values(digest=digest, since=since))
