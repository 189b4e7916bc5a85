"""What reduce stages took, and the heaviest keys of those that were arranged, over all applications."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from spark_regions.store.schema import STAGE, STAGE_KEYS

KEEP_STAGES = 20_000

StageKey = tuple[str, str]
"""Shape of the stage's operators, and lineage of its rows ("": unknown)."""


def stage_of(connection: sa.Connection, shape: str, lineage: str) -> tuple[str, bytes] | None:
    """Lineage and body of the stage that ran last with these operators; on the same rows, if any did."""
    query = (
        sa.select(STAGE.c.lineage, STAGE.c.body)
        .where(STAGE.c.shape == shape)
        .order_by((STAGE.c.lineage == lineage).desc(), STAGE.c.last.desc())
    )
    row = connection.execute(query.limit(1)).first()
    return None if row is None else (str(row.lineage), bytes(row.body))


def keys_of(connection: sa.Connection, shape: str, lineage: str) -> bytes | None:
    """The heaviest keys of a stage on these very rows."""
    query = sa.select(STAGE_KEYS.c.body).where(STAGE_KEYS.c.shape == shape, STAGE_KEYS.c.lineage == lineage)
    return connection.execute(query).scalar()


@dataclass(frozen=True, slots=True)
class CountedStage:
    """:param keys: body of the heaviest keys; :param history: of what the stage took, None below 0.2 task-seconds"""

    keys: bytes
    history: bytes | None
    last: float


def counted_stages(connection: sa.Connection, limit: int) -> tuple[list[CountedStage], int]:
    """The last of those whose keys were counted, the newest first, and how many there are."""
    same = sa.and_(STAGE.c.shape == STAGE_KEYS.c.shape, STAGE.c.lineage == STAGE_KEYS.c.lineage)
    query = (
        sa.select(STAGE_KEYS.c.body, STAGE.c.body.label("history"), STAGE_KEYS.c.last)
        .select_from(STAGE_KEYS.outerjoin(STAGE, same))
        .order_by(STAGE_KEYS.c.last.desc())
        .limit(limit)
    )
    count = connection.execute(sa.select(sa.func.count()).select_from(STAGE_KEYS)).scalar() or 0
    return [CountedStage(row.body, row.history, row.last) for row in connection.execute(query)], count


def prune_stages(connection: sa.Connection) -> None:
    """Forget those that ran longest ago, beyond what is kept."""
    for table in (STAGE, STAGE_KEYS):
        forget_oldest(connection, table, KEEP_STAGES)


def forget_oldest(connection: sa.Connection, table: sa.Table, keep: int, *of: sa.ColumnElement[bool]) -> None:
    """Delete all but the `keep` newest rows, by column `last`, among those that `of` holds for."""
    newest = sa.select(table.c.last).where(*of).order_by(table.c.last.desc())
    oldest = connection.execute(newest.offset(keep).limit(1)).scalar()
    if oldest is not None:
        connection.execute(sa.delete(table).where(*of, table.c.last <= oldest))
