"""Files that are known by what was written to them; docs/files.md."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa

from spark_regions.store.schema import WRITTEN
from spark_regions.store.stages import forget_oldest
from spark_regions.wire.messages import WrittenFiles

KEEP_WRITTEN = 20_000


def written_of(connection: sa.Connection, listings: Iterable[str]) -> dict[str, WrittenFiles]:
    """Those of the listings that a write is known of."""
    query = sa.select(WRITTEN.c.listing, WRITTEN.c.body).where(WRITTEN.c.listing.in_(list(listings)))
    rows = connection.execute(query)
    return {row.listing: msgspec.json.decode(row.body, type=WrittenFiles) for row in rows}


def keep_written(connection: sa.Connection, listing: str, files: WrittenFiles, now: float) -> None:
    """Keep what a listing holds. A file is written once, so that a second report of it only knows more."""
    connection.execute(sa.delete(WRITTEN).where(WRITTEN.c.listing == listing))
    connection.execute(sa.insert(WRITTEN).values(listing=listing, body=msgspec.json.encode(files), last=now))


def prune_written(connection: sa.Connection) -> None:
    """Forget the oldest writes, beyond what is kept."""
    forget_oldest(connection, WRITTEN, KEEP_WRITTEN)
