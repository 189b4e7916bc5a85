"""What reduce stages took, over all applications."""

from __future__ import annotations

import sqlalchemy as sa

from spark_regions.store.schema import STAGE

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


def prune_stages(connection: sa.Connection) -> None:
    """Forget those that ran longest ago, beyond what is kept."""
    oldest = connection.execute(
        sa.select(STAGE.c.last).order_by(STAGE.c.last.desc()).offset(KEEP_STAGES).limit(1)
    ).scalar()
    if oldest is not None:
        connection.execute(sa.delete(STAGE).where(STAGE.c.last <= oldest))
