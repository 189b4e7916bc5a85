"""A driver's side of an engine's process: statements over Parquet files, rows as Arrow."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.harness.processes import Child, Wire

PREFIX = "spark.regions.platforms."
NUMBERS = itertools.count()


class EngineProcess(Child):
    """An engine with a folder of its own for what does not fit into memory."""

    def __init__(self, folder: Path, **confs: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        named = {PREFIX + name: value for name, value in confs.items()}
        super().__init__("spark_regions.platforms.duckdb", named, env={"TMPDIR": str(folder)})

    def wire(self) -> EngineWire:
        wire = EngineWire(self.answer["port"])
        self.shake_hands(wire)
        assert wire.hello is not None
        assert wire.hello["type"] == "hello", wire.hello
        return wire

    def run(self, sql: str, types: Sequence[str], **more: Any) -> pa.Table:
        """Rows of a statement on a connection of its own.

        Errors: `Refusal`.
        """
        wire = self.wire()
        try:
            wire.start(sql, types, **more)
            return wire.rows()
        finally:
            wire.close()

    def refused(self, sql: str, types: Sequence[str], **more: Any) -> str:
        """The code of a statement that has no rows."""
        try:
            rows = self.run(sql, types, **more)
        except Refusal as refusal:
            return refusal.code
        raise AssertionError(f"{rows.num_rows} rows")


class Refusal(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class EngineWire(Wire):
    """Frames and streams come through one buffer, so that a frame can follow a stream."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.incoming = self.socket.makefile("rb")

    def exactly(self, count: int) -> bytes | None:
        try:
            received = self.incoming.read(count)
        except ConnectionResetError:
            return None
        return received if len(received) == count else None

    def start(self, sql: str, types: Sequence[str], **more: Any) -> str:
        """:returns: the statement's id"""
        self.seq += 1
        asked = run(sql, types, **more) | {"seq": self.seq}
        self.say(asked)
        return str(asked["id"])

    def rows(self) -> pa.Table:
        """Of the next answer.

        Errors: `Refusal`.
        """
        answer = self.hear()
        assert answer is not None
        assert answer["type"] == "ran", answer
        if answer["error"]:
            raise Refusal(**answer["error"])
        with pa.ipc.open_stream(self.incoming) as stream:
            found = stream.read_all()
        assert found.num_rows == answer["rows"]
        return found


def run(sql: str, types: Sequence[str], tables: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    asked = {"type": "run", "id": f"s{next(NUMBERS)}", "sql": sql, "types": list(types), "tables": tables or {}}
    return asked | {"limitBytes": 256 << 20, "deadlineSeconds": 20.0} | more


def table(
    paths: Sequence[Path], columns: Mapping[str, str], partition: Mapping[str, str] | None = None,
    values: Sequence[Sequence[str | None]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What a statement reads, as Spark would list it."""
    some = values if values is not None else [()] * len(paths)
    files = [listed(path) | {"values": list(each)} for path, each in zip(paths, some, strict=True)]
    return {
        "files": files,
        "columns": [{"name": name, "dataType": data_type} for name, data_type in columns.items()],
        "partition": [{"name": name, "dataType": data_type} for name, data_type in (partition or {}).items()],
    }


def listed(path: Path) -> dict[str, Any]:
    found = path.stat()
    return {"path": str(path), "bytes": found.st_size, "modified": found.st_mtime_ns // 1_000_000}


def write(path: Path, columns: Mapping[str, Any], keys: Mapping[str, str] | None = None, **how: Any) -> Path:
    """A Parquet file; `keys`: of its footer."""
    written = pa.table(dict(columns))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(written.replace_schema_metadata(keys) if keys else written, path, **how)
    return path


def soon(seconds: float, act: Any) -> threading.Timer:
    """Does something in a while."""
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer
