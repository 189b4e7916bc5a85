"""Another engine as a process that does one thing at a time as it is told, by the lines of `benchmarks.driver`.

Started by `benchmarks.engines` with {"engine": "sail"} or {"engine": "duckdb"}; Sail is asked by Spark Connect, DuckDB
by its own Python. What an engine raises is an answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from benchmarks.rows import digest

CORES = 2
Query = Callable[[str], list[Any]]
Register = Callable[[str, str], object]


@contextmanager
def sail() -> Iterator[tuple[Query, Register]]:
    from pysail.spark import SparkConnectServer  # type: ignore[import-not-found]
    from pyspark.sql import SparkSession

    server = SparkConnectServer("127.0.0.1", 0)
    server.start()
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield (
        lambda text: spark.sql(text).collect(),
        lambda name, file: spark.read.parquet(file).createOrReplaceTempView(name),
    )
    spark.stop()
    server.stop()


@contextmanager
def duckdb() -> Iterator[tuple[Query, Register]]:
    import duckdb as engine

    with engine.connect() as connection:
        connection.execute(f"SET threads = {CORES}")

        def register(name: str, file: str) -> None:
            files = f"{file}/*.parquet" if os.path.isdir(file) else file
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{files}')")

        yield (lambda text: connection.execute(text.replace("`", '"')).fetchall(), register)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    engine = json.loads(sys.stdin.readline())["engine"]
    with {"sail": sail, "duckdb": duckdb}[engine]() as (query, register):
        print(json.dumps({engine: version("pysail" if engine == "sail" else engine)}), file=answers)
        for line in sys.stdin:
            print(json.dumps(_answer(query, register, json.loads(line))), file=answers)


def _answer(query: Query, register: Register, request: Mapping[str, Any]) -> dict[str, Any]:
    if request["task"] == "register":
        for name, file in request["tables"].items():
            register(name, file)
        return {}
    start = time.perf_counter()
    try:
        rows = query(request["text"])
    except Exception as error:  # the engine's own, of any class: it has no answer to this query
        return {"seconds": None, "rows": 0, "digest": None, "error": f"{type(error).__name__}: {error}"[:300]}
    return {"seconds": time.perf_counter() - start, "rows": len(rows), "digest": digest(rows)}


if __name__ == "__main__":
    main()
