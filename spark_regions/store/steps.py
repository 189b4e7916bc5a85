"""The queries of an application's last runs, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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


class RecordedRun(NamedTuple):
    """A run whose queries are kept.

    :param name: of the application
    :param started: seconds of the epoch
    :param bodies: its queries, in their order
    """

    application: str
    name: str
    started: float
    bodies: tuple[bytes, ...]


def recorded_runs(connection: sa.Connection, most_queries: int) -> list[RecordedRun]:
    """Of all applications, the newest first, as long as they have no more queries in all."""
    counts = sa.select(STEP.c.run_id, sa.func.count()).group_by(STEP.c.run_id).order_by(STEP.c.run_id.desc())
    found: list[RecordedRun] = []
    left = most_queries
    for run, count in connection.execute(counts).all():
        left -= count
        if left < 0:
            break
        row = connection.execute(sa.select(RUN).where(RUN.c.id == run)).one()
        bodies = connection.execute(sa.select(STEP.c.body).where(STEP.c.run_id == run).order_by(STEP.c.position))
        found.append(RecordedRun(row.application, row.name, row.started, tuple(bytes(b) for b in bodies.scalars())))
    return found


def run_starts(connection: sa.Connection) -> dict[str, list[float]]:
    """When each application's runs that executed something started, by its name."""
    found: dict[str, list[float]] = {}
    for name, started in connection.execute(sa.select(RUN.c.name, RUN.c.started).where(RUN.c.queries > 0)):
        found.setdefault(name, []).append(started)
    return found


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
