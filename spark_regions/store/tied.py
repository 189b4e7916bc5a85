"""Sorts that had rows with equal keys: reading in another order would show again, and is not tried."""

from __future__ import annotations

import sqlalchemy as sa

from spark_regions.store.catalog import Catalog
from spark_regions.store.graph import upsert
from spark_regions.store.schema import TIED

MOST = 10_000


def tied_sorts(catalog: Catalog) -> tuple[str, ...]:
    """Their digests, the newest first."""
    query = sa.select(TIED.c.digest).order_by(TIED.c.since.desc()).limit(MOST)
    return catalog.read(lambda connection: tuple(connection.scalars(query)))


def had_ties(catalog: Catalog, digest: str, since: float) -> None:
    """:param since: seconds since 1970"""
    catalog.write(lambda connection: upsert(connection, TIED, {"digest": digest}, {"since": since}))
