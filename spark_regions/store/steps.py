"""The queries of an application's last runs, in their order."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from spark_regions.store.schema import RUN, STEP

KEPT_RUNS = 3


def recorded_names(connection: sa.Connection) -> list[str]:
    """Names of the applications that have recorded runs."""
    found = connection.execute(
        sa.select(RUN.c.name).join(STEP, RUN.c.id == STEP.c.run_id).distinct().order_by(RUN.c.name)
    )
    return [str(name) for name in found.scalars()]


def steps_of(connection: sa.Connection, name: str, without: int | None = None) -> list[bytes]:
    """The steps of the last run with this application name that was about whole.

    A run that failed half-way has fewer steps; it counts only where no run kept has twice as many.

    :param without: a run that does not count, as the one under way
    """
    rows = connection.execute(
        sa.select(STEP.c.run_id, sa.func.count())
        .join(RUN, RUN.c.id == STEP.c.run_id)
        .where(RUN.c.name == name, *([] if without is None else [STEP.c.run_id != without]))
        .group_by(STEP.c.run_id)
        .order_by(STEP.c.run_id.desc())
        .limit(KEPT_RUNS)
    ).all()
    most = max((count for _, count in rows), default=0)
    run = next((run for run, count in rows if 2 * count > most), None)
    if run is None:
        return []
    found = connection.execute(sa.select(STEP.c.body).where(STEP.c.run_id == run).order_by(STEP.c.position))
    return [bytes(body) for body in found.scalars()]


def write_steps(connection: sa.Connection, run: int, steps: Mapping[int, bytes]) -> None:
    """Add steps of a run, by their position. Of its first ones, those of the oldest run of the same name go."""
    if not steps:
        return
    known = set(connection.execute(sa.select(STEP.c.position).where(STEP.c.run_id == run)).scalars())
    fresh = [{"run_id": run, "position": at, "body": body} for at, body in steps.items() if at not in known]
    if fresh:
        connection.execute(sa.insert(STEP), fresh)
    if known:
        return
    name = sa.select(RUN.c.name).where(RUN.c.id == run).scalar_subquery()
    runs = sa.select(STEP.c.run_id).join(RUN, RUN.c.id == STEP.c.run_id).where(RUN.c.name == name).distinct()
    old = list(connection.execute(runs.order_by(STEP.c.run_id.desc()).offset(KEPT_RUNS)).scalars())
    if old:
        connection.execute(sa.delete(STEP).where(STEP.c.run_id.in_(old)))
