"""One DuckDB a statement, and the memory that they share.

A database and not a cursor of a common one: which paths may be read, which optimizers are off and how much memory there
is are settings of a whole database, and no path can be added once access is closed. One takes 8 ms to open, which is
done before it is wanted.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from spark_regions.platforms.duckdb.footers import SAFE, Failed, quoted

if TYPE_CHECKING:
    import pyarrow as pa

SETTINGS: Mapping[str, str] = SAFE | {
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # else a name that is no table could be a variable of this program
    "enable_external_file_cache": "false",  # of no use to a single statement
    "arrow_output_version": "1.0",  # decimals and texts in the forms that Spark reads
    "arrow_lossless_conversion": "false",
}
ROWS_AT_ONCE = 10_240
LEAST_MEMORY = 32 << 20
"""Less is not worth a start: a hash table of a few partitions does not fit."""
AUTOMATIC_SHARE = 1 / 3
"""Of what DuckDB would take by itself, which is 80 % of the machine's or container's memory: here, it is a guest."""
_DEFAULT_MEMORY = "SELECT parse_formatted_bytes(current_setting('memory_limit'))"


class Database:
    """For one statement, from files that are told beforehand.

    :param directory: where it may write what does not fit into memory
    """

    def __init__(self, directory: Path, temp_bytes: int | None) -> None:
        self._directory = directory
        self._connection = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": str(directory)})
        if temp_bytes is not None:
            # Among the settings that it begins with, DuckDB reports this one and does not keep to it.
            self._connection.execute(f"SET max_temp_directory_size = '{temp_bytes}B'")
        self._cursor = self._connection.cursor()

    def limit(self, memory_bytes: int) -> None:
        """:raises duckdb.OutOfMemoryException: more is in use, and cannot be written to disk"""
        self._connection.execute(f"SET memory_limit = '{memory_bytes}B'")

    def restrict(self, paths: Iterable[str], zone: str, disabled: Iterable[str]) -> None:
        """Only these files can be read from here on, and nothing else can be reached."""
        if zone:
            self._cursor.execute(f"SET TimeZone = {quoted(zone)}")
        self._connection.execute(f"SET disabled_optimizers = {quoted(','.join(disabled))}")
        self._connection.execute(f"SET allowed_paths = CAST([{', '.join(map(quoted, paths))}] AS VARCHAR[])")
        self._connection.execute("SET enable_external_access = false")

    def run(self, sql: str) -> pa.RecordBatchReader:
        """Rows come while the statement still runs: reading them may raise what it raises."""
        statements = self._cursor.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise Failed("ENGINE_ERROR", "expected one SELECT")
        return self._cursor.execute(statements[0]).to_arrow_reader(ROWS_AT_ONCE)

    def interrupt(self) -> None:
        self._cursor.interrupt()

    def close(self) -> None:
        self._cursor.close()
        self._connection.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Memory:
    """A number of bytes, in equal parts among the databases that are at work.

    One that has more than its part in use when another comes keeps it; the other has what is left.

    :param total_bytes: None for a part of the machine's
    """

    def __init__(self, total_bytes: int | None) -> None:
        self.total_bytes = _automatic_bytes() if total_bytes is None else total_bytes
        self._parts: dict[Database, int] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def part(self, database: Database) -> Iterator[None]:
        with self._lock:
            self._come(database)
        try:
            yield
        finally:
            with self._lock:
                self._go(database)

    def _come(self, database: Database) -> None:
        part = self.total_bytes // (len(self._parts) + 1)
        for other, has in self._parts.items():
            if has > part:
                with contextlib.suppress(duckdb.OutOfMemoryException):
                    other.limit(part)
                    self._parts[other] = part
        left = self.total_bytes - sum(self._parts.values())
        if self._parts and left < LEAST_MEMORY:
            raise Failed("ENGINE_OUT_OF_MEMORY", f"other statements leave {left} bytes")
        database.limit(left)
        self._parts[database] = left

    def _go(self, database: Database) -> None:
        spare = self._parts.pop(database)
        for other in self._parts:
            self._parts[other] += spare // len(self._parts)
            other.limit(self._parts[other])


def _automatic_bytes() -> int:
    with duckdb.connect(":memory:", config=dict(SAFE)) as database:
        found = database.execute(_DEFAULT_MEMORY).fetchone()
    assert found is not None
    return int(found[0] * AUTOMATIC_SHARE)
