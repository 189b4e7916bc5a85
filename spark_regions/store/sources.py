"""Relations by the files that aggregates were stored of; docs/growing.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from spark_regions.store.schema import SOURCE
from spark_regions.store.stages import forget_oldest

KEEP_SOURCES = 20_000


def sources_of(connection: sa.Connection, relations: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By relation, what it was with the files that it had."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    query = sa.select(SOURCE.c.relation, SOURCE.c.source).where(SOURCE.c.relation.in_(sorted(relations)))
    for row in connection.execute(query):
        found[row.relation].append(row.source)
    return {relation: tuple(sources) for relation, sources in found.items()}


def keep_sources(connection: sa.Connection, sources: Mapping[str, str], now: float) -> None:
    """An aggregate was stored of these relations, as they are with their files."""
    for relation, source in sources.items():
        same = (SOURCE.c.relation == relation, SOURCE.c.source == source)
        connection.execute(sa.delete(SOURCE).where(*same))
        connection.execute(sa.insert(SOURCE).values(relation=relation, source=source, last=now))


def prune_sources(connection: sa.Connection) -> None:
    """Forget the oldest, beyond what is kept."""
    forget_oldest(connection, SOURCE, KEEP_SOURCES)
