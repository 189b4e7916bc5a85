"""What plain Spark answers to each query, as digests: one JSON file for a suite and a minor version of Spark.

Written by `python -m tests.tpc.run --suite tpch --write-golden`. A query is null where plain Spark itself answers
otherwise from run to run, by sums of doubles; such a query is always compared with a plain run beside it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyspark
from pyarrow import parquet

from examples.data import tables

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Golden:
    """:param tables: digests of the rows that the queries were asked of"""

    tables: dict[str, str]
    queries: dict[int, str | None]


def file(suite: str) -> Path:
    return FOLDER / ".".join(pyspark.__version__.split(".")[:2]) / f"{suite}.json"


def read(suite: str) -> Golden:
    found = json.loads(file(suite).read_text())
    return Golden(found["tables"], {int(number): digest for number, digest in found["queries"].items()})


def write(suite: str, golden: Golden) -> None:
    file(suite).parent.mkdir(parents=True, exist_ok=True)
    file(suite).write_text(json.dumps({"tables": golden.tables, "queries": golden.queries}, indent=1) + "\n")


def table_digests(folder: Path) -> dict[str, str]:
    """Of rows and types, whatever the files' encoding."""
    return {name: _rows_digest(parquet.read_table(path)) for name, path in tables(folder).items()}


def _rows_digest(table: pa.Table) -> str:
    stream = pa.BufferOutputStream()
    plain = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(stream, plain.schema) as writer:
        writer.write_table(plain)
    return hashlib.sha256(stream.getvalue()).hexdigest()[:16]
