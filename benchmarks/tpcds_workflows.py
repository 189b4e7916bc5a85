"""TPC-DS plans as workflow DAGs with measured sizes and times, for `benchmarks.region_plans` and `spark-regions plan`.

python -m benchmarks.tpcds_workflows [--scale 0.01] --to folder

Every query runs once, observed only. A file for each query, and `all.json` for all of them merged by lineage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from examples import data
from spark_regions.dag.workflow import document
from spark_regions.runs.recorded_query import RecordedQuery, decode
from spark_regions.runs.workflow import workflow
from spark_regions.store import admin
from spark_regions.store.steps import steps_of
from tests.harness.session import spark_session

NAME, NAMESPACE = "tpcds", "bench"
CONFS = {"spark.regions.mode": "observe", "spark.regions.recycle.namespace": NAMESPACE, "spark.app.name": NAME}


def recorded(scale: float, root: Path) -> dict[str, RecordedQuery]:
    """Query to what was recorded of it."""
    tables, queries = data.tables(data.tpcds(scale, root)), data.tpcds_queries()
    with tempfile.TemporaryDirectory(prefix="spark-regions-bench-") as name:
        with spark_session(Path(name), CONFS) as spark:
            for view, file in tables.items():
                spark.read.parquet(str(file)).createOrReplaceTempView(view)
            for number, text in queries.items():
                spark.sql(text).collect()
                print(number, end=" ", file=sys.stderr, flush=True)
        with admin.opened(name, NAMESPACE) as store:
            bodies = store.catalog.read(lambda connection: steps_of(connection, NAME))
    if len(bodies) != len(queries):
        raise SystemExit(f"error: {len(bodies)} steps recorded of {len(queries)} queries; a query lacks its own.")
    return {f"q{number}": decode(body) for number, body in zip(queries, bodies, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpcds_workflows", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--data", type=Path, default=data.DATA)
    parser.add_argument("--to", type=Path, required=True, help="folder for the DAGs")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    steps = recorded(given.scale, given.data)
    for name, part in [*((name, [step]) for name, step in steps.items()), ("all", list(steps.values()))]:
        (given.to / f"{name}.json").write_text(json.dumps(document(workflow(part, name)), indent=1) + "\n")
    print(f"{len(steps)} queries and all of them merged: {given.to}")


if __name__ == "__main__":
    main()
