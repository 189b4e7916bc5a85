"""The engine's process: statements over exactly the listed files, their rows back as Arrow.

A statement answers whole or not at all: its rows wait here until it has ended well, within its limit, and no file has
changed since before its footer was read. Whatever goes wrong has a code, and the driver runs Spark's own plan.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import logging
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from spark_regions.conf import value_of
from spark_regions.platforms.duckdb.database import Database, Memory
from spark_regions.platforms.duckdb.footers import ENGINE_TYPES, Failed, FileState, Footers, state
from spark_regions.platforms.duckdb.source import source, with_tables
from spark_regions.platforms.duckdb.text import UNTOLD
from spark_regions.platforms.installed import PROVEN
from spark_regions.platforms.typed import decimal_of
from spark_regions.wire.engine import (
    CancelledStatement,
    CancelStatement,
    EngineRequest,
    Ping,
    Pong,
    RanStatement,
    RunStatement,
)
from spark_regions.wire.frames import Messages, Unreadable, receive, send
from spark_regions.wire.messages import Answered, ErrorAnswer, Greeting, Hello, Why
from spark_regions.wire.process import Refused

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("spark_regions.engine")

HOME = "spark-regions-engine-"
SWEPT_AFTER_SECONDS = 60.0
INTERRUPT_SECONDS = 0.05
"""An interrupt between two steps of a statement is lost, so it is repeated."""
DETAIL_CHARACTERS = 1000
ARROW_TYPES = {
    "BOOLEAN": "bool",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date32[day]",
    "TIMESTAMP": "timestamp[us]",
    "VARCHAR": "string",
    "BLOB": "binary",
}
"""By the engine's type: what Spark's `ArrowUtils` reads as the type that the engine's stands for."""
_UNTOLD = re.compile(f"'{UNTOLD} (.*?)' to BOOL", re.DOTALL)
_REQUESTS: Messages[EngineRequest] = Messages(EngineRequest, "ENGINE_ERROR")


@dataclass(frozen=True, slots=True)
class Rows:
    """:param bytes: in memory"""

    schema: pa.Schema
    batches: Sequence[pa.RecordBatch]
    rows: int
    bytes: int
    seconds: float


class Running:
    """A statement that was asked for, until its rows are there or it failed."""

    def __init__(self, request: RunStatement) -> None:
        self.request = request
        self._why = ""
        self._database: Database | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._deadline = threading.Timer(request.deadline_seconds, self.stop, ("DEADLINE",))
        self._deadline.daemon = True
        self._deadline.start()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def go_on(self) -> None:
        """:raises Failed: it was stopped"""
        if self._why:
            raise Failed(self._why, self.request.id)

    @contextlib.contextmanager
    def on(self, database: Database) -> Iterator[None]:
        """Inside, the database is interrupted when the statement is stopped."""
        with self._lock:
            self._database = database
        try:
            self.go_on()
            yield
        finally:
            with self._lock:
                self._database = None

    def stop(self, code: str) -> None:
        """Returns when it is over."""
        self._why = self._why or code
        while not self._over.is_set():
            with self._lock:
                if self._database is not None:
                    self._database.interrupt()
            self._over.wait(INTERRUPT_SECONDS)

    def end(self) -> None:
        self._deadline.cancel()
        self._over.set()


class Engine:
    """The work of the process. Statements run in threads of their own."""

    def __init__(self, greeting: Greeting) -> None:
        minor = ".".join(duckdb.__version__.split(".")[:2])
        if minor not in PROVEN:
            expected = ", ".join(sorted(PROVEN))
            raise Refused("ENGINE_UNPROVEN", f"found duckdb {duckdb.__version__}, expected {expected}")
        self._memory = Memory(_bytes(greeting.confs, "platforms.memory"))
        self._temp_bytes = _bytes(greeting.confs, "platforms.maxTempBytes")
        self._home = _own_home()
        self._numbers = itertools.count()
        self._footers = Footers()
        self._running: dict[str, Running] = {}
        self._spare: Database | None = None
        self._lock = threading.Lock()

    def warm(self) -> None:
        import pyarrow  # noqa: F401

        self._prepare()

    def hello(self, message: Hello) -> tuple[str, ...]:
        """Whoever has the token may ask."""
        return ()

    def converse(self, connection: socket.socket) -> None:
        sending = threading.Lock()
        mine: list[Running] = []
        try:
            while (body := receive(connection)) is not None:
                try:
                    answer = self._handle(_REQUESTS.decode(body), connection, sending, mine)
                except Unreadable as unreadable:
                    log.warning("%s", unreadable)
                    answer = unreadable.answer
                if answer is not None:
                    with sending:
                        send(connection, answer)
        finally:
            # Nobody waits for their rows any more.
            for each in mine:
                each.stop("CANCELLED")

    def end(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def _handle(
        self, message: EngineRequest, connection: socket.socket, sending: threading.Lock, mine: list[Running]
    ) -> Answered | None:
        """The answer, None where it comes later."""
        match message:
            case RunStatement():
                running = Running(message)
                with self._lock:
                    if message.id in self._running:
                        running.end()
                        return RanStatement(error=Why("ENGINE_ERROR", f"{message.id} runs already"), seq=message.seq)
                    self._running[message.id] = running
                mine[:] = [each for each in mine if not each.over] + [running]
                threading.Thread(target=self._answer, args=(running, connection, sending), daemon=True).start()
                return None
            case CancelStatement():
                with self._lock:
                    found = self._running.get(message.id)
                if found is not None:
                    found.stop("CANCELLED")
                return CancelledStatement(found=found is not None, seq=message.seq)
            case Ping():
                with self._lock:
                    return Pong(tuple(self._running), seq=message.seq)
            case Hello():
                return ErrorAnswer("BAD_HELLO", "a second hello", seq=message.seq)

    def _answer(self, running: Running, connection: socket.socket, sending: threading.Lock) -> None:
        request = running.request
        rows = None
        try:
            rows = self._rows(running)
            answer = RanStatement(rows.rows, rows.bytes, rows.seconds, seq=request.seq)
        except Failed as failed:
            answer = RanStatement(error=Why(failed.code, failed.detail[:DETAIL_CHARACTERS]), seq=request.seq)
        except Exception as error:  # Whatever it is, the driver has a plan of its own to run.
            log.exception("statement %s", request.id)
            answer = RanStatement(error=Why("ENGINE_ERROR", repr(error)[:DETAIL_CHARACTERS]), seq=request.seq)
        finally:
            with self._lock:
                del self._running[request.id]
            running.end()
        try:
            with sending:
                send(connection, answer)
                if rows is not None:
                    _stream(rows, connection)
        except Exception as error:  # The driver has gone, or does not want it any more.
            log.info("statement %s is not answered: %s", request.id, error)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _rows(self, running: Running) -> Rows:
        """
        :raises Failed: with a code of docs/refusals.md
        """
        began = time.monotonic()
        request = running.request
        states = {name: [state(each) for each in table.files] for name, table in request.tables.items()}
        sql = self._sql(running, states)
        database = self._take()
        try:
            with self._memory.part(database):
                database.restrict(
                    {each.path for some in states.values() for each in some}, request.zone, request.disabled
                )
                with running.on(database):
                    schema, batches = _fetched(database, sql, request)
        except Failed:
            raise
        except (duckdb.Error, OSError, MemoryError, ValueError) as error:  # pyarrow passes errors on as these
            running.go_on()
            untold = _UNTOLD.search(str(error))
            raise Failed(*((UNTOLD, untold[1]) if untold else (_code(error), str(error)))) from error
        finally:
            threading.Thread(target=self._renew, args=(database,), daemon=True).start()
        for name, table in request.tables.items():
            for each, before in zip(table.files, states[name], strict=True):
                if state(each) != before:
                    raise Failed("INPUT_CHANGED", each.path)
        running.go_on()
        count, size = sum(each.num_rows for each in batches), sum(each.nbytes for each in batches)
        return Rows(schema, batches, count, size, time.monotonic() - began)

    def _sql(self, running: Running, states: Mapping[str, Sequence[FileState]]) -> str:
        """The statement with its tables in their places."""
        request = running.request
        tables = {}
        for name, table in request.tables.items():
            present = self._footers.present(table, states[name], request.rebase, running.go_on)
            tables[name] = source(table, present)
        return with_tables(request.sql, tables)

    def _take(self) -> Database:
        with self._lock:
            found, self._spare = self._spare, None
        return found or self._new()

    def _renew(self, used: Database) -> None:
        used.close()
        self._prepare()

    def _prepare(self) -> None:
        made = self._new()
        with self._lock:
            needed = self._spare is None
            if needed:
                self._spare = made
        if not needed:
            made.close()

    def _new(self) -> Database:
        return Database(self._home / str(next(self._numbers)), self._temp_bytes)


def _fetched(database: Database, sql: str, request: RunStatement) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    with database.run(sql) as reader:
        found = [str(each.type) for each in reader.schema]
        if len(found) != len(request.types) or not all(map(_is_type, found, request.types)):
            raise Failed("ENGINE_ERROR", f"columns {', '.join(found)} for {', '.join(request.types)}")
        batches, size = [], 0
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size > request.limit_bytes:
                raise Failed("RESULT_TOO_LARGE", f"more than {request.limit_bytes} bytes")
        return reader.schema, batches


def _is_type(found: str, spark_type: str) -> bool:
    """
    >>> _is_type("decimal128(7, 2)", "DECIMAL(7,2)"), _is_type("int32", "BIGINT")
    (True, False)
    """
    digits = decimal_of(spark_type)
    if digits is not None:
        return found == f"decimal128({digits[0]}, {digits[1]})"
    if spark_type == "TIMESTAMP":
        return found.startswith("timestamp[us, tz=")
    return found == ARROW_TYPES.get(ENGINE_TYPES.get(spark_type, ""))


def _stream(rows: Rows, connection: socket.socket) -> None:
    import pyarrow as pa

    with connection.makefile("wb", buffering=1 << 20) as out, pa.ipc.new_stream(out, rows.schema) as writer:
        for batch in rows.batches:
            writer.write_batch(batch)


def _code(error: BaseException) -> str:
    """While rows are read, an error's kind is told by its text alone."""
    text = str(error)
    if "failed to offload data block" in text or os.strerror(errno.ENOSPC) in text:
        return "ENGINE_DISK_FULL"
    if isinstance(error, MemoryError) or text.startswith("Out of Memory Error"):
        return "ENGINE_OUT_OF_MEMORY"
    return "ENGINE_ERROR"


def _bytes(confs: Mapping[str, str], name: str) -> int | None:
    """A size of the configuration, None where it is left to us."""
    value = value_of(name, confs)
    return None if value is None else int(value)


def _own_home() -> Path:
    """A directory that is locked as long as this process lives. What dead ones left is removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{HOME}*"):
        with contextlib.suppress(OSError):  # another one may remove it, too
            _sweep(left)
    made = tempfile.mkdtemp(prefix=HOME)
    fcntl.flock(os.open(made, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
    return Path(made)


def _sweep(left: Path) -> None:
    found = left.stat(follow_symlinks=False)
    # One that is just made has no lock yet.
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < SWEPT_AFTER_SECONDS:
        return
    handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(left, ignore_errors=True)
    finally:
        os.close(handle)
