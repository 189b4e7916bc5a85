"""A job that ends as soon as it has its rows, while they are stored: `python -m tests.spark.stop_job STORE DATA`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.harness.session import spark_session

QUERIES = 3


def main(store: str, data: str) -> None:
    with spark_session(Path(store)) as spark:
        for number in range(QUERIES):
            rows = spark.read.parquet(data).where(f"k <> {number}").groupBy("k").agg({"text": "max"}).collect()
            print("rows", len(rows), max(row[1] for row in rows), sep="|")


if __name__ == "__main__":
    main(*sys.argv[1:])
