"""What the driver and an engine's process say to each other. The handshake is the planner's.

A statement's answer is a frame and, where it went well, right behind it an Arrow IPC stream with its rows. One
connection can have several statements under way; when it ends, those end too.
"""

from __future__ import annotations

import msgspec

from spark_regions.wire.base import Long, Record
from spark_regions.wire.messages import Answered, Asked, ErrorAnswer, Hello, Why


class EngineColumn(Record, frozen=True):
    """:param data_type: Spark's, as SQL writes it"""

    name: str
    data_type: str


class EngineFile(Record, frozen=True):
    """A Parquet file as Spark listed it.

    :param path: local and absolute, no URI
    :param modified: milliseconds since 1970
    :param values: of the table's partition columns as texts; days of a date, None for null
    """

    path: str
    bytes: Long
    modified: Long
    values: tuple[str | None, ...] = ()


class EngineTable(Record, frozen=True):
    """What a statement reads by a name.

    :param columns: asked of the files, by the names that Spark's schema has
    :param partition: columns that have one value a file
    """

    files: tuple[EngineFile, ...]
    columns: tuple[EngineColumn, ...] = ()
    partition: tuple[EngineColumn, ...] = ()


class RunStatement(Asked, frozen=True, tag="run"):
    """
    :param id: to cancel it by
    :param sql: one SELECT, or WITH … SELECT
    :param types: of the result's columns, Spark's
    :param zone: of the session; empty where no value depends on it
    :param rebase: `spark.sql.parquet.datetimeRebaseModeInRead`, or the relation's option
    :param disabled: optimizers of the engine
    :param deadline_seconds: from now, checks of the files included
    """

    id: str
    sql: str
    tables: dict[str, EngineTable]
    types: tuple[str, ...]
    limit_bytes: Long
    deadline_seconds: float
    zone: str = ""
    rebase: str = "CORRECTED"
    disabled: tuple[str, ...] = ()


class CancelStatement(Asked, frozen=True, tag="cancel"):
    """Its answer comes when the statement is over."""

    id: str


class Ping(Asked, frozen=True, tag="ping"):
    pass


class RanStatement(Answered, frozen=True, tag="ran"):
    """:param error: why there are no rows; where there is none, an Arrow IPC stream follows

    `seconds` until its rows were there, `bytes` of them in memory.
    """

    rows: Long = 0
    bytes: Long = 0
    seconds: float = 0.0
    error: Why | None = None


class CancelledStatement(Answered, frozen=True, tag="cancelled"):
    """:param found: whether it was still running"""

    found: bool


class Pong(Answered, frozen=True, tag="pong"):
    """:param running: ids of statements"""

    running: tuple[str, ...] = msgspec.field(default=())


EngineRequest = Hello | RunStatement | CancelStatement | Ping
EngineAnswer = ErrorAnswer | RanStatement | CancelledStatement | Pong
