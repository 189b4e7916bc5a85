"""What stages took, by the machine that ran them, and the weights that were learned from them."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from functools import cache
from math import log2
from pathlib import Path

import msgspec
import sqlalchemy as sa

from spark_regions.dag.digests import digest
from spark_regions.store.schema import CALIBRATION, TIMED_STAGE
from spark_regions.store.stages import forget_oldest
from spark_regions.wire.messages import LearnedWeights, TimedStage

KEEP_TIMED = 500
"""Stages of a machine: enough for the weights of some thirty operators, and some 150 kB."""
_FITTED, _EXPRESSIONS, _OTHERS, _MICROS = "fitted", "expressions", "others", "micros:"


@cache
def machine() -> str:
    """What a core of this machine is, as far as it tells: weights that another one learned are not its own."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{platform.machine()} {next(names, platform.processor())}".strip()[:128]


def shape_of(stage: TimedStage) -> str:
    """Stages with the same have the same operators on about as many rows; the newest stands for all of them."""
    return digest([f"{kind} {round(log2(max(rows, 1.0)))}" for kind, rows in sorted(stage.rows.items())])


def timed_stages(connection: sa.Connection, of: str) -> list[TimedStage]:
    """Of a machine, the newest first."""
    query = sa.select(TIMED_STAGE.c.body).where(TIMED_STAGE.c.machine == of).order_by(TIMED_STAGE.c.last.desc())
    return [
        msgspec.json.decode(body, type=TimedStage) for body in connection.execute(query.limit(KEEP_TIMED)).scalars()
    ]


def timed_since(connection: sa.Connection, of: str, since: float) -> int:
    """How many of a machine's stages are newer."""
    newer = sa.and_(TIMED_STAGE.c.machine == of, TIMED_STAGE.c.last > since)
    return connection.execute(sa.select(sa.func.count()).select_from(TIMED_STAGE).where(newer)).scalar() or 0


def prune_timed(connection: sa.Connection) -> None:
    """Forget the oldest of each machine, beyond what is kept."""
    for (of,) in connection.execute(sa.select(TIMED_STAGE.c.machine).distinct()).all():
        forget_oldest(connection, TIMED_STAGE, KEEP_TIMED, TIMED_STAGE.c.machine == of)


def learned_weights(connection: sa.Connection, of: str) -> LearnedWeights | None:
    """Of a machine; None where none were learned."""
    query = sa.select(CALIBRATION.c.name, CALIBRATION.c.value).where(CALIBRATION.c.location == of)
    known = {row.name: row.value for row in connection.execute(query)}
    if _FITTED not in known:
        return None
    micros = {name.removeprefix(_MICROS): value for name, value in known.items() if name.startswith(_MICROS)}
    return LearnedWeights(known[_FITTED], micros, known.get(_EXPRESSIONS, 1.0), known.get(_OTHERS, 1.0))


def write_weights(connection: sa.Connection, of: str, learned: LearnedWeights) -> None:
    """In place of those that were learned before."""
    connection.execute(sa.delete(CALIBRATION).where(CALIBRATION.c.location == of))
    values = {_FITTED: learned.fitted, _EXPRESSIONS: learned.expressions, _OTHERS: learned.others}
    # A name that does not fit is one of a library's operators: it keeps its fixed weight.
    values |= {_MICROS + kind: each for kind, each in learned.micros.items() if len(_MICROS + kind) <= 64}
    now = time.time()
    rows = [{"location": of, "name": name, "value": value, "updated": now} for name, value in values.items()]
    connection.execute(sa.insert(CALIBRATION), rows)


def forget_machine(connection: sa.Connection, of: str) -> None:
    """Its stages and its weights."""
    connection.execute(sa.delete(TIMED_STAGE).where(TIMED_STAGE.c.machine == of))
    connection.execute(sa.delete(CALIBRATION).where(CALIBRATION.c.location == of))


def encoded(stages: Iterable[TimedStage]) -> dict[str, bytes]:
    """By shape, as the catalog keeps them."""
    return {shape_of(stage): msgspec.json.encode(stage) for stage in stages}
