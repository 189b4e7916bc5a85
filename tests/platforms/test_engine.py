"""The real process of an engine, over files that Spark could have listed."""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from engine_client import EngineProcess, EngineWire, Refusal, soon, table, write

from spark_regions.platforms.duckdb import database
from spark_regions.platforms.duckdb.engine import HOME, SWEPT_AFTER_SECONDS
from spark_regions.platforms.duckdb.footers import Failed, Footers, state
from spark_regions.platforms.duckdb.source import MOST_BRANCHES, literal, source
from spark_regions.wire.engine import EngineColumn, EngineFile
from spark_regions.wire.engine import EngineTable as Table
from tests.harness.processes import ROOT

LONG = "SELECT count(*) AS n FROM range(1000000000000) a(i) WHERE sin(i) > 2"
"""Does not end by itself."""
COUNT = "SELECT count(*) AS n FROM t"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    with EngineProcess(tmp_path_factory.mktemp("engine"), memory="512m") as running:
        assert "port" in running.answer, running.answer
        yield running


def until(condition, seconds: float = 5.0):
    """What it gives at last."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
    return found


def running(wire: EngineWire) -> list[str]:
    return wire.ask({"type": "ping"})["running"]


# What comes back.

TYPES = {
    "BOOLEAN": pa.array([True, False, None]),
    "TINYINT": pa.array([-128, 127, None], pa.int8()),
    "SMALLINT": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
    "INT": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
    "BIGINT": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
    "FLOAT": pa.array([-0.0, 3.4028234663852886e38, None], pa.float32()),
    "DOUBLE": pa.array([5e-324, -math.inf, None]),
    "DATE": pa.array([-719162, 2932896, None], pa.date32()),
    "TIMESTAMP": pa.array([-62135596800000000, 253402300799999999, None], pa.timestamp("us", "UTC")),
    "TIMESTAMP_NTZ": pa.array([-62135596800000000, 253402300799999999, None], pa.timestamp("us")),
    "STRING": pa.array(["", "a'\"\\\n\0ß😀", None]),
    "BINARY": pa.array([b"", b"\xff\0", None]),
    "DECIMAL(4,2)": pa.array([Decimal("-99.99"), Decimal("0.01"), None], pa.decimal128(4, 2)),
    "DECIMAL(9,0)": pa.array([Decimal(999999999), Decimal(-1), None], pa.decimal128(9, 0)),
    "DECIMAL(18,18)": pa.array([Decimal("0.999999999999999999"), Decimal("-1e-18"), None], pa.decimal128(18, 18)),
    "DECIMAL(38,10)": pa.array([Decimal("-" + "9" * 28 + ".0000000001"), Decimal(0), None], pa.decimal128(38, 10)),
}


@pytest.mark.parametrize("integers", [False, True])
def test_rows_of_every_type_come_as_they_are_stored(engine: EngineProcess, tmp_path: Path, integers: bool) -> None:
    file = write(tmp_path / "f.parquet", TYPES, store_decimal_as_integer=integers)
    columns = ", ".join(f'"{name}" AS "{name}"' for name in TYPES)
    found = engine.run(
        f'SELECT {columns} FROM t', list(TYPES), tables={"t": table([file], {name: name for name in TYPES})},
        zone="America/Los_Angeles",
    )  # fmt: skip
    for name, expected in TYPES.items():
        assert found[name].combine_chunks().cast(expected.type).equals(expected), name
        if name == "TIMESTAMP":
            assert str(found[name].type) == "timestamp[us, tz=America/Los_Angeles]"
        else:
            assert found[name].type == expected.type


def test_floating_point_numbers_are_read_as_they_are_whatever_minima_and_maxima_tell(
    engine: EngineProcess, tmp_path: Path
) -> None:
    values = [1.0, math.nan, 2.0, -0.0, 0.0]
    file = write(tmp_path / "f.parquet", {"x": values, "f": pa.array(values, pa.float32())})
    tables = {"t": table([file], {"x": "DOUBLE", "f": "FLOAT"})}
    bits = engine.run('SELECT "x" AS x FROM t', ["DOUBLE"], tables=tables)["x"].to_pylist()
    assert [struct.pack(">d", each) for each in bits if each == 0] == [struct.pack(">d", -0.0), struct.pack(">d", 0.0)]
    greater = 'SELECT count(*) AS n FROM t WHERE "x" > 5'
    assert engine.run(greater, ["BIGINT"], tables=tables)["n"].to_pylist() == [1]
    (most,) = engine.run('SELECT max("x") AS x, max("f") AS f FROM t', ["DOUBLE", "FLOAT"], tables=tables).to_pylist()
    assert math.isnan(most["x"])
    assert math.isnan(most["f"])
    plain = write(tmp_path / "plain.parquet", {"x": [1.0, 2.0]})
    most = engine.run('SELECT max("x") AS x FROM t', ["DOUBLE"], tables={"t": table([plain], {"x": "DOUBLE"})})
    assert most["x"].to_pylist() == [2.0]


def test_a_column_that_a_file_does_not_have_is_null(engine: EngineProcess, tmp_path: Path) -> None:
    old = write(tmp_path / "old.parquet", {"a": [1]})
    new = write(tmp_path / "new.parquet", {"b": ["x"], "a": [2]})
    tables = {"t": table([old, new], {"a": "BIGINT", "b": "STRING", "c": "DECIMAL(7,2)"})}
    found = engine.run('SELECT * FROM t ORDER BY "a"', ["BIGINT", "STRING", "DECIMAL(7,2)"], tables=tables)
    assert found.to_pylist() == [{"a": 1, "b": None, "c": None}, {"a": 2, "b": "x", "c": None}]


PARTITIONS = {
    "INT": ("-5", -5), "TINYINT": ("127", 127), "BIGINT": ("9223372036854775807", 2**63 - 1), "BOOLEAN": ("true", True),
    "STRING": ("it's 100%2F ü", "it's 100%2F ü"), "DATE": ("-719162", datetime.date(1, 1, 1)),
    "DECIMAL(7,2)": ("-12345.60", Decimal("-12345.60")),
}  # fmt: skip


@pytest.mark.parametrize("data_type", PARTITIONS)
def test_partition_values_are_those_that_spark_listed(engine: EngineProcess, tmp_path: Path, data_type: str) -> None:
    text, value = PARTITIONS[data_type]
    # Paths say something else.
    files = [write(tmp_path / f"p=7{at}" / "f.parquet", {"a": [at], "p": [99]}) for at in range(3)]
    tables = {"t": table(files, {"a": "BIGINT"}, {"p": data_type}, [[text], [None], [text]])}
    found = engine.run('SELECT "a" AS a, "p" AS p FROM t ORDER BY "a"', ["BIGINT", data_type], tables=tables)
    assert found["p"].to_pylist() == [value, None, value]
    filtered = 'SELECT "a" AS a FROM t WHERE "p" IS NOT NULL ORDER BY "a"'
    assert engine.run(filtered, ["BIGINT"], tables=tables)["a"].to_pylist() == [0, 2]


def test_relations_without_files_or_columns(engine: EngineProcess, tmp_path: Path) -> None:
    nothing = {"t": table([], {"a": "INT", "b": "TIMESTAMP"}, {"p": "STRING"})}
    assert engine.run("SELECT * FROM t", ["INT", "TIMESTAMP", "STRING"], tables=nothing, zone="UTC").num_rows == 0
    file = write(tmp_path / "f.parquet", {"a": [1, 2, 3]})
    assert engine.run(COUNT, ["BIGINT"], tables={"t": table([file], {})})["n"].to_pylist() == [3]


def test_columns_that_are_called_like_those_that_the_engine_adds(engine: EngineProcess, tmp_path: Path) -> None:
    names = ("filename", "file_row_number", "file_index", "rowid", "any", 'qu"ote', "select", "ü")
    file = write(tmp_path / "f.parquet", {name: [at] for at, name in enumerate(names)})
    found = engine.run("SELECT * FROM t", ["BIGINT"] * 8, tables={"t": table([file], dict.fromkeys(names, "BIGINT"))})
    assert found.to_pylist() == [{name: at for at, name in enumerate(names)}]


def test_a_table_that_is_read_twice_and_one_that_is_computed_once(engine: EngineProcess, tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", {"a": list(range(100))})
    sql = (
        'WITH x AS MATERIALIZED (SELECT "a" AS c1 FROM t WHERE "a" < 10) '
        'SELECT count(*) AS n FROM x, t AS other, x AS again WHERE x.c1 = other."a" AND again.c1 = x.c1'
    )
    assert engine.run(sql, ["BIGINT"], tables={"t": table([file], {"a": "BIGINT"})})["n"].to_pylist() == [10]


def test_the_zone_and_the_optimizers_are_the_statement_s_alone(engine: EngineProcess) -> None:
    sql = "SELECT current_setting('TimeZone') AS z, current_setting('disabled_optimizers') AS d"
    off = ["join_filter_pushdown", "late_materialization"]
    said = engine.run(sql, ["STRING"] * 2, zone="Asia/Kathmandu", disabled=off).to_pylist()
    assert said == [{"z": "Asia/Kathmandu", "d": ",".join(off)}]
    assert engine.run(sql, ["STRING"] * 2, zone="UTC").to_pylist() == [{"z": "UTC", "d": ""}]
    assert engine.refused(sql, ["STRING"] * 2, zone="Not/AZone") == "ENGINE_ERROR"
    assert engine.refused(sql, ["STRING"] * 2, disabled=["no such"]) == "ENGINE_ERROR"


def test_columns_of_other_types_than_were_told_are_no_answer(engine: EngineProcess) -> None:
    assert engine.refused("SELECT 1 AS n", ["BIGINT"]) == "ENGINE_ERROR"
    assert engine.refused("SELECT sum(1) AS n", ["BIGINT"]) == "ENGINE_ERROR"
    assert engine.refused("SELECT 1 AS n, 2 AS m", ["INT"]) == "ENGINE_ERROR"
    assert engine.refused("SELECT 1.5 AS n", ["DECIMAL(3,1)"]) == "ENGINE_ERROR"
    assert engine.run("SELECT 1.5 AS n", ["DECIMAL(2,1)"])["n"].to_pylist() == [Decimal("1.5")]


def test_a_result_has_a_limit(engine: EngineProcess) -> None:
    sql = "SELECT i AS i FROM range(1000000) t(i)"
    assert engine.run(sql, ["BIGINT"], limitBytes=16_000_000).num_rows == 1_000_000
    assert engine.refused(sql, ["BIGINT"], limitBytes=4_000_000) == "RESULT_TOO_LARGE"


def test_an_error_in_the_middle_of_the_rows_leaves_none(engine: EngineProcess) -> None:
    sql = "SELECT CASE WHEN i = 3000000 THEN error('boom') ELSE i END AS i FROM range(4000000) t(i)"
    with pytest.raises(Refusal, match=r"ENGINE_ERROR: .*boom"):
        engine.run(sql, ["BIGINT"])


# What a statement can reach.


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '{there}'",
        "ATTACH '{there}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT 1; SELECT 2",
        "CREATE TABLE x AS SELECT 1",
        "SELECT * FROM database",
        "SELECT",
        "",
        "SELECT * FROM 'https://localhost/f.parquet'",
    ],
)
def test_a_statement_reaches_its_tables_alone(engine: EngineProcess, tmp_path: Path, sql: str) -> None:
    there = tmp_path / "there"
    assert engine.refused(sql.format(there=there), ["INT"]) == "ENGINE_ERROR"
    assert not there.exists()


def test_a_file_of_another_statement_is_out_of_reach(engine: EngineProcess, tmp_path: Path) -> None:
    mine, other = (write(tmp_path / name, {"a": [1]}) for name in ("mine.parquet", "other.parquet"))
    tables = {"t": table([mine], {"a": "BIGINT"})}
    assert engine.run(COUNT, ["BIGINT"], tables={"t": table([other], {"a": "BIGINT"})}).num_rows == 1
    assert engine.refused(f"SELECT count(*) AS n FROM read_parquet('{other}')", ["BIGINT"], tables=tables) == (
        "ENGINE_ERROR"
    )
    overwrite = f"COPY (SELECT 2 AS a) TO '{mine}'"
    assert engine.refused(overwrite, ["BIGINT"], tables=tables) == "ENGINE_ERROR"
    assert engine.run(COUNT, ["BIGINT"], tables=tables)["n"].to_pylist() == [1]


HOSTILE = [
    "it's",
    'qu"ote',
    "ünïcode 😀",
    "back\\slash",
    "new\nline",
    "a=b%2F",
    "-- comment",
    "{0}",
    "$1",
    "semi;colon",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_paths_are_no_sql(engine: EngineProcess, tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name / f"{name}.parquet", {"a": [1]})
    tables = {"t": table([file], {"a": "BIGINT"}, {"p": "STRING"}, [[name]])}
    assert engine.run('SELECT "p" AS p FROM t', ["STRING"], tables=tables)["p"].to_pylist() == [name]


@pytest.mark.parametrize("name", ["a[b]", "a*", "a?"])
def test_paths_that_the_engine_takes_for_patterns_are_refused(engine: EngineProcess, tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name / "f.parquet", {"a": [1]})
    assert engine.refused(COUNT, ["BIGINT"], tables={"t": table([file], {})}) == "FILE_SCHEMA"


def test_a_relative_path_a_folder_and_a_file_that_is_listed_twice_are_refused(
    engine: EngineProcess, tmp_path: Path
) -> None:
    file = write(tmp_path / "f.parquet", {"a": [1]})
    relative = Path(os.path.relpath(file, ROOT))
    assert engine.refused(COUNT, ["BIGINT"], tables={"t": table([file, file], {})}) == "FILE_SCHEMA"
    assert engine.refused(COUNT, ["BIGINT"], tables={"t": table([tmp_path], {})}) == "INPUT_CHANGED"
    tables = {"t": table([file], {})}
    tables["t"]["files"][0]["path"] = str(relative)
    assert engine.refused(COUNT, ["BIGINT"], tables=tables) == "FILE_SCHEMA"


# Which files are read.

WRITTEN = {"org.apache.spark.version": "4.3.0"}
LEGACY = "org.apache.spark.legacyDateTime"
DAYS = pa.array([1], pa.date32())
MICROS = pa.array([1], pa.timestamp("us", "UTC"))
PLANTED = {
    "unsigned": ({"a": pa.array([1], pa.uint32())}, "BIGINT", {}, {}),
    "unsigned, 8 bits": ({"a": pa.array([1], pa.uint8())}, "SMALLINT", {}, {}),
    "unsigned, 64 bits": ({"a": pa.array([1], pa.uint64())}, "DECIMAL(20,0)", {}, {}),
    "INT96 of another writer": ({"a": MICROS}, "TIMESTAMP", WRITTEN, {"use_deprecated_int96_timestamps": True}),
    "milliseconds": ({"a": pa.array([1], pa.timestamp("ms", "UTC"))}, "TIMESTAMP", {}, {}),
    "nanoseconds": ({"a": pa.array([1], pa.timestamp("ns", "UTC"))}, "BIGINT", {}, {"version": "2.6"}),
    "local time as an instant": ({"a": pa.array([1], pa.timestamp("us"))}, "TIMESTAMP", {}, {}),
    "an instant as local time": ({"a": MICROS}, "TIMESTAMP_NTZ", {}, {}),
    "a date as a time": ({"a": DAYS}, "TIMESTAMP_NTZ", {}, {}),
    "a widened integer": ({"a": pa.array([1], pa.int32())}, "BIGINT", {}, {}),
    "a narrowed integer": ({"a": pa.array([1], pa.int32())}, "SMALLINT", {}, {}),
    "an integer as a double": ({"a": pa.array([1], pa.int32())}, "DOUBLE", {}, {}),
    "a widened float": ({"a": pa.array([1.5], pa.float32())}, "DOUBLE", {}, {}),
    "a wider decimal": ({"a": pa.array([Decimal("1.5")], pa.decimal128(7, 1))}, "DECIMAL(9,1)", {}, {}),
    "a decimal of another scale": ({"a": pa.array([Decimal("1.5")], pa.decimal128(7, 1))}, "DECIMAL(8,2)", {}, {}),
    "bytes as a text": ({"a": [b"x"]}, "STRING", {}, {}),
    "a text as bytes": ({"a": ["x"]}, "BINARY", {}, {}),
    "bytes of one length": ({"a": pa.array([b"xy"], pa.binary(2))}, "BINARY", {}, {}),
    "half a float": ({"a": pa.array([1.0]).cast(pa.float16())}, "FLOAT", {}, {}),
    "time of day": ({"a": pa.array([1], pa.time64("us"))}, "BIGINT", {}, {}),
    "a list": ({"a": [[1]]}, "BIGINT", {}, {}),
    "a struct": ({"a": [{"a": 1}]}, "BIGINT", {}, {}),
    "a type that is not known": ({"a": [1]}, "CHAR(3)", {}, {}),
    "another case": ({"A": [1]}, "BIGINT", {}, {}),
    "two cases": ({"A": [1], "a": [1]}, "BIGINT", {}, {}),
    "two cases of another column": ({"a": [1], "B": [1], "b": [1]}, "BIGINT", {}, {}),
    "dates of Spark 2": ({"a": DAYS}, "DATE", {"org.apache.spark.version": "2.4.8"}, {}),
    "dates of the hybrid calendar": ({"a": DAYS}, "DATE", WRITTEN | {LEGACY: ""}, {}),
    "times of the hybrid calendar": ({"a": MICROS}, "TIMESTAMP", WRITTEN | {LEGACY: ""}, {}),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_file_that_spark_reads_otherwise_is_refused(engine: EngineProcess, tmp_path: Path, case: str) -> None:
    columns, data_type, keys, how = PLANTED[case]
    file = write(tmp_path / "f.parquet", columns, keys, **how)
    good = write(tmp_path / "g.parquet", {"b": [1]})
    tables = {"t": table([good, file], {"a": data_type})}
    with pytest.raises(Refusal, match="FILE_SCHEMA: ") as refusal:
        engine.run('SELECT "a" AS a FROM t', [data_type], tables=tables)
    assert str(file) in refusal.value.detail or data_type == "CHAR(3)"
    # A column that nobody asks for is of no interest, but for one that differs in case.
    if case not in ("another case", "two cases", "two cases of another column"):
        assert engine.run(COUNT, ["BIGINT"], tables={"t": table([file], {})})["n"].to_pylist() == [1]


def test_the_calendar_of_files_that_do_not_tell_it_is_that_of_the_session(
    engine: EngineProcess, tmp_path: Path
) -> None:
    untold = {"t": table([write(tmp_path / "f.parquet", {"a": DAYS})], {"a": "DATE"})}
    told = {"t": table([write(tmp_path / "g.parquet", {"a": DAYS}, WRITTEN)], {"a": "DATE"})}
    for rebase in ("EXCEPTION", "LEGACY"):
        assert engine.refused(COUNT, ["BIGINT"], tables=untold, rebase=rebase) == "FILE_SCHEMA"
        assert engine.run(COUNT, ["BIGINT"], tables=told, rebase=rebase).num_rows == 1
    assert engine.run(COUNT, ["BIGINT"], tables=untold, rebase="CORRECTED").num_rows == 1


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no Parquet" * 10, b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_what_is_no_parquet_is_refused(engine: EngineProcess, tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "f.parquet"
    file.write_bytes(damage)
    assert engine.refused(COUNT, ["BIGINT"], tables={"t": table([file], {})}) == "FILE_SCHEMA"


def test_many_partitions_too_many_and_values_that_are_none(engine: EngineProcess, tmp_path: Path) -> None:
    files = [write(tmp_path / f"{at}.parquet", {"a": [at]}) for at in range(300)]
    values = [[str(at)] for at in range(300)]
    many = {"t": table(files, {"a": "BIGINT"}, {"p": "INT"}, values)}
    sql = 'SELECT sum("a")::BIGINT AS a, count(*) AS n FROM t WHERE "p" >= 298 AND "a" = "p"'
    assert engine.run(sql, ["BIGINT"] * 2, tables=many).to_pylist() == [{"a": 597, "n": 2}]
    # As many in one relation, without writing them: that they are too many is found before they are read together.
    with pytest.raises(Failed, match="FILE_SCHEMA: 2001 partitions"):
        listed = tuple(EngineFile("/f", 1, 1, (str(at),)) for at in range(MOST_BRANCHES + 1))
        source(Table(listed, (), (EngineColumn("p", "INT"),)), [frozenset()] * len(listed))
    wrong = {"INT": "1.5", "DATE": "x", "DECIMAL(7,2)": "1.555", "BOOLEAN": "yes", "DOUBLE": "1"}
    for data_type, value in wrong.items():
        tables = {"t": table(files[:1], {}, {"p": data_type}, [[value]])}
        assert engine.refused(COUNT, ["BIGINT"], tables=tables) == "FILE_SCHEMA"
    assert engine.refused(COUNT, ["BIGINT"], tables={"t": table(files[:1], {}, {"p": "INT"})}) == "FILE_SCHEMA"


def test_literals_are_no_sql() -> None:
    assert literal("a'); DROP", "STRING") == "CAST('a''); DROP' AS VARCHAR)"
    for value, data_type in (("1 OR 1", "INT"), ("\0", "STRING"), ("1e5", "DECIMAL(7,2)"), ("nan", "DECIMAL(7,2)")):
        with pytest.raises(Failed):
            literal(value, data_type)


# Files that change.


def test_a_file_that_is_not_as_spark_listed_it(engine: EngineProcess, tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", {"a": [1]})
    tables = {"t": table([file], {"a": "BIGINT"})}
    assert engine.run(COUNT, ["BIGINT"], tables=tables).num_rows == 1
    os.utime(file, (1, 1))
    assert engine.refused(COUNT, ["BIGINT"], tables=tables) == "INPUT_CHANGED"
    file.unlink()
    assert engine.refused(COUNT, ["BIGINT"], tables=tables) == "INPUT_CHANGED"


@pytest.mark.parametrize("change", ["rewritten", "removed", "same time and size"])
def test_a_file_that_changes_while_a_statement_runs(engine: EngineProcess, tmp_path: Path, change: str) -> None:
    file = write(tmp_path / "f.parquet", {"a": list(range(1000))})
    before = file.stat()

    def act() -> None:
        if change == "removed":
            file.unlink()
            return
        write(tmp_path / "g", {"a": list(range(1000, 2000))})
        shutil.move(tmp_path / "g", file)
        if change == "same time and size":
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    sql = 'SELECT count(*) AS n FROM t, range(100000) r(i) WHERE sin("a" * i) > 2'
    soon(0.3, act)
    began = time.monotonic()
    assert engine.refused(sql, ["BIGINT"], tables={"t": table([file], {"a": "BIGINT"})}) == "INPUT_CHANGED"
    assert time.monotonic() - began > 0.3, "the statement was over before the change"


def test_footers_are_read_once_for_a_state_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(tmp_path / f"{at}.parquet", {"a": [at]}) for at in range(3)]
    footers, read = Footers(), []
    reading = footers._read
    monkeypatch.setattr(footers, "_read", lambda paths: read.append(len(paths)) or reading(paths))

    def look() -> None:
        listed = [state(EngineFile(str(file), file.stat().st_size, file.stat().st_mtime_ns // 10**6)) for file in files]
        footers.present(Table(()), listed, "CORRECTED", lambda: None)

    look()
    look()
    assert read == [3]
    write(files[1], {"a": [1], "b": [2]})
    look()
    assert read == [3, 1]


# Several statements, and their end.


def test_statements_of_one_connection_answer_as_they_end(engine: EngineProcess) -> None:
    wire = engine.wire()
    slow = wire.start(LONG, ["BIGINT"])
    wire.start("SELECT 1 AS n", ["INT"])
    assert wire.rows()["n"].to_pylist() == [1]
    wire.start("SELECT 2 AS n", ["INT"])
    assert wire.rows()["n"].to_pylist() == [2]
    other = engine.wire()
    assert running(other) == [slow]
    assert other.ask({"type": "cancel", "id": slow})["found"]
    with pytest.raises(Refusal, match="CANCELLED"):
        wire.rows()
    # The connection is of use still.
    wire.start("SELECT 3 AS n", ["INT"])
    assert wire.rows()["n"].to_pylist() == [3]
    assert not other.ask({"type": "cancel", "id": slow})["found"]


def test_an_id_is_of_one_statement(engine: EngineProcess) -> None:
    wire = engine.wire()
    slow = wire.start(LONG, ["BIGINT"])
    other = engine.wire()
    until(lambda: running(other) == [slow])
    other.start("SELECT 1 AS n", ["INT"], id=slow)
    with pytest.raises(Refusal, match="ENGINE_ERROR"):
        other.rows()
    assert running(other) == [slow]
    wire.close()


@pytest.mark.parametrize(
    "sql",
    [
        LONG,
        "SELECT count(*) AS n FROM range(100000) a(i), range(100000) b(j) WHERE i * j % 7919 = sin(i)",
        "SELECT count(*) AS n FROM (SELECT md5(i::VARCHAR) AS m FROM range(100000000) a(i) ORDER BY m OFFSET 5)",
        "SELECT i AS n FROM range(100000000000) a(i)",
    ],
)
def test_a_statement_ends_within_a_second_of_its_cancelling(engine: EngineProcess, sql: str) -> None:
    wire, other = engine.wire(), engine.wire()
    asked = wire.start(sql, ["BIGINT"], limitBytes=1 << 40)
    time.sleep(0.3)
    began = time.monotonic()
    assert other.ask({"type": "cancel", "id": asked})["found"]
    with pytest.raises(Refusal, match="CANCELLED"):
        wire.rows()
    assert time.monotonic() - began < 1.0
    assert running(other) == []


def test_a_statement_whose_connection_ends_is_over(engine: EngineProcess) -> None:
    wire, other = engine.wire(), engine.wire()
    asked = wire.start(LONG, ["BIGINT"])
    until(lambda: running(other) == [asked])
    wire.socket.shutdown(2)
    wire.close()
    until(lambda: running(other) == [], 1.0)


def test_a_deadline_ends_a_statement(engine: EngineProcess) -> None:
    began = time.monotonic()
    assert engine.refused(LONG, ["BIGINT"], deadlineSeconds=0.3) == "DEADLINE"
    assert time.monotonic() - began < 1.3


def test_many_at_once(engine: EngineProcess, tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", {"a": list(range(10_000))})
    wires = [engine.wire() for _ in range(8)]
    for at, wire in enumerate(wires):
        sql = f'SELECT sum("a" + {at})::BIGINT AS n FROM t'
        wire.start(sql, ["BIGINT"], tables={"t": table([file], {"a": "BIGINT"})})
    found = [wire.rows()["n"].to_pylist() for wire in wires]
    assert found == [[49_995_000 + 10_000 * at] for at in range(8)]


# Memory and disk.


def test_out_of_memory_and_out_of_disk(tmp_path: Path) -> None:
    with EngineProcess(tmp_path / "engine", memory="64m", maxTempBytes="1m") as small:
        hoard = "SELECT len(list(i)) AS n FROM range(30000000) t(i)"
        assert small.refused(hoard, ["BIGINT"]) == "ENGINE_OUT_OF_MEMORY"
        sort = "SELECT md5(i::VARCHAR) AS m, md5((i + 1)::VARCHAR) AS n FROM range(4000000) t(i) ORDER BY m"
        assert small.refused(sort, ["STRING"] * 2, limitBytes=1 << 40) == "ENGINE_DISK_FULL"
        assert small.run("SELECT 1 AS n", ["INT"]).num_rows == 1


def test_what_does_not_fit_into_memory_goes_to_disk_and_is_removed(tmp_path: Path) -> None:
    with EngineProcess(tmp_path / "engine", memory="64m") as small:
        wire = small.wire()
        sql = "SELECT md5(i::VARCHAR) AS m FROM range(4000000) t(i) ORDER BY m"
        asked = wire.start(sql, ["STRING"], limitBytes=1 << 40)
        until(lambda: list(small.folder.rglob("duckdb_temp*")), 10.0)
        small.wire().ask({"type": "cancel", "id": asked})
        until(lambda: not list(small.folder.rglob("duckdb_temp*")))
        assert Path(ROOT, ".tmp").exists() is False


class Pretended(database.Database):
    """A database that has memory in use."""

    def __init__(self, used: int = 0) -> None:
        self.used = used
        self.has = 0

    def limit(self, memory_bytes: int) -> None:
        if memory_bytes < self.used:
            raise database.duckdb.OutOfMemoryException("in use")
        self.has = memory_bytes


def test_memory_is_parted_and_given_back() -> None:
    memory = database.Memory(600 << 20)
    one, two, three = Pretended(), Pretended(), Pretended()
    with memory.part(one):
        assert one.has == 600 << 20
        with memory.part(two):
            assert (one.has, two.has) == (300 << 20, 300 << 20)
            with memory.part(three):
                assert (one.has, two.has, three.has) == (200 << 20,) * 3
            assert (one.has, two.has) == (300 << 20, 300 << 20)
        assert one.has == 600 << 20
    greedy = Pretended(590 << 20)
    with memory.part(greedy):
        with pytest.raises(Failed, match="ENGINE_OUT_OF_MEMORY"), memory.part(one):
            raise AssertionError
        assert greedy.has == 600 << 20


# The process.


def test_wrong_token_and_garbage(engine: EngineProcess) -> None:
    refused = engine.connect(token="guess")
    assert refused.hello is not None
    assert refused.hello["code"] == "BAD_TOKEN"
    assert refused.hear() is None
    wire = engine.wire()
    assert wire.ask({"type": "no such thing"})["code"] == "UNKNOWN_TYPE"
    unfit = wire.ask({"type": "run", "id": 3})
    assert (unfit["type"], unfit["code"]) == ("error", "ENGINE_ERROR")
    assert wire.ask({"type": "ping"})["type"] == "pong"
    for bad in (b"[1, 2]", b"not json", b"\xff\xfe"):
        again = engine.wire()
        again.say_bytes(bad)
        assert again.hear() is None


@pytest.mark.parametrize("line", ["", "not json", "{}", '{"token": "x", "version": "", "protocol": 99}'])
def test_a_bad_greeting_is_answered(line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spark_regions.platforms.duckdb"], input=line + "\n", capture_output=True, text=True,
        cwd=ROOT, timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"] in ("BAD_GREETING", "PROTOCOL_MISMATCH")


def test_without_duckdb_the_answer_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise ImportError('no duckdb here')")
    greeting = json.dumps({"token": "x", "version": "0", "protocol": 1, "confs": {}})
    done = subprocess.run(
        [sys.executable, "-m", "spark_regions.platforms.duckdb"], input=greeting + "\n", capture_output=True, text=True,
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tmp_path)}, timeout=20, check=False,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["error"]) == (2, "ENGINE_NOT_INSTALLED")
    assert "spark-regions[duckdb]" in answer["detail"]


def test_end_of_stdin_ends_the_process_and_what_it_wrote(tmp_path: Path) -> None:
    engine = EngineProcess(tmp_path / "engine", memory="64m")
    engine.wire().start(LONG, ["BIGINT"])
    assert list(engine.folder.glob(f"{HOME}*"))
    status, seconds, complaints = engine.end()
    assert status == 0
    assert seconds < 1.0
    assert "Traceback" not in complaints
    assert list(engine.folder.glob(f"{HOME}*")) == []


def test_what_a_killed_engine_left_is_swept_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    dead = EngineProcess(folder)
    os.kill(dead.process.pid, signal.SIGKILL)
    dead.process.wait()
    with EngineProcess(folder) as living:
        left = list(folder.glob(f"{HOME}*"))
        assert len(left) == 2
        for each in left:
            (each / "something").write_text("x")
            os.utime(each, (time.time() - 2 * SWEPT_AFTER_SECONDS,) * 2)
        with EngineProcess(folder):
            kept = set(folder.glob(f"{HOME}*"))
            assert len(kept) == 2
            assert len(kept & set(left)) == 1, "that of the living one"
        assert living.run("SELECT 1 AS n", ["INT"]).num_rows == 1
