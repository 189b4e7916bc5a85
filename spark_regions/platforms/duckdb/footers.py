"""Which Parquet files the engine reads as plain Spark does, by their footers.

A file is taken if each asked column is stored in one of the forms of `PLAIN`, or is not in it at all. Both of Spark's
readers take the stored value of these as it is (branch-4.x: `ParquetVectorUpdaterFactory`, `ParquetRowConverter`,
`ParquetReadSupport`, `DataSourceUtils`), and so does the engine (`ParquetReader::DeriveLogicalType`). Whatever is
converted on the way is refused: milli- and nanoseconds, unsigned and widened numbers, other scales, dates of the hybrid
calendar. But for INT96 of Spark's own files, as it writes timestamps by default: of the day's number and nanoseconds in
it both make microseconds of UTC (`DateTimeUtils.fromJulianDay`; `ImpalaTimestampToMicroseconds`), from 4713 BC
on: Spark's type is defined for years 1 to 9999 (`TimestampType`).

The engine's own functions read the footers, since they tell the forms as they are stored: pyarrow fills in a converted
type that is not there, without which the engine takes a text for bytes. It takes about 0.2 ms a file and function,
pyarrow as much.
"""

from __future__ import annotations

import stat
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb

from spark_regions.errors import WithReason
from spark_regions.platforms.typed import decimal_of
from spark_regions.wire.engine import EngineFile, EngineTable

REMEMBERED_FILES = 20_000
FILES_AT_ONCE = 256
"""Footers that are read, in a fifth of a second or less, before anybody looks whether to go on."""
SAFE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""The engine fetches nothing and loads nothing."""

_FORMS = """
Spark         | physical   | converted        | logical                              | engine
BOOLEAN       | BOOLEAN    |                  |                                      | BOOLEAN
TINYINT       | INT32      | INT_8            |                                      | TINYINT
TINYINT       | INT32      | INT_8            | IntType(bitWidth=8, isSigned=1)      | TINYINT
SMALLINT      | INT32      | INT_16           |                                      | SMALLINT
SMALLINT      | INT32      | INT_16           | IntType(bitWidth=16, isSigned=1)     | SMALLINT
INT           | INT32      |                  |                                      | INTEGER
INT           | INT32      |                  | IntType(bitWidth=32, isSigned=1)     | INTEGER
INT           | INT32      | INT_32           |                                      | INTEGER
INT           | INT32      | INT_32           | IntType(bitWidth=32, isSigned=1)     | INTEGER
BIGINT        | INT64      |                  |                                      | BIGINT
BIGINT        | INT64      |                  | IntType(bitWidth=64, isSigned=1)     | BIGINT
BIGINT        | INT64      | INT_64           |                                      | BIGINT
BIGINT        | INT64      | INT_64           | IntType(bitWidth=64, isSigned=1)     | BIGINT
FLOAT         | FLOAT      |                  |                                      | FLOAT
DOUBLE        | DOUBLE     |                  |                                      | DOUBLE
DATE          | INT32      | DATE             |                                      | DATE
DATE          | INT32      | DATE             | DateType()                           | DATE
TIMESTAMP     | INT96      |                  |                                      | TIMESTAMP
TIMESTAMP     | INT64      |                  | TimestampType(isAdjustedToUTC=1, us) | TIMESTAMP WITH TIME ZONE
TIMESTAMP     | INT64      | TIMESTAMP_MICROS | TimestampType(isAdjustedToUTC=1, us) | TIMESTAMP WITH TIME ZONE
TIMESTAMP_NTZ | INT64      |                  | TimestampType(isAdjustedToUTC=0, us) | TIMESTAMP
TIMESTAMP_NTZ | INT64      | TIMESTAMP_MICROS | TimestampType(isAdjustedToUTC=0, us) | TIMESTAMP
STRING        | BYTE_ARRAY | UTF8             |                                      | VARCHAR
STRING        | BYTE_ARRAY | UTF8             | StringType()                         | VARCHAR
BINARY        | BYTE_ARRAY |                  |                                      | BLOB
"""
_MICROS = "unit=TimeUnit(MILLIS=<null>, MICROS=MicroSeconds(), NANOS=<null>)"
_ROWS = [tuple(part.strip() for part in line.split("|")) for line in _FORMS.strip().splitlines()[1:]]
ENGINE_TYPES = {row[0]: row[4] for row in _ROWS if row[1] != "INT96"}
"""By Spark's type; decimals have the same name."""
PLAIN = {name: frozenset(tuple(row[1:]) for row in _ROWS if row[0] == name) for name in ENGINE_TYPES}
"""Spark's type to how it may be stored: physical, converted and logical type, and what the engine makes of them."""
_DECIMAL_DIGITS = {"INT32": 9, "INT64": 18}
"""Parquet allows no more; Spark refuses the file, the engine does not."""
_REBASED = frozenset({"DATE", ENGINE_TYPES["TIMESTAMP"]})
"""Types of the engine whose values Spark may shift between calendars."""
_ORDERED = "ColumnOrder(TYPE_ORDER=TypeDefinedOrder())"
"""Else the engine would prune by minima and maxima that older writers made of signed bytes."""

_SCHEMAS = """
SELECT file_name, name, type, type_length, repetition_type, num_children, converted_type, scale, precision,
       logical_type, duckdb_type
FROM parquet_schema([{}]) ORDER BY file_name, column_id
"""
_KEYS = """
SELECT file_name, key, value FROM parquet_kv_metadata([{}])
WHERE key IN ('org.apache.spark.version'::BLOB, 'org.apache.spark.legacyDateTime'::BLOB,
              'org.apache.spark.legacyINT96'::BLOB)
"""
_FILES = "SELECT file_name, column_orders, created_by FROM parquet_file_metadata([{}])"


class Failed(WithReason):
    """Why a statement has no rows."""


class FileState(NamedTuple):
    """What changes where a file is written; times in nanoseconds."""

    path: str
    device: int
    inode: int
    bytes: int
    modified: int
    changed: int


class Present(NamedTuple):
    """A column that a file has; with `int96`, the engine takes its instants for local time."""

    name: str
    int96: bool


class Stored(NamedTuple):
    """How a column of a file is stored; `ordered`: its minima and maxima are in the order of its type."""

    name: str
    form: tuple[str, ...]
    digits: tuple[int, int] | None
    length: int
    ordered: bool


@dataclass(frozen=True, slots=True)
class Footer:
    """
    :param columns: those at the top, in order; of nested ones the form is empty
    :param version: of Spark, if that wrote the file
    :param hybrid: dates and times are of the calendar with a gap in 1582
    :param proleptic_int96: those of INT96 are known not to be, nor to be local time
    """

    columns: tuple[Stored, ...]
    version: str
    hybrid: bool
    proleptic_int96: bool


def state(file: EngineFile) -> FileState:
    """The file as it is now, which is as Spark listed it.

    :raises Failed: it is not
    """
    try:
        found = Path(file.path).stat()
    except (OSError, ValueError) as error:
        raise Failed("INPUT_CHANGED", f"{file.path}: {error}") from error
    listed = (found.st_size, found.st_mtime_ns // 1_000_000) == (file.bytes, file.modified)
    if not listed or not stat.S_ISREG(found.st_mode):
        raise Failed("INPUT_CHANGED", file.path)
    times = found.st_mtime_ns, found.st_ctime_ns
    return FileState(file.path, found.st_dev, found.st_ino, found.st_size, *times)


def readable(path: str) -> None:
    """:raises Failed: the engine would take the path for a pattern, or for a place elsewhere"""
    if not path.startswith("/") or any(sign in path for sign in "*?[\0"):
        raise Failed("FILE_SCHEMA", f"path {path!r}")


def quoted(text: str) -> str:
    """A text in the engine's SQL.

    >>> quoted("a'b")
    "'a''b'"
    """
    if "\0" in text:
        raise Failed("FILE_SCHEMA", f"text {text!r}")
    return "'" + text.replace("'", "''") + "'"


def engine_type(spark_type: str) -> str:
    """
    >>> engine_type("INT"), engine_type("DECIMAL(7,2)")
    ('INTEGER', 'DECIMAL(7,2)')
    """
    found = spark_type if decimal_of(spark_type) else ENGINE_TYPES.get(spark_type)
    if found is None:
        raise Failed("FILE_SCHEMA", f"type {spark_type}")
    return found


class Footers:
    """Footers of files, each read once for a state of its file. Several threads may ask."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:", config=dict(SAFE))
        self._known: dict[FileState, Footer] = {}
        self._alike: dict[Footer, Footer] = {}
        self._lock = threading.Lock()

    def present(
        self, table: EngineTable, states: Sequence[FileState], rebase: str, go_on: Callable[[], None]
    ) -> list[frozenset[Present]]:
        """Which of the asked columns each file has; plain Spark gives null for the others.

        :param rebase: what Spark does with dates and times of files that do not tell their calendar
        :param go_on: called now and then; raises where nobody waits any more
        :raises Failed: a file that Spark reads in another way, or that cannot be read
        """
        for each in states:
            readable(each.path)
        names = {each.name.lower() for each in (*table.columns, *table.partition)}
        if len(names) < len(table.columns) + len(table.partition):
            raise Failed("FILE_SCHEMA", "columns whose names differ in case only")
        if len({each.path for each in states}) < len(states):
            raise Failed("FILE_SCHEMA", "a file that is listed twice")
        # Files of a table mostly have the same footer, by identity.
        found: dict[int, frozenset[Present]] = {}
        footers = self._of(states, go_on)
        for each, footer in zip(states, footers, strict=True):
            if id(footer) not in found:
                try:
                    found[id(footer)] = _present(table, footer, rebase)
                except Failed as failed:
                    raise Failed(failed.code, f"{each.path}: {failed.detail}") from None
        return [found[id(footer)] for footer in footers]

    def _of(self, states: Sequence[FileState], go_on: Callable[[], None]) -> list[Footer]:
        with self._lock:
            new = [each for each in states if each not in self._known]
            if len(self._known) + len(new) > REMEMBERED_FILES:
                self._known.clear()
                self._alike.clear()
                new = list(states)
            for start in range(0, len(new), FILES_AT_ONCE):
                go_on()
                some = new[start : start + FILES_AT_ONCE]
                for each, footer in zip(some, self._read([each.path for each in some]), strict=True):
                    self._known[each] = self._alike.setdefault(footer, footer)
            return [self._known[each] for each in states]

    def _read(self, paths: Sequence[str]) -> list[Footer]:
        listed = ", ".join(map(quoted, paths))
        try:
            schemas, keys, files = (
                self._database.execute(query.format(listed)).fetchall() for query in (_SCHEMAS, _KEYS, _FILES)
            )
        except duckdb.Error as error:
            raise Failed("FILE_SCHEMA", str(error)) from error
        elements: dict[str, list[_Element]] = defaultdict(list)
        for path, *rest in schemas:
            elements[path].append(_Element(*rest))
        told: dict[str, dict[bytes, bytes]] = defaultdict(dict)
        for path, key, value in keys:
            told[path][key] = value
        files_of = {path: (orders or [], writer or "") for path, orders, writer in files}
        return [_footer(elements[path], *files_of[path], told[path]) for path in paths]


class _Element(NamedTuple):
    """A row of `parquet_schema`: groups have no physical type, and their children come behind them."""

    name: str
    physical: str | None
    length: str | None
    repetition: str | None
    children: int | None
    converted: str | None
    scale: int | None
    precision: int | None
    logical: str | None
    engine: str | None


def _footer(elements: Sequence[_Element], orders: Sequence[str], writer: str, keys: dict[bytes, bytes]) -> Footer:
    columns = []
    at, leaf = 1, 0
    while at < len(elements):
        top, first = elements[at], leaf
        pending = 1
        while pending:
            pending += (elements[at].children or 0) - 1
            leaf += elements[at].physical is not None
            at += 1
        columns.append(_stored(top, first < len(orders) and orders[first] == _ORDERED))
    version = keys.get(b"org.apache.spark.version", b"").decode(errors="replace")
    # Spark may shift what others than its own library wrote, and compares versions as texts, too.
    proleptic = writer.startswith("parquet-mr") and version >= "3.1.0" and b"org.apache.spark.legacyINT96" not in keys
    return Footer(tuple(columns), version, b"org.apache.spark.legacyDateTime" in keys, proleptic)


def _stored(element: _Element, ordered: bool) -> Stored:
    plain = element.physical is not None and element.repetition in ("OPTIONAL", "REQUIRED")
    logical = (element.logical or "").replace(_MICROS, "us")
    # The engine prints a width of 8 bits as the character with that number.
    for bits in (8, 16, 32, 64):
        logical = logical.replace(f"bitWidth={chr(bits)},", f"bitWidth={bits},")
    form = (element.physical or "", element.converted or "", logical, element.engine or "") if plain else ()
    digits = None if element.precision is None else (element.precision, element.scale or 0)
    return Stored(element.name, form, digits, int(element.length or 0), ordered)


def _present(table: EngineTable, footer: Footer, rebase: str) -> frozenset[Present]:
    by_name = {each.name.lower(): each for each in footer.columns}
    if len(by_name) < len(footer.columns):
        raise Failed("FILE_SCHEMA", "columns whose names differ in case only")
    found = set()
    for column in table.columns:
        stored = by_name.get(column.name.lower())
        if stored is None:
            continue
        if stored.name != column.name:
            raise Failed("FILE_SCHEMA", f"column {column.name} is {stored.name}")
        if not _read_plainly(stored, column.data_type):
            raise Failed("FILE_SCHEMA", f"column {column.name} is {' '.join(filter(None, stored.form)) or 'nested'}")
        int96 = stored.form[0] == "INT96"
        if not (footer.proleptic_int96 if int96 else stored.form[-1] not in _REBASED or _proleptic(footer, rebase)):
            raise Failed("FILE_SCHEMA", f"column {column.name} may be of another calendar")
        found.add(Present(column.name, int96))
    return frozenset(found)


def _read_plainly(stored: Stored, spark_type: str) -> bool:
    digits = decimal_of(spark_type)
    if not stored.form or (stored.form[0].endswith("ARRAY") and not stored.ordered):
        return False
    return _decimal_plainly(stored, digits) if digits else stored.form in PLAIN.get(spark_type, frozenset())


def _decimal_plainly(stored: Stored, digits: tuple[int, int]) -> bool:
    precision, scale = digits
    physical, converted, logical, engine = stored.form
    fits = precision <= _DECIMAL_DIGITS.get(physical, 38)
    if physical.startswith("FIXED"):
        fits = 10**precision <= 1 << (8 * stored.length - 1)
    return (
        fits
        and stored.digits == digits
        and converted == "DECIMAL"
        and logical in ("", f"DecimalType(scale={scale}, precision={precision})")
        and engine == f"DECIMAL({precision},{scale})"
    )


def _proleptic(footer: Footer, rebase: str) -> bool:
    return not footer.hybrid and (footer.version >= "3.0.0" if footer.version else rebase == "CORRECTED")
