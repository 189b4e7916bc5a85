"""Small jobs in one driver process, steered by lines of JSON on stdin, so that a test can break things in between.

    python -m tests.spark.fault_job [jar]

`{"start": confs}` ends the application and starts another; its answer holds the message where Spark refuses.
`{"run": folder of tables, "set": confs}` is answered by the queries' rows, or the error, and what the plugin says;
with `"queries"`, of others than these.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.harness.session import BASE, decisions, register, settle, status

QUERIES = (
    "SELECT o_orderpriority, count(*) AS n, sum(l_quantity) AS q FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
    " GROUP BY o_orderpriority",
    "SELECT l_orderkey, l_linenumber, o_custkey FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
    " WHERE l_quantity > 45",
)


def main() -> None:
    jars = [f"--jars {jar}" for jar in sys.argv[1:]]
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*jars, "--driver-memory 1g pyspark-shell"])
    # Launched without confs: those of a first application would be defaults of all later ones.
    SparkContext._ensure_initialized()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        if "start" in wanted:
            print(json.dumps(start(wanted["start"])), flush=True)
        else:
            print(
                json.dumps(run(Path(wanted["run"]), wanted.get("set", {}), wanted.get("queries", QUERIES))), flush=True
            )
    stop()


def stop() -> None:
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()


def start(confs: Mapping[str, str]) -> dict[str, Any]:
    stop()
    builder = SparkSession.builder.appName("faults")
    for key, value in (BASE | dict(confs)).items():
        builder = builder.config(key, value)
    try:
        builder.getOrCreate().sql("SELECT 1")
    except PySparkException as error:
        return {"message": str(error)}
    return {"message": None}


def run(tables: Path, confs: Mapping[str, str], queries: Iterable[str]) -> dict[str, Any]:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    begin = time.perf_counter()
    try:
        for key, value in confs.items():
            spark.conf.set(key, value)
        register(spark, tables)
        rows = [sorted(str(tuple(row)) for row in spark.sql(query).collect()) for query in queries]
        found: dict[str, Any] = {"rows": rows, "error": None}
    except (PySparkException, Py4JJavaError) as error:
        found = {"rows": None, "error": str(error)}
    found["seconds"] = time.perf_counter() - begin
    if "spark.regions.enabled" not in dict(spark.sparkContext.getConf().getAll()):
        return found
    settle(spark)
    return found | {"status": status(spark), "decisions": [str(decision) for decision in decisions(spark)]}


if __name__ == "__main__":
    main()
